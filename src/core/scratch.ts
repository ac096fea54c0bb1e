import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configProblem } from "./problem.ts";

/** Makes a folder for temporary files, whose name begins with `prefix`. @throws Problem if there is no place for one */
export function scratchFolder(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const words = `Temporary files cannot be written in ${tmpdir()} (${code}): name a folder in TMPDIR that this user may write to.`;
    throw configProblem(words);
  }
}
