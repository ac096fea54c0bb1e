import { BoundedMap } from "../../core/bounded-map.ts";
import { Deadline } from "../../core/deadline.ts";
import { Fault } from "../../core/fault.ts";
import { Refused } from "../../core/refused.ts";
import { type AppendCondition, conditionFrom } from "../../core/set-rows.ts";
import { shared } from "../../core/shared.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "../../store/database.ts";
import { connect, type Servers, serverStart } from "../../store/postgres.ts";
import { neverExtended, notExtended } from "../../store/postgres-guard.ts";
import { threadUrl } from "../../thread-url.ts";
import type { JobReads } from "../job-reads.ts";
import type { Append, Appended } from "../journal.ts";
import type { Segment } from "../segment.ts";
import { defaultPartition, monthOf } from "./audit-months.ts";
import { type Acknowledged, bytesOf, RecentSegments } from "./recent-segments.ts";

/** The one connection that writes audit segments, each in one commit. */
export type JournalStore = {
  readonly append: Append;
  /** Entries that a failover had lost and that are stored again; and how often older ones may be lost, too. */
  readonly lost?: { readonly broughtBack: number; readonly unknown: number };
  readonly close: () => Promise<void>;
};

/** A journal on PostgreSQL, on a connection of its own. @param nowMs - monotonic milliseconds */
export function postgresJournal(servers: Servers, nowMs = () => performance.now()): JournalStore {
  let notices = 0;
  const recent = new RecentSegments();
  /** When the server started that answered last, as the text that a statement returns. */
  let server: string | undefined;
  /** What was acknowledged by another server than the one that answers now, which may lack the end of it. */
  let owed: readonly Acknowledged[] = [];
  let owedSinceMs = 0;
  const lost = { broughtBack: 0, unknown: 0 };
  const clients = connect(servers, "journal", () => {
    notices += 1;
  });
  const deadline = new Deadline(queryDeadlineMs, () => new Fault("unavailable", "no answer"));
  /** The servers that have the lanes that are being written. Another one may lack a lane's newest segments. */
  const homes = new BoundedMap<string>(lanesMax);
  /** The month of the last segment that was stored, and which of {@link statementsOf} stored it. */
  let last = { month: "", way: 0 };
  const ask = (text: string, parameters: readonly unknown[]) => {
    const query = (client: typeof clients.client) => client.unsafe(text, parameters as never[], { prepare: true });
    const { answer, giveUp } = clients.ask(1, query);
    return deadline.of(answer, giveUp);
  };
  /** Undefined if none of the statements stored the row. */
  const store = async (at: number, parameters: readonly unknown[], isCounted: boolean, condition?: AppendCondition) => {
    const month = monthOf(at).name;
    const first = month === last.month ? last.way : 0;
    const statements = [...statementsOf(month, isCounted, condition).entries()];
    // With a condition only one is tried: it does not say which of both kept the row out.
    const others = condition ? [] : [...statements.slice(first + 1), ...statements.slice(0, first)];
    for (const [way, text] of [...statements.slice(first, first + 1), ...others]) {
      const [stored] = await ask(text, parameters).catch(passingOver);
      if (stored === undefined) continue;
      last = { month, way };
      return stored;
    }
    return undefined;
  };
  /**
   * Why what is committed here may not be where commits are promised to be; undefined if it is. A row that is there may be
   * on one server only: if somebody ends the wait for a synchronous standby, PostgreSQL keeps the row, and says so in a
   * warning at most. The log is in order, so a commit that waits its turn proves those before it.
   */
  const doubt = async (): Promise<string | undefined> => {
    const before = notices;
    try {
      await ask(commitOfNothing, []);
      return notices === before ? undefined : "the wait for a synchronous standby was cut short";
    } catch (error) {
      if (error instanceof Fault) return error.message;
      const code = databaseErrorCode(error);
      return code === noRight ? noProofMessage : code;
    }
  };
  /**
   * Stores again what the server lacks of what was acknowledged by another one, before anything new. What keeps that out
   * may pass, such as a lock or a full disk. After a minute it is given up, and named: it must not stop all reads.
   */
  const bringAlong = shared(async () => {
    const before = notices;
    const { answer, giveUp } = clients.ask(1, (client) => bringBack(client, owed));
    const found = await bringDeadline.of(answer, giveUp).catch((error: unknown) => {
      const reason = error instanceof Fault ? error.message : databaseErrorCode(error);
      const mayPass = error instanceof Fault || passing.test(reason);
      if (isConnectionFailure(error) || (mayPass && nowMs() - owedSinceMs < bringWithinMs)) {
        throw new Fault("unavailable", `what a failover lost could not be stored: ${reason}`);
      }
      return { broughtBack: 0, isAllGone: true, reason, notStored: rangesOf(owed) };
    });
    const { isAllGone, ...told } = found;
    const mayLackMore = isAllGone && (recent.hasForgotten || "reason" in told);
    lost.broughtBack += told.broughtBack;
    if (mayLackMore) lost.unknown += 1;
    if (told.broughtBack > 0 || mayLackMore) servers.tell({ event: "lane_moved", ...told, mayLackMore });
    // What is told once is stored: if this fails, the next try finds it there.
    const doubted = notices === before ? undefined : await doubt();
    if (doubted !== undefined) throw new Fault("unavailable", doubted);
    owed = [];
  });
  const settle = async () => {
    if (owed.length > 0) await bringAlong();
  };
  const owe = () => {
    owed = [...recent.all];
    owedSinceMs = nowMs();
  };
  const answered = (by: unknown) => {
    if (server !== undefined && server !== by) owe();
    server = by as string;
  };
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
    append: async (segment, again, reads = [], condition) => {
      const begins = segment?.firstSeq === 1;
      // A lane begins on the server that answered last, or on another one once that has what it lacks.
      const home = begins ? (server ?? "") : homes.get(segment?.lane ?? "");
      if (segment && home === undefined) return moved;
      try {
        await settle();
        if (segment === undefined) {
          const ofMonth = await ask(checkOf(monthOf(Date.now()).name), []).catch(passingOver);
          const [found] = ofMonth.length > 0 ? ofMonth : await ask(checkOf(defaultPartition), []);
          if (found?.["sound"] !== true) return keptOut();
          answered(found["server"]);
          await settle();
          return { outcome: "durable" };
        }
        const isCounted = reads.length > 0;
        const more = [...(condition?.parameters ?? []), ...(isCounted ? [rowsOf(reads)] : [])];
        const parameters = [...valuesOf(segment), home, ...more];
        const before = notices;
        const stored = await store(segment.at, parameters, isCounted, condition);
        if (stored === undefined) return condition ? unmet : keptOut();
        const doubted = notices === before ? undefined : await doubt();
        if (doubted !== undefined) return { outcome: "unknown", reason: doubted };
        if (stored["server"] === null) return { outcome: "refused", counts: countsOf(reads, stored["counted"]) };
        answered(stored["server"]);
        homes.set(segment.lane, stored["server"] as string);
        recent.add({ segment, reads });
        return { outcome: "durable" };
      } catch (error) {
        if (error instanceof Fault) return { outcome: "unknown", reason: error.message };
        if (error instanceof Refused) return { outcome: "refused", reason: error.message };
        const reason = databaseErrorCode(error);
        if (isConnectionFailure(error)) return { outcome: "unknown", reason };
        if (reason === otherServer) {
          server = undefined;
          owe();
          return settle().then(
            () => moved,
            (failed: Error) => ({ outcome: "unknown", reason: failed.message }),
          );
        }
        if (reason === noRight) return { outcome: "refused", reason: noRightMessage };
        if (!again || reason !== uniqueViolation) return { outcome: "refused", reason };
        const doubted = await doubt();
        if (doubted !== undefined) return { outcome: "unknown", reason: doubted };
        if (segment !== undefined) recent.add({ segment, reads });
        return { outcome: "durable" };
      }
    },
    lost,
    close: () => clients.close(),
  };
}

