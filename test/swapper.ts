/**
 * Swaps a folder for a symbolic link and back, as fast as it can, until it is killed:
 *
 *     bun test/swapper.ts FOLDER ELSEWHERE
 */
import { renameSync, symlinkSync, unlinkSync } from "node:fs";

const [folder = "", elsewhere = ""] = process.argv.slice(2);
const aside = `${folder}.aside`;
process.stdout.write("swapping\n");
for (;;) {
  for (const step of [
    () => renameSync(folder, aside),
    () => symlinkSync(elsewhere, folder),
    () => unlinkSync(folder),
    () => renameSync(aside, folder),
  ]) {
    try {
      step();
    } catch {
      // Somebody made a folder meanwhile: the next round finds its way back.
    }
  }
}
