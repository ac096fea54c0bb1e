import type { Append, Appended } from "../audit/journal.ts";
import type { Segment } from "../audit/segment.ts";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import { Refused } from "../core/refused.ts";
import { threadUrl } from "../thread-url.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "./database.ts";
import { connect, type Servers } from "./postgres.ts";
import { additionsFound, segmentsUntouched } from "./postgres-guard.ts";

/** The one connection that writes audit segments, each in one commit. */
export type JournalStore = { readonly append: Append; readonly close: () => Promise<void> };

/** A journal on PostgreSQL, on a connection of its own. */
export function postgresJournal(servers: Servers): JournalStore {
  const clients = connect(servers, "journal");
  const deadline = new Deadline(queryDeadlineMs, () => new Fault("unavailable", "no answer"));
  /** The server that has the lane that is being written. Another one may lack the lane's newest segments. */
  let home = { lane: "", server: "" };
  /** The row was not stored. The full look names what keeps it out. */
  const keptOut = async (): Promise<Appended> => {
    const look = clients.ask(1, clients.check).answer;
    const reason = await look.then(
      () => "the row was not stored",
      (error: unknown) => (error instanceof Error ? error.message : "no answer"),
    );
    return { outcome: "refused", reason };
  };
  return {
    append: async (segment, again) => {
      const begins = segment?.firstSeq === 1;
      if (segment && !begins && segment.lane !== home.lane) return moved;
      const text = segment ? appendText : checkText;
      const parameters = segment ? [...valuesOf(segment), begins ? "" : home.server] : [];
      const { answer, giveUp } = clients.ask(1, (client) => client.unsafe(text, parameters, { prepare: true }));
      try {
        const [stored] = await deadline.of(answer, giveUp);
        if (segment === undefined) return { outcome: "durable" };
        // A trigger that keeps the row out makes no error.
        if (stored === undefined) return keptOut();
        home = { lane: segment.lane, server: stored["server"] as string };
        return { outcome: "durable" };
      } catch (error) {
        if (error instanceof Fault) return { outcome: "unknown", reason: error.message };
        if (error instanceof Refused) return { outcome: "refused", reason: error.message };
        const reason = databaseErrorCode(error);
        if (reason === additionsFound) return keptOut();
        if (isConnectionFailure(error)) return { outcome: "unknown", reason };
        if (reason === otherServer) return moved;
        return { outcome: again && reason === uniqueViolation ? "durable" : "refused", reason };
      }
    },
    close: () => clients.close(),
  };
}

/** In the order of `columns`. */
function valuesOf({ lane, firstSeq, lastSeq, at, mac, texts, entries }: Segment) {
  return [lane, firstSeq, lastSeq, at, mac, texts, entries] as const;
}

export type SegmentValues = ReturnType<typeof valuesOf>;
/** What the embedded journal's thread is told: where the database is, then one segment, or none, at a time. */
export type JournalOrder =
  | { readonly open: string; readonly insert: string }
  | { readonly append: SegmentValues | undefined }
  | { readonly close: true };

/** A journal on the embedded database, in its own thread (see `journal-worker.ts`). */
export function sqliteJournal(path: string): JournalStore {
  const thread = new Worker(threadUrl("store/journal-worker.ts"));
  const send = (order: JournalOrder) => thread.postMessage(order);
  send({ open: path, insert: `insert into audit_segments (${columns}) values (?, ?, ?, ?, ?, ?, ?)` });
  let ended = false;
  let answer: (result: Appended) => void = () => {};
  thread.onmessage = ({ data }: MessageEvent<Appended>) => answer(data);
  // Without its thread nothing can be recorded: every value read is refused until the server is restarted.
  thread.onerror = ({ message }) => {
    ended = true;
    answer({ outcome: "unknown", reason: `the journal's thread ended: ${message}` });
  };
  const ask = (order: JournalOrder) =>
    new Promise<Appended>((resolve) => {
      if (ended) return resolve({ outcome: "refused", reason: "the journal's thread ended" });
      answer = resolve;
      send(order);
    });
  return {
    append: (segment) => ask({ append: segment && valuesOf(segment) }),
    close: async () => {
      await ask({ close: true });
      thread.terminate();
    },
  };
}

const uniqueViolation = "23505";
/** SQLSTATE of the square root of a negative number. */
const otherServer = "2201F";
const moved: Appended = { outcome: "refused", moved: true, reason: "another database server has the lane so far" };

const columns = "lane, first_seq, last_seq, at, mac, texts, entries";

// Servers start at different microseconds. If $8 names another one, the square root fails and nothing is stored.
const server = "extract(epoch from pg_postmaster_start_time())::text";
const appendText = `insert into audit_segments (${columns}) values ($1, $2, $3, $4, $5, $6, $7)
  returning ${server} as server, pg_catalog.sqrt(-($8::text not in ('', ${server}))::integer),
  ${segmentsUntouched}`;
// Fails if the journal could not be written, and stores nothing.
const checkText = `insert into audit_segments (${columns}) select '', 0, 0, 0, '', '', '' where false returning 1`;