/**
 * Stores what a server lacks of these, the newest first, in one transaction: it has the beginning of what the server
 * before it had, so all that comes before one that is there is there, too. Reads of jobs are counted again.
 * @returns how many entries were missing, and whether even the oldest was
 */
function bringBack(client: ReturnType<typeof connect>["client"], all: readonly Acknowledged[]) {
  return client.begin(async (inside) => {
    let broughtBack = 0;
    for (const batch of batchesOf(all.toReversed())) {
      const rows = batch.map(({ segment: { mac, ...rest } }) => ({ ...rest, mac: mac.toString("hex") }));
      const stored = await inside.unsafe(insertAgain, [JSON.stringify(rows)], { prepare: true });
      const isNew = new Set(stored.map(({ lane, seq }) => `${lane} ${seq}`));
      const missing = batch.filter(({ segment: { lane, firstSeq } }) => isNew.has(`${lane} ${firstSeq}`));
      const reads = missing.flatMap((one) => one.reads);
      if (reads.length > 0) await inside.unsafe(countAgain, [rowsOf(reads)], { prepare: true });
      for (const { segment } of missing) broughtBack += segment.lastSeq - segment.firstSeq + 1;
      if (missing.length < batch.length) return { broughtBack, isAllGone: false };
    }
    return { broughtBack, isAllGone: true };
  });
}

