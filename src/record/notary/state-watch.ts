import { saltKeyOf } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import { isSealedHead } from "../head.ts";
import { leafOf } from "../leaf.ts";
import { type Exception, isSealed, RecordedState, type StateDifference, sealException, stateFlaw } from "../record.ts";
import { commandsLane, decodeEntries, type Segment } from "../segment.ts";
import { chainOf } from "../store/chain.ts";
import { addExceptions, readExceptions, readState } from "../store/exceptions.ts";
import { segmentsByLane } from "../store/segments.ts";
import { leafHolding, segmentBefore } from "../store/tree.ts";
import { leadsToRoot } from "../store/tree-end.ts";
import type { TreeHead } from "../tree.ts";
import { AuditWalk, type Chain, isProved } from "../verify.ts";

/** A head that was signed, of the tree as it is stored; and what is called between two segments. */
type Looking = readonly [tree?: TreeHead | undefined, rest?: (() => Promise<void>) | undefined];

type SegmentEnd = Pick<Segment, "lane" | "lastSeq" | "mac">;

/**
 * Compares what the tables hold with what people put on record: all of the record at first, and from then on what is
 * new in it. Only entries that the chain or the signed tree proves count.
 */
export class StateWatch {
  readonly #auditKey: Uint8Array;
  #record = new RecordedState();
  #end: SegmentEnd | undefined;
  /** The last entry up to which each is proved, accepted as lost, or noted as lost. */
  #provedTo = 0;
  /** Differences that two looks have found. As long as there are no others, the record is not read again. */
  #agreed: ReadonlySet<string> = new Set();

  constructor(auditKey: Uint8Array) {
    this.#auditKey = auditKey;
  }

  /** What differs now, or differed once and was not accepted yet. */
  async compare(database: Database, ...how: Looking): Promise<StateDifference[]> {
    let found = await this.#look(database, ...how);
    const isAgreed = found.every((one) => this.#agreed.has(stateFlaw(one).sentence));
    if (!isAgreed) {
      // The whole database may have been exchanged between the tables and the record. So all is read again.
      this.#end = undefined;
      const again = sentencesOf(await this.#look(database, ...how));
      found = found.filter((one) => again.has(stateFlaw(one).sentence));
    }
    this.#agreed = sentencesOf(found);
    const known = await readExceptions(database);
    const all = new Map<string, StateDifference>(found.map((one) => [one.subject, one]));
    for (const one of known) {
      if (all.has(one.subject)) continue;
      const { subject, recorded, found } = isSealed(this.#auditKey, one) ? one : madeUp(one);
      all.set(subject, { subject, recorded, found, isOver: true });
    }
    return [...all.values()];
  }

  /** The same, and stores what is new, so that servers take no key and serve no set that was put back. */
  async note(database: Database, now: number, ...how: Looking): Promise<StateDifference[]> {
    const found = await this.compare(database, ...how);
    const exceptions = found.flatMap(({ isOver, ...one }): Exception[] => {
      const exception = { ...one, at: now };
      return isOver ? [] : [{ ...exception, seal: sealException(this.#auditKey, exception) }];
    });
    await addExceptions(database, exceptions);
    return found;
  }

  async #look(database: Database, ...how: Looking): Promise<StateDifference[]> {
    const { state, lastSeq } = await readState(database);
    await this.#readOn(database, lastSeq, ...how);
    return this.#record.differences(state);
  }

  /** @param lastSeq - what people did after this entry is no part of the state that is compared */
  async #readOn(database: Database, lastSeq: number, ...[tree, rest]: Looking): Promise<void> {
    const chain = chainOf(database);
    const walk = new AuditWalk(this.#auditKey, chain);
    const end = this.#end;
    if (end !== undefined) {
      const there = await segmentBefore(database, { lane: commandsLane, seq: end.lastSeq + 1 });
      // The database was put back, or retention came this far.
      if (there?.lastSeq !== end.lastSeq || !there.mac.equals(end.mac)) this.#end = undefined;
    }
    if (this.#end === undefined) [this.#record, this.#provedTo] = [new RecordedState(), 0];
    const { head } = await chain.end();
    const from = { lane: commandsLane, seq: (this.#end?.lastSeq ?? 0) + 1 };
    for await (const segment of segmentsByLane(database, {}, from)) {
      if (segment.firstSeq > lastSeq) break;
      await rest?.();
      const follows = await walk.pass(segment);
      if (follows || (await isInTree(database, this.#auditKey, segment, tree))) {
        await this.#proveTo(segment.firstSeq - 1, chain);
        for (const entry of decodeEntries(segment) ?? []) this.#record.apply(entry);
        this.#provedTo = Math.max(this.#provedTo, segment.lastSeq);
      }
      // If a statement failed until here, the segment is read again.
      this.#end = segment;
    }
    // The head is sealed, so the lane had this entry.
    if (isSealedHead(this.#auditKey, head)) await this.#proveTo(Math.min(head?.seq ?? 0, lastSeq), chain);
  }

  /** Notes the entries up to this one as lost, as far as they were not proved and retention did not drop them. */
  async #proveTo(lastSeq: number, chain: Pick<Chain, "dropped">): Promise<void> {
    if (lastSeq <= this.#provedTo) return;
    const dropped = await chain.dropped(commandsLane);
    const isDropped = dropped !== undefined && isProved(this.#auditKey, dropped);
    this.#provedTo = Math.max(this.#provedTo, isDropped ? dropped.seq : 0);
    const lost = { lane: commandsLane, seq: this.#provedTo + 1, lastSeq };
    if (lost.seq <= lastSeq) this.#record.lose(lost);
    this.#provedTo = Math.max(this.#provedTo, lastSeq);
  }
}

const sentencesOf = (found: readonly StateDifference[]) => new Set(found.map((one) => stateFlaw(one).sentence));

/** An exception that Keyhole did not write. It is named like any other, and an operator ends it. */
function madeUp({ subject }: Exception): StateDifference {
  return { subject, recorded: "nothing", found: "made up in audit_exceptions" };
}

/** Whether the signed tree has exactly this segment: its leaf is made again, with this one among those that it is of. */
async function isInTree(database: Database, auditKey: Uint8Array, segment: Segment, tree: TreeHead | undefined) {
  if (tree === undefined) return false;
  const leaf = await leafHolding(database, segment.lane, segment.lastSeq);
  if (leaf === undefined) return false;
  const { lane, firstSeq: seq, lastSeq } = leaf;
  const segments: Segment[] = [];
  for await (const one of segmentsByLane(database, {}, { lane, seq, lastSeq })) {
    const isThis = one.firstSeq === segment.firstSeq && one.at === segment.at;
    if (one.firstSeq !== segment.firstSeq || isThis) segments.push(one);
  }
  const made = leafOf(saltKeyOf(auditKey), segments);
  return made?.lastSeq === lastSeq && leadsToRoot(database, tree, leaf.leaf, made.text);
}
