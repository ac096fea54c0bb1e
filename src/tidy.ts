import { fullGC } from "bun:jsc";

/* The collector is late with large values: 64 callers of 8 MiB files made the process 600 MiB. Each thread counts alone. */

/** With 64 such callers a collection takes the event loop 13 to 15 ms, and 17 to 26 if memory is given back. */
const collectAfterBytes = 16 * 1024 * 1024;
/** Giving memory back to the system is costly, because it is soon taken again, page by page. */
const collectionsPerReturn = 4;

let bytesSince = 0;
let collections = 0;

/** Notes that large values are no longer used. Now and then this collects garbage. */
export function tidyAfter(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < collectAfterBytes) return;
  bytesSince = 0;
  collections += 1;
  if (collections % collectionsPerReturn === 0) Bun.gc(true);
  else fullGC();
}
