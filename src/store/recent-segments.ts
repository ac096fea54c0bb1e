import type { JobReads } from "../audit/job-reads.ts";
import type { Segment } from "../audit/segment.ts";

/** A segment that was acknowledged, with the reads that were counted in its commit. */
export type Acknowledged = { readonly segment: Segment; readonly reads: readonly JobReads[] };

/**
 * The segments that a server acknowledged lately, in their order: a failover may lose the newest of them. A signed head
 * covers those of before, which the notary looks for by itself.
 */
export class RecentSegments {
  #all: Acknowledged[] = [];
  #bytes = 0;
  /** Whether older ones were acknowledged, too. */
  hasForgotten = false;

  get all(): readonly Acknowledged[] {
    return this.#all;
  }

  /** Remembers one more, and forgets the oldest beyond two minutes before it and 32 MiB. */
  add(one: Acknowledged): void {
    this.#all.push(one);
    this.#bytes += bytesOf(one);
    const since = one.segment.at - keptMs;
    let gone = 0;
    for (const old of this.#all) {
      if (this.#bytes <= bytesMax && old.segment.at >= since) break;
      this.#bytes -= bytesOf(old);
      gone += 1;
    }
    if (gone === 0) return;
    this.#all = this.#all.slice(gone);
    this.hasForgotten = true;
  }
}

const bytesOf = ({ segment: { texts, entries } }: Acknowledged) => texts.length + entries.length;

/** The notary signs a head each minute, some seconds after the newest segment that it has. */
const keptMs = 120_000;
const bytesMax = 32 * 1024 * 1024;
