import { readdirSync, renameSync } from "node:fs";
import { join } from "node:path";

/** Dates the drafts in a folder to the day before yesterday, as if nobody had come by since. */
export function ageDrafts(folder: string): void {
  const old = (Date.now() - 48 * 3_600_000).toString(16).padStart(12, "0");
  for (const name of readdirSync(folder)) {
    const aged = name.replace(/^(\.keyhole-[a-z-]+-)[0-9a-f]{12}(?=[0-9a-f]{12}\.part)/, `$1${old}`);
    if (aged !== name) renameSync(join(folder, name), join(folder, aged));
  }
}
