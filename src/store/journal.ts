import { Deadline } from "../deadline.ts";
import { Fault } from "../fault.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "./database.ts";
import { type AppendResult, type JournalRow, journalColumns } from "./journal-row.ts";
import type { JournalOrder } from "./journal-worker.ts";
import { connect, type Servers } from "./postgres.ts";

/** The one connection that writes audit entries. */
export type JournalStore = {
  /** Writes a batch, all of it or nothing, in one commit. `again`: this very batch may be there already. Never throws. */
  readonly append: (rows: readonly JournalRow[], again: boolean) => Promise<AppendResult>;
  readonly close: () => Promise<void>;
};

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

function jsonOf({ names, namesJson = JSON.stringify(names), ...row }: JournalRow): string {
  return `{"names":${namesJson},${JSON.stringify({ ...row, mac: Buffer.from(row.mac).toString("hex") }).slice(1)}`;
}

/** A journal on the embedded database, in its own thread (see `journal-worker.ts`). */
export function sqliteJournal(path: string): JournalStore {
  const thread = new Worker(threadUrl);
  const send = (order: JournalOrder) => thread.postMessage(order);
  send({ open: path });
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
    append: (rows) => ask({ append: rows }),
    close: async () => {
      await ask({ close: true });
      thread.terminate();
    },
  };
}

const uniqueViolation = "23505";

// In the built program every module claims to stand at the root of the program's own file system, where `src` begins.
const built = import.meta.url.startsWith("file:///$bunfs/");
const threadUrl = new URL(built ? "./store/journal-worker.ts" : "./journal-worker.ts", import.meta.url).href;

const names = journalColumns.map(([name]) => name).join(", ");
const values = journalColumns.map(([, field, type]) => (type === "bytea" ? `decode("${field}", 'hex')` : `"${field}"`));
const fields = journalColumns.map(([, field, type]) => `"${field}" ${type === "bytea" ? "text" : type}`);

// One parameter for all rows, so that one prepared statement serves batches of any size. A trigger that keeps rows out
// makes the count differ, and the division by zero rolls the batch back. PostgreSQL itself refuses to combine WITH and a
// rule on the table.
const appendText = `with written as (
    insert into audit_entries (${names}) select ${values.join(", ")}
    from json_to_recordset($1::text::json) as entry(${fields.join(", ")}) returning 1)
  select 1 / (count(*) = $2::integer)::integer from written`;
