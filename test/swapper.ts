/**
 * Swaps a folder for a symbolic link and back, as fast as it can, until it is killed:
 *
 *     bun test/swapper.ts FOLDER ELSEWHERE
 */
import { renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs";

const [folder = "", elsewhere = ""] = process.argv.slice(2);
const aside = `${folder}.aside`;
process.stdout.write("swapping\n");
for (;;) {
  for (const step of [
    // Stands only where somebody made a folder in the other's place: two folders with files in them swap no more.
    () => rmSync(aside, { recursive: true, force: true }),
    () => renameSync(folder, aside),
    () => symlinkSync(elsewhere, folder),
    () => unlinkSync(folder),
    () => renameSync(aside, folder),
  ]) {
    try {
      step();
    } catch {
      // Somebody made a folder meanwhile: the next round begins with it.
    }
  }
}
