import postgres from "postgres";
import { Deadline } from "../deadline.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "./database.ts";
import { type AppendResult, type JournalRow, journalColumns } from "./journal-row.ts";
import type { JournalOrder } from "./journal-worker.ts";

/** The one connection that writes audit entries. */
export type JournalStore = {
  /** Writes a batch in one statement and one commit. `again`: this very batch may be there already. Never throws. */
  readonly append: (rows: readonly JournalRow[], again: boolean) => Promise<AppendResult>;
  readonly close: () => Promise<void>;
};

/** A journal on PostgreSQL, on a connection of its own that is made anew once it fails or stops answering. */
export function postgresJournal(url: string): JournalStore {
  const connect = () =>
    postgres(url, {
      max: 1,
      connect_timeout: 2,
      backoff: () => 0.2,
      idle_timeout: 0,
      max_lifetime: null,
      fetch_types: false, // as in database.ts
      onnotice: () => {},
      // The deadline is PostgreSQL's first, so that a batch which waits for a lock ends as refused, not as unknown.
      connection: {
        application_name: "keyhole journal",
        statement_timeout: queryDeadlineMs - 200,
        synchronous_commit: "on",
      },
    });
  let client = connect();
  const deadline = new Deadline(queryDeadlineMs, () => new Error("no answer"));
  return {
    append: async (rows, again) => {
      const json = `[${rows.map(jsonOf).join(",")}]`;
      const answer = client
        .unsafe(appendText, [json], { prepare: true })
        .then((): AppendResult => ({ outcome: "durable" }))
        .catch((error: unknown): AppendResult => {
          const reason = databaseErrorCode(error);
          if (isConnectionFailure(error)) return { outcome: "unknown", reason };
          return { outcome: again && reason === uniqueViolation ? "durable" : "refused", reason };
        });
      const result = await deadline.of(answer).catch((): AppendResult => ({ outcome: "unknown", reason: "no answer" }));
      if (result.outcome === "unknown") {
        // After a failure the driver may give the next query the old error, or never send it: see Clients.
        void client.end({ timeout: 0 }).catch(() => {});
        client = connect();
      }
      return result;
    },
    close: () => client.end({ timeout: 1 }),
  };
}

function jsonOf({ names, namesJson = JSON.stringify(names), ...row }: JournalRow): string {
  return `{"names":${namesJson},${JSON.stringify({ ...row, mac: Buffer.from(row.mac).toString("hex") }).slice(1)}`;
}

/** A journal on the embedded database, in a thread of its own (see `journal-worker.ts`). */
export function sqliteJournal(path: string): JournalStore {
  const thread = new Worker(threadUrl);
  const order = (what: JournalOrder) => thread.postMessage(what);
  order({ open: path });
  let gone = false;
  let answer: (result: AppendResult) => void = () => {};
  thread.onmessage = ({ data }: MessageEvent<AppendResult>) => answer(data);
  // Without its thread nothing can be put on record: every value read is refused until the server is started anew.
  thread.onerror = ({ message }) => {
    gone = true;
    answer({ outcome: "unknown", reason: `the journal's thread ended: ${message}` });
  };
  const ask = (what: JournalOrder) =>
    new Promise<AppendResult>((resolve) => {
      if (gone) return resolve({ outcome: "refused", reason: "the journal's thread ended" });
      answer = resolve;
      order(what);
    });
  return {
    append: (rows) => ask({ append: rows }),
    close: async () => {
      await ask({ close: true });
      thread.terminate();
    },
  };
}

const uniqueViolation = "23505";

// In the built program every module says it stands at the root of the program's own file system, where `src` begins.
const built = import.meta.url.startsWith("file:///$bunfs/");
const threadUrl = new URL(built ? "./store/journal-worker.ts" : "./journal-worker.ts", import.meta.url).href;

// One parameter whatever the batch's size, so that one prepared statement serves all.
const appendText = `insert into audit_entries (${journalColumns.map(([name]) => name).join(", ")})
  select ${journalColumns.map(([, field, type]) => (type === "bytea" ? `decode("${field}", 'hex')` : `"${field}"`)).join(", ")}
  from json_to_recordset($1::text::json) as entry(${journalColumns
    .map(([, field, type]) => `"${field}" ${type === "bytea" ? "text" : type}`)
    .join(", ")})`;
