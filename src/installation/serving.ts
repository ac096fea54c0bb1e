import { configProblem } from "../core/problem.ts";
import { auditPartitions } from "../record/store/audit-months.ts";
import { type Database, type Use, warm } from "../store/database.ts";
import { isPooled } from "../store/postgres.ts";

/** The connections of a server, each for its own work. */
export type ServingDatabases = {
  readonly database: Database;
  /** Lookups of keys never wait behind other reads. */
  readonly lookups: Database;
  /** Contents of files. */
  readonly bulk: Database;
  /** For the comparison with what was seen of the database: a lock on the audit's tree holds up no read. */
  readonly watch: Database;
  /** No read waits for it: last uses, what scrapes ask for, and the requests that agents file. */
  readonly background: Database;
  readonly close: () => Promise<void>;
};

/** Opens the connections of a server. @throws Problem if a connection pooler is between */
export async function openServing(open: (use: Use) => Database): Promise<ServingDatabases> {
  const database = open("serve");
  const lookups = database.dialect === "postgres" ? open("look-up") : database;
  await refusePooler(lookups, "look-up");
  await Promise.all([warm(lookups), warm(database)]);
  if (database.dialect === "postgres") await requireOpenMonths(database);
  const [bulk, watch, background] = [open("files"), open("watch"), open("journal")];
  const close = async () => {
    await Promise.all([...new Set([database, lookups, bulk, watch, background])].map((one) => one.close()));
  };
  return { database, lookups, bulk, watch, background, close };
}

/** Without a session's settings nothing ends what takes too long. @throws Problem if a connection pooler is between */
export async function refusePooler(database: Database, use: "look-up" | "notary"): Promise<void> {
  if (database.dialect === "sqlite" || !(await isPooled(database, use))) return;
  throw configProblem("DATABASE_URL leads to a connection pooler such as PgBouncer: name PostgreSQL itself.");
}

/** Values leave only with an entry in the month's partition. @throws Problem if the role may not append to one */
async function requireOpenMonths(database: Database): Promise<void> {
  const { role, parts } = await auditPartitions(database);
  const closed = parts.find(({ open }) => !open);
  if (closed === undefined) return;
  throw configProblem(
    `The database role ${role} may not append to ${closed.name}: run \`keyhole db grants --role ${role} --apply\` as the owner of the tables.`,
  );
}
