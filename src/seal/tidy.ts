import { fullGC } from "bun:jsc";

/*
 * Large values leave as much again behind, in pieces that were used up, and the collector is in no hurry to take them:
 * 64 callers of 8 MiB made the process 600 MiB large. Each thread counts for itself.
 */

/** A collection takes the event loop 13 to 15 ms, and 17 to 26 where memory is given back, with 64 callers of 8 MiB. */
const collectAfterBytes = 16 * 1024 * 1024;
/** To give memory back to the system is dear: what is used next is taken from it again, page by page. */
const collectionsPerReturn = 4;

let bytesSince = 0;
let collections = 0;

/** To be told of large values that are done with, in bytes; now and then it takes what they left behind. */
export function tidyAfter(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < collectAfterBytes) return;
  bytesSince = 0;
  collections += 1;
  if (collections % collectionsPerReturn === 0) Bun.gc(true);
  else fullGC();
}
