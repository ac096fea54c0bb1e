/**
 * Replaces a folder by a symbolic link and back, as fast as possible, until it is killed:
 *
 *     bun test/support/swapper.ts FOLDER ELSEWHERE
 */
import { renameSync, rmSync, symlinkSync, unlinkSync } from "node:fs";

const [folder = "", elsewhere = ""] = process.argv.slice(2);
const aside = `${folder}.aside`;
process.stdout.write("swapping\n");
for (;;) {
  for (const step of [
    // Left by a round in which another process created the folder. With files in it, it would block every later rename.
    () => rmSync(aside, { recursive: true, force: true }),
    () => renameSync(folder, aside),
    () => symlinkSync(elsewhere, folder),
    () => unlinkSync(folder),
    () => renameSync(aside, folder),
  ]) {
    try {
      step();
    } catch {
      // Another process created the folder meanwhile: the next round starts with it.
    }
  }
}
