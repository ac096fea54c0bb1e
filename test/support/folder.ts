import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const made: string[] = [];

/** Makes a folder, which is removed once the tests of the file have ended. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-"));
  made.push(folder);
  return folder;
}

/** At the end of a file of tests. */
export function removeFolders(): void {
  for (const folder of made.splice(0)) rmSync(folder, { recursive: true, force: true });
}
