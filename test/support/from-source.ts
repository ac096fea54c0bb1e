import { cpSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RunOptions } from "./keyhole.ts";

/* Programs other than the built one: a newer version, or one whose clock is moved. */

const root = join(import.meta.dir, "../..");

/** What runs a source and its environment, as commands and servers take it. */
export type Program = Required<Pick<RunOptions, "as" | "program" | "env">>;

/**
 * The program from its source.
 * @param folder - by default this checkout
 * @param clockMovedMs - how far its clock is ahead
 */
export function fromSource(folder: string = root, clockMovedMs = 0): Program {
  return {
    as: [process.execPath, "--no-env-file", "--no-install", `--preload=${join(root, "test/support/moved-clock.ts")}`],
    program: join(folder, "src/main.ts"),
    env: { CLOCK_MOVED_MS: String(clockMovedMs) },
  };
}

/** Copies the program's source. Returns the folder. @param more - what else is copied */
export function copySource(...more: readonly string[]): string {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-source-"));
  for (const name of ["src", "drizzle", "package.json", "bunfig.toml", "tsconfig.json", ...more]) {
    cpSync(join(root, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  return folder;
}

/** Copies the program's source and adds a migration to it. Returns the folder. */
export function makeNewer(migration: string): string {
  const folder = copySource();
  const path = join(folder, "drizzle/migrations.ts");
  const before = readFileSync(path, "utf8");
  const later = `{ text: ${JSON.stringify(migration)}, at: ${Date.UTC(2099, 0, 1)} },\n];`;
  const after = before.replaceAll("\n];", `\n${later}`);
  if (after.split(later).length !== 3) throw new Error(`${path} has not two lists of migrations to add to`);
  writeFileSync(path, after);
  return folder;
}
