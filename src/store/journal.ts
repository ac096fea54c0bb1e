import { getTableColumns } from "drizzle-orm";
import type { Append, ChainedRow } from "../audit/journal.ts";
import { Deadline } from "../deadline.ts";
import { Fault } from "../fault.ts";
import { threadUrl } from "../thread-url.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "./database.ts";
import { connect, type Servers } from "./postgres.ts";
import { postgresTables } from "./tables.ts";

/** The one connection that writes audit entries, each batch in one commit. */
export type JournalStore = { readonly append: Append; readonly close: () => Promise<void> };
export type AppendResult = Awaited<ReturnType<Append>>;

/** A journal on PostgreSQL, on a connection of its own. */
export function postgresJournal(servers: Servers): JournalStore {
  const clients = connect(servers, "journal");
  const deadline = new Deadline(queryDeadlineMs, () => new Fault("unavailable", "no answer"));
  return {
    append: async (rows, again) => {
      const parameters = [`[${rows.map(jsonOf).join(",")}]`, rows.length];
      const { answer, giveUp } = clients.ask(1, (client) => client.unsafe(appendText, parameters, { prepare: true }));
      try {
        await deadline.of(answer, giveUp);
        return { outcome: "durable" };
      } catch (error) {
        if (error instanceof Fault) return { outcome: "unknown", reason: error.message };
        const reason = databaseErrorCode(error);
        if (isConnectionFailure(error)) return { outcome: "unknown", reason };
        return { outcome: again && reason === uniqueViolation ? "durable" : "refused", reason };
      }
    },
    close: () => clients.close(),
  };
}

function jsonOf({ names, namesJson = JSON.stringify(names), ...row }: ChainedRow): string {
  return `{"names":${namesJson},${JSON.stringify({ ...row, mac: row.mac.toString("hex") }).slice(1)}`;
}

/** A value of an audit entry, as SQLite takes it. */
export type Value = string | number | Uint8Array | null;
/** What the embedded journal's thread is told: where the database is, then one batch at a time. */
export type JournalOrder =
  | { readonly open: string; readonly insert: string }
  | { readonly append: readonly (readonly Value[])[] }
  | { readonly close: true };

/** A journal on the embedded database, in its own thread (see `journal-worker.ts`). */
export function sqliteJournal(path: string): JournalStore {
  const thread = new Worker(threadUrl("store/journal-worker.ts"));
  const send = (order: JournalOrder) => thread.postMessage(order);
  send({ open: path, insert: insertText });
  let ended = false;
  let answer: (result: AppendResult) => void = () => {};
  thread.onmessage = ({ data }: MessageEvent<AppendResult>) => answer(data);
  // Without its thread nothing can be recorded: every value read is refused until the server is restarted.
  thread.onerror = ({ message }) => {
    ended = true;
    answer({ outcome: "unknown", reason: `the journal's thread ended: ${message}` });
  };
  const ask = (order: JournalOrder) =>
    new Promise<AppendResult>((resolve) => {
      if (ended) return resolve({ outcome: "refused", reason: "the journal's thread ended" });
      answer = resolve;
      send(order);
    });
  return {
    append: (rows) => ask({ append: rows.map((row) => columns.map(({ field }) => row[field])) }),
    close: async () => {
      await ask({ close: true });
      thread.terminate();
    },
  };
}

const uniqueViolation = "23505";

const columns = Object.entries(getTableColumns(postgresTables.auditEntries)).map(([field, column]) => ({
  field: field as Exclude<keyof ChainedRow, "namesJson">,
  name: column.name,
  type: column.getSQLType(),
}));
const names = columns.map(({ name }) => name).join(", ");
const values = columns.map(({ field, type }) => (type === "bytea" ? `decode("${field}", 'hex')` : `"${field}"`));
const fields = columns.map(({ field, type }) => `"${field}" ${type === "bytea" ? "text" : type}`);

// One parameter for all rows, so that one prepared statement serves batches of any size. A trigger that keeps rows out
// makes the count differ, and the division by zero rolls the batch back. PostgreSQL itself refuses to combine WITH and
// a rule on the table.
const appendText = `with written as (
    insert into audit_entries (${names}) select ${values.join(", ")}
    from json_to_recordset($1::text::json) as entry(${fields.join(", ")}) returning 1)
  select 1 / (count(*) = $2::integer)::integer from written`;
const insertText = `insert into audit_entries (${names}) values (${columns.map(() => "?").join(", ")})`;