/** In their order, as many in one as the database stores within a statement's deadline, whatever its disk. */
function batchesOf(all: readonly Acknowledged[]): Acknowledged[][] {
  const batches: Acknowledged[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const one of all) {
    bytes += bytesOf(one);
    if (bytes > batchBytesMax) {
      batches.push([]);
      bytes = bytesOf(one);
    }
    batches.at(-1)?.push(one);
  }
  return batches;
}

/** The entries of these by lane, each as one gap. */
function rangesOf(all: readonly Acknowledged[]): string[] {
  const ranges = new Map<string, readonly [firstSeq: number, lastSeq: number]>();
  for (const { segment } of all) {
    ranges.set(segment.lane, [ranges.get(segment.lane)?.[0] ?? segment.firstSeq, segment.lastSeq]);
  }
  return [...ranges].map(([lane, [firstSeq, lastSeq]]) => `${lane}:${firstSeq}-${lastSeq}`);
}

/** A partition that is not there, or does not take the row's month: another one does. */
function passingOver(error: unknown): Record<string, unknown>[] {
  if ([undefinedTable, checkViolation].includes(databaseErrorCode(error))) return [];
  throw error;
}

/**
 * The rows of `asked`, as JSON. Nothing else of a read is sent: PostgreSQL refuses the whole statement, and so the reads
 * of others, for a text with a NUL anywhere in it.
 */
function rowsOf(reads: readonly JobReads[]): string {
  const rows = reads.map(({ trustId: trust, job, reads, readsMax: most, keptMs: kept }) => {
    return { trust, job, reads, most, kept };
  });
  return JSON.stringify(rows);
}

/** The stored count of each job, from a JSON array of those that were raised. */
function countsOf(reads: readonly JobReads[], counted: unknown): number[] {
  const counts = new Map(JSON.parse(counted as string) as [job: string, count: number][]);
  return reads.map(({ trustId, job }) => counts.get(`${trustId} ${job}`) ?? Number.MAX_SAFE_INTEGER);
}

/** In the order of `columns`. */
function valuesOf({ lane, firstSeq, lastSeq, at, mac, texts, entries }: Segment) {
  return [lane, firstSeq, lastSeq, at, mac, texts, entries] as const;
}

export type SegmentValues = ReturnType<typeof valuesOf>;
/** What the embedded journal's thread is told: where the database is, then one segment, or none, at a time. */
export type JournalOrder =
  | { readonly open: string; readonly insert: string }
  | { readonly append: SegmentValues | undefined; readonly reads: readonly JobReads[] }
  | { readonly close: true };

/** A journal on the embedded database, in its own thread (see `journal-worker.ts`). */
export function sqliteJournal(path: string): JournalStore {
  const thread = new Worker(threadUrl("record/store/journal-worker.ts"));
  const send = (order: JournalOrder) => thread.postMessage(order);
  send({ open: path, insert: `insert into audit_segments (${columns}) values (?, ?, ?, ?, ?, ?, ?)` });
  let ended = false;
  /** The thread answers in the order in which it is asked. */
  const waiting: ((result: Appended) => void)[] = [];
  thread.onmessage = ({ data }: MessageEvent<Appended>) => waiting.shift()?.(data);
  // Without its thread nothing can be recorded: every value read is refused until the server is restarted.
  thread.onerror = ({ message }) => {
    ended = true;
    for (const answer of waiting.splice(0)) {
      answer({ outcome: "unknown", reason: `the journal's thread ended: ${message}` });
    }
  };
  const ask = (order: JournalOrder) =>
    new Promise<Appended>((resolve) => {
      if (ended) return resolve({ outcome: "refused", reason: "the journal's thread ended" });
      waiting.push(resolve);
      send(order);
    });
  return {
    append: async (segment, _, reads = [], condition) =>
      condition ? unmet : ask({ append: segment && valuesOf(segment), reads }),
    close: async () => {
      await ask({ close: true });
      thread.terminate();
    },
  };
}

/** More than are written at a time, so those that ended are forgotten. */
const lanesMax = 4;

const uniqueViolation = "23505";
const checkViolation = "23514";
const undefinedTable = "42P01";
const noRight = "42501";
/** SQLSTATE of the square root of a negative number. */
const otherServer = "2201F";
const unmet: Appended = { outcome: "refused", unmet: true };
const moved: Appended = { outcome: "refused", moved: true, reason: "another database server has the lane so far" };

