import { type Exception, isSealed, RecordedState, type StateDifference, sealException } from "../audit/record.ts";
import { commandsLane, decodeEntries, type Segment } from "../audit/segment.ts";
import { ChainWalk } from "../audit/verify.ts";
import { chainOf } from "../store/chain.ts";
import type { Database } from "../store/database.ts";
import { addExceptions, readExceptions, readState } from "../store/exceptions.ts";
import { segmentsByLane } from "../store/segments.ts";
import { segmentBefore } from "../store/tree.ts";

type End = Pick<Segment, "lane" | "lastSeq" | "mac">;

/**
 * Compares what the tables hold with what people put on record: all of the record at first, and from then on what is
 * new in it. Only entries that the chain proves count.
 */
export class StateWatch {
  readonly #auditKey: Uint8Array;
  #record = new RecordedState();
  #end: End | undefined;

  constructor(auditKey: Uint8Array) {
    this.#auditKey = auditKey;
  }

  /** What differs now, or differed once and was not accepted yet. */
  async compare(database: Database): Promise<StateDifference[]> {
    await this.#readOn(database);
    const state = await readState(database);
    let found = this.#record.differences(state);
    if (found.length > 0) {
      // A change may have been made between the two.
      await this.#readOn(database);
      const still = new Set(this.#record.differences(state).map(({ subject }) => subject));
      found = found.filter(({ subject }) => still.has(subject));
    }
    const known = await readExceptions(database);
    const all = new Map<string, StateDifference>(found.map((one) => [one.subject, one]));
    for (const one of known) all.set(one.subject, isSealed(this.#auditKey, one) ? one : madeUp(one));
    return [...all.values()];
  }

  /** The same, and stores what is new, so that servers take no key and serve no set that was put back. */
  async note(database: Database, now: number): Promise<StateDifference[]> {
    const found = await this.compare(database);
    const exceptions = found.map(({ subject, recorded, found }): Exception => {
      const exception = { subject, recorded, found, at: now };
      return { ...exception, seal: sealException(this.#auditKey, exception) };
    });
    const known = new Set((await readExceptions(database)).map(({ subject }) => subject));
    await addExceptions(
      database,
      exceptions.filter(({ subject }) => !known.has(subject)),
    );
    return found;
  }

  async #readOn(database: Database): Promise<void> {
    const walk = new ChainWalk(this.#auditKey, chainOf(database));
    const end = this.#end;
    if (end !== undefined) {
      const there = await segmentBefore(database, { lane: commandsLane, seq: end.lastSeq + 1 });
      // The database was put back, or retention came this far.
      if (there?.lastSeq !== end.lastSeq || !there.mac.equals(end.mac)) this.#forget();
    }
    const from = { lane: commandsLane, seq: (this.#end?.lastSeq ?? 0) + 1 };
    for await (const segment of segmentsByLane(database, {}, from)) {
      const isProved = await walk.pass(segment);
      this.#end = segment;
      if (isProved) for (const entry of decodeEntries(segment) ?? []) this.#record.apply(entry);
    }
  }

  #forget(): void {
    this.#record = new RecordedState();
    this.#end = undefined;
  }
}

/** An exception that Keyhole did not write. It is named like any other, and an operator ends it. */
function madeUp({ subject }: Exception): StateDifference {
  return { subject, recorded: "nothing", found: "made up in audit_exceptions" };
}
