import type { JobReads } from "../job-reads.ts";
import type { Segment } from "../segment.ts";

/** A segment that was acknowledged, with the reads that were counted in its commit. */
export type Acknowledged = { readonly segment: Segment; readonly reads: readonly JobReads[] };

/**
 * The segments that a server acknowledged lately, in their order: a failover may lose the newest of them. A signed head
 * covers those of before, which the notary looks for by itself.
 */
export class RecentSegments {
  #all: Acknowledged[] = [];
  /** How many at the beginning of `#all` are forgotten. They go together, since that copies the others. */
  #gone = 0;
  #bytes = 0;
  /** Whether older ones were acknowledged, too. */
  hasForgotten = false;

  get all(): readonly Acknowledged[] {
    return this.#all.slice(this.#gone);
  }

  /** Remembers one more, and forgets the oldest beyond two minutes before it and 32 MiB. */
  add(one: Acknowledged): void {
    this.#all.push(one);
    this.#bytes += bytesOf(one);
    const since = one.segment.at - keptMs;
    for (; ; this.#gone += 1) {
      const oldest = this.#all[this.#gone];
      if (oldest === undefined || (this.#bytes <= bytesMax && oldest.segment.at >= since)) break;
      this.#bytes -= bytesOf(oldest);
      this.hasForgotten = true;
    }
    if (this.#gone < goneMax) return;
    this.#all = this.all as Acknowledged[];
    this.#gone = 0;
  }
}

/** About as many as it takes in memory, and on its way to the database. */
export const bytesOf = ({ segment: { texts, entries }, reads }: Acknowledged) =>
  texts.length + entries.length + 256 * (reads.length + 1);

/** The notary signs a head each minute, some seconds after the newest segment that it has. */
const keptMs = 120_000;
const goneMax = 1024;
const bytesMax = 32 * 1024 * 1024;
