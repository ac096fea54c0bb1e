import { Database as SqliteFile } from "bun:sqlite";
import postgres from "postgres";
import { databaseErrorCode, hasSqlState, queryDeadlineMs } from "./database.ts";

/** An audit entry as its table holds it; `postgres.ts` says what the columns mean. */
export type JournalRow = {
  readonly lane: string;
  readonly seq: number;
  readonly at: number;
  readonly keyId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string;
  readonly project: string;
  readonly environment: string | null;
  readonly action: string;
  readonly names: string;
  readonly count: number;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly userAgent: string;
  readonly mac: Buffer;
};

/** How a batch ended: durable, refused (nothing of it was written), or unknown (the connection failed around the commit). */
export type AppendResult = {
  readonly outcome: "durable" | "refused" | "unknown";
  /** The database's or the driver's code where it failed. */
  readonly reason?: string;
};

/** The one connection that writes audit entries. */
export type JournalStore = {
  /** Writes a batch in one statement and one commit. `again`: this very batch may be there already. Never throws. */
  readonly append: (rows: readonly JournalRow[], again: boolean) => Promise<AppendResult>;
  readonly close: () => Promise<void>;
};

/** A journal on PostgreSQL, on a connection of its own that is made anew once it stops answering. */
export function postgresJournal(url: string): JournalStore {
  const connect = () =>
    postgres(url, {
      max: 1,
      connect_timeout: 2,
      backoff: () => 0.2,
      idle_timeout: 0,
      max_lifetime: null,
      onnotice: () => {},
      // The deadline is PostgreSQL's first, so that a batch which waits for a lock ends as refused, not as unknown.
      connection: {
        application_name: "keyhole journal",
        statement_timeout: queryDeadlineMs - 200,
        synchronous_commit: "on",
      },
    });
  let client = connect();
  return {
    append: async (rows, again) => {
      const json = JSON.stringify(rows.map((row) => ({ ...row, mac: row.mac.toString("hex") })));
      const result = await Promise.race([
        client
          .unsafe(appendText, [json], { prepare: true })
          .then((): AppendResult => ({ outcome: "durable" }))
          .catch((error: unknown): AppendResult => {
            const reason = databaseErrorCode(error);
            if (!hasSqlState(error) || commitUnknown.has(reason)) return { outcome: "unknown", reason };
            return { outcome: again && reason === uniqueViolation ? "durable" : "refused", reason };
          }),
        Bun.sleep(queryDeadlineMs).then(() => undefined),
      ]);
      if (result) return result;
      void client.end({ timeout: 0 }).catch(() => {});
      client = connect();
      return { outcome: "unknown", reason: "no answer" };
    },
    close: () => client.end({ timeout: 1 }),
  };
}

/**
 * A journal on the embedded database. SQLite is synchronous, so a lock that another process holds is waited for here,
 * in steps that leave the event loop free.
 */
export function sqliteJournal(path: string): JournalStore {
  const file = new SqliteFile(path, { create: false, readwrite: true });
  file.run("PRAGMA busy_timeout = 0");
  file.run("PRAGMA synchronous = FULL");
  const insert = file.query(
    `insert into audit_entries (${columns.map(([name]) => name).join(", ")}) values (${columns.map(() => "?").join(", ")})`,
  );
  const writeAll = file.transaction((rows: readonly JournalRow[]) => {
    for (const row of rows) insert.run(...columns.map(([, field]) => row[field]));
  });
  return {
    append: async (rows) => {
      const giveUpAt = performance.now() + queryDeadlineMs - 200;
      for (;;) {
        try {
          writeAll.immediate(rows);
          return { outcome: "durable" };
        } catch (error) {
          // An error of SQLite's means that the transaction was rolled back: nothing of the batch is there.
          const reason = databaseErrorCode(error);
          if (!reason.startsWith("SQLITE_BUSY") || performance.now() > giveUpAt) return { outcome: "refused", reason };
          await Bun.sleep(5);
        }
      }
    },
    close: async () => file.close(),
  };
}

const uniqueViolation = "23505";
/** SQLSTATEs with which a backend may die after its commit: crash, shutdown, and the connection errors of class 08. */
const commitUnknown = new Set(["57P01", "57P02", "08000", "08003", "08006"]);

const columns = [
  ["lane", "lane", "text"],
  ["seq", "seq", "bigint"],
  ["at", "at", "bigint"],
  ["key_id", "keyId", "text"],
  ["organization_id", "organizationId", "text"],
  ["organization", "organization", "text"],
  ["project_id", "projectId", "text"],
  ["project", "project", "text"],
  ["environment", "environment", "text"],
  ["action", "action", "text"],
  ["names", "names", "text"],
  ["count", "count", "integer"],
  ["request_id", "requestId", "text"],
  ["client_address", "clientAddress", "text"],
  ["user_agent", "userAgent", "text"],
  ["mac", "mac", "bytea"],
] as const satisfies readonly (readonly [string, keyof JournalRow, string])[];

// One parameter whatever the batch's size, so that one prepared statement serves all.
const appendText = `insert into audit_entries (${columns.map(([name]) => name).join(", ")})
  select ${columns.map(([, field, type]) => (type === "bytea" ? `decode("${field}", 'hex')` : `"${field}"`)).join(", ")}
  from jsonb_to_recordset($1::text::jsonb) as entry(${columns
    .map(([, field, type]) => `"${field}" ${type === "bytea" ? "text" : type}`)
    .join(", ")})`;