/** SQLSTATEs of what passes: rollbacks, resources, objects in use, interventions, the system; a transaction's deadline. */
const passing = /^(?:40|53|55|57|58)\w{3}$|^25P04$/;
const bringDeadline = new Deadline(30_000, () => new Fault("unavailable", "it took over 30 s"));
const bringWithinMs = 60_000;
const batchBytesMax = 256 * 1024;
/** Commits without a change, and waits for it as for any other. A role needs no right for it. */
const commitOfNothing = "select pg_catalog.pg_logical_emit_message(true, 'keyhole', '')";

const columns = "lane, first_seq, last_seq, at, mac, texts, entries";

// If $8 names another server, the square root fails and nothing is stored.
const server = serverStart;

/**
 * The statements that may store a row, the next one if one did not: into its month, into a month that had a trigger or
 * rule until its next VACUUM, and into DEFAULT, which takes no row of a month that has a partition.
 *
 * Each names the partition itself. PostgreSQL then locks it before it takes the snapshot that the conditions are judged
 * by, so whatever may swallow the row is seen. A row that is routed by its parent would lock its partition afterwards.
 */
function statementsOf(month: string, isCounted: boolean, condition?: AppendCondition): readonly string[] {
  const holds = condition === undefined ? "" : ` and exists (${condition.text})`;
  const into = (partition: string, isSound: string) => {
    const found = `from ${catalogueOf(partition)} and ${isSound}`;
    const insert = `insert into public.${partition} (${columns}) select $1, $2, $3, $4, $5, $6, $7 ${found}`;
    const here = `returning ${server} as server, pg_catalog.sqrt(-($8::text not in ('', ${server}))::integer)`;
    if (!isCounted) return `${insert}${holds} ${here}`;
    return counting(`$${conditionFrom + (condition?.parameters.length ?? 0)}`, `${found}${holds}`, insert, here);
  };
  return [into(month, neverExtended), into(month, notExtended), into(defaultPartition, notExtended)];
}

/**
 * Counts the reads of a parameter, and stores the row unless a job would have too many: one statement, and so one commit.
 * The order keeps two servers from waiting for each other.
 * @returns a statement with no row unless the partition takes rows
 */
const counting = (reads: string, found: string, insert: string, here: string) => `
  with asked as materialized (${askedIn(reads)}), counted as (
    ${raised(`where exists (select 1 ${found})`)}
    returning trust_id as trust, pg_catalog.encode(job, 'hex') as job, reads
  ), stored as (
    ${insert} and exists (select 1 from counted)
    and not exists (select 1 from counted join asked using (trust, job) where counted.reads > asked.most) ${here}
  )
  select pg_catalog.json_agg(pg_catalog.json_build_array(trust || ' ' || job, reads))::text as counted, (select server from stored) as server
  from counted having count(*) > 0`;

const nowMs = "(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint";
const askedIn = (parameter: string) => `
    select * from pg_catalog.jsonb_to_recordset(${parameter}::text::jsonb)
      as a(trust text, job text, reads bigint, most bigint, kept bigint)`;

const raised = (condition: string) => `
    insert into public.job_reads as j (trust_id, job, reads, ends_at)
    select trust, pg_catalog.decode(job, 'hex'), reads, ${nowMs} + kept from asked ${condition} order by trust, job
    on conflict (trust_id, job) do update set reads = j.reads + excluded.reads, ends_at = excluded.ends_at`;

const insertAgain = `insert into public.audit_segments (${columns})
  select lane, "firstSeq", "lastSeq", at, pg_catalog.decode(mac, 'hex'), texts, entries
  from pg_catalog.json_to_recordset($1::text::json) as
    a(lane text, "firstSeq" bigint, "lastSeq" bigint, at bigint, mac text, texts text, entries text)
  on conflict do nothing returning lane, first_seq as seq`;
const countAgain = `with asked as (select trust, job, sum(reads)::bigint as reads, max(kept) as kept
  from (${askedIn("$1")}) as each group by trust, job) ${raised("")}`;

/** Whether a partition takes rows; no row if it is none. Fails if the journal could not be written, and stores nothing. */
const checkOf = (partition: string) => `
  with nothing as (
    insert into public.${partition} (${columns}) select '', 0, 0, 0, '', '', '' where false returning 1)
  select ${notExtended} as sound, ${server} as server from ${catalogueOf(partition)}`;

const catalogueOf = (partition: string) => `pg_class as month join pg_inherits on inhrelid = month.oid
    where month.oid = 'public.${partition}'::regclass and inhparent = 'public.audit_segments'::regclass
      and not inhdetachpending`;
const noRightMessage =
  "the database role may not append to the partitions of the audit: run `keyhole db grants --role NAME --apply` as the owner of the tables";
const noProofMessage =
  "the database role may not call pg_logical_emit_message, which proves that commits wait for their standby: grant execute on function pg_logical_emit_message(boolean, text, text) to public";
