import { exits, Problem } from "../../core/problem.ts";
import { logEvents } from "../../core/words/log-lines.ts";
import { type LaneFlaw, laneFlaw, type Range, sealLostEnd } from "../../record/flaw.ts";
import type { LaneCheckpoint } from "../../record/journal.ts";
import { commandsLane, type Segment } from "../../record/segment.ts";
import { chainOf } from "../../record/store/chain.ts";
import { lastEntryOf, segmentHolding } from "../../record/store/segment-search.ts";
import { type Chain, isProved } from "../../record/verify.ts";
import type { Database } from "../../store/database.ts";
import type { ReadInput } from "../desk/inputs.ts";

/* The checkpoints that a server's log has of lanes. They show entries that are gone before a notary signed them. */

/** What a database holds beside the checkpoints. */
type LoggedChain = Pick<Chain, "dropped" | "known"> & {
  /** The segment that holds this entry. */
  readonly holding: (entry: { readonly lane: string; readonly seq: number }) => Promise<Segment | undefined>;
  /** The last entry of a lane; 0 if none is left. */
  readonly lastOf: (lane: string) => Promise<number>;
};

export function loggedChainOf(database: Database): LoggedChain {
  return {
    ...chainOf(database),
    holding: (entry) => segmentHolding(database, entry),
    lastOf: (lane) => lastEntryOf(database, lane),
  };
}

/**
 * The checkpoints of a log that matter. Only one process writes to a lane of its own, so its highest checkpoint covers
 * the others. All commands share one lane and continue from the database, so each of its checkpoints matters.
 */
export async function readCheckpoints({ name, chunks }: ReadInput): Promise<LaneCheckpoint[]> {
  const found = new Map<string, LaneCheckpoint>();
  for await (const { event, lane, seq, mac } of logEvents(chunks())) {
    if (event !== "checkpoint" || typeof lane !== "string" || lane.length > 64 || !Number.isSafeInteger(seq)) continue;
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) continue;
    const which = lane === commandsLane ? `${lane} ${seq} ${mac}` : lane;
    const before = found.get(which);
    if (!before || before.seq < (seq as number)) found.set(which, { lane, seq: seq as number, mac });
    if (found.size > checkpointsMax) {
      throw new Problem(exits.refused, "bound", `${name} has more than ${checkpointsMax} checkpoints.`);
    }
  }
  if (found.size > 0) return [...found.values()];
  throw new Problem(exits.failed, "no_checkpoints", `${name} has no checkpoint line.`);
}

/** Of different lanes, or of the one that commands share. */
const checkpointsMax = 100_000;

/**
 * Compares the checkpoints of a server's log with the segments: each is of the end of one.
 * @returns the entries of which the log has seen others, and the losses that were found and are known
 */
export async function compareCheckpoints(
  auditKey: Uint8Array,
  chain: LoggedChain,
  checkpoints: readonly LaneCheckpoint[],
): Promise<{ readonly flaws: LaneFlaw[]; readonly accepted: Range[] }> {
  const { acceptances } = checkpoints.length === 0 ? { acceptances: [] } : await chain.known();
  const [flaws, accepted]: [LaneFlaw[], Range[]] = [[], []];
  /** The earliest loss that was accepted with this checkpoint. */
  const lossWith = (checkpoint: LaneCheckpoint) =>
    acceptances
      .filter((one) => one.lane === checkpoint.lane && one.seals.includes(sealLostEnd(auditKey, one, checkpoint)))
      .sort((a, b) => a.seq - b.seq)[0];
  for (const [lane, some] of Map.groupBy(checkpoints, (one) => one.lane)) {
    const dropped = await chain.dropped(lane);
    const end = Math.max(await chain.lastOf(lane), dropped && isProved(auditKey, dropped) ? dropped.seq : 0);
    const lost = new Map<Range, LaneCheckpoint[]>();
    let differing: (Range & { lastSeq: number }) | undefined;
    const behind = { lane, seq: end + 1, lastSeq: end };
    for (const one of some.toSorted((a, b) => a.seq - b.seq)) {
      const known = lossWith(one);
      // A checkpoint that is known to be lost from some entry on still shows the entries before that one.
      const needed = known === undefined ? one.seq : known.seq - 1;
      const segment = one.seq > end ? undefined : await chain.holding(one);
      if (needed > end) {
        behind.lastSeq = Math.max(behind.lastSeq, needed);
        lost.set(behind, [...(lost.get(behind) ?? []), one]);
      } else if (segment?.lastSeq === one.seq && segment.mac.toString("hex") === one.mac) differing = undefined;
      else if (known !== undefined) accepted.push({ lane, seq: known.seq, lastSeq: known.lastSeq });
      // Retention may have dropped the segment, or its absence is a flaw already.
      else if (segment !== undefined) {
        differing ??= { lane, seq: segment.firstSeq, lastSeq: segment.lastSeq };
        differing.lastSeq = segment.lastSeq;
        lost.set(differing, [...(lost.get(differing) ?? []), one]);
      }
    }
    for (const [range, shown] of lost) {
      const seals = shown.map((one) => sealLostEnd(auditKey, range, one));
      flaws.push(laneFlaw(range, "lost", seals));
    }
  }
  return { flaws, accepted };
}
