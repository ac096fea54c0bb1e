import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "../..");

const binary = join(root, "dist/keyhole");

/**
 * Returns the compiled program for the black-box tests. It is built first if it is missing or outdated, unless
 * `test/run.ts` has built it: then what is edited during a run waits for the next one.
 */
export function builtBinary(): string {
  if (process.env["KEYHOLE_TEST_BUILT"] === undefined && isOutdated()) buildBinary();
  return binary;
}

/** Builds dist/keyhole. A failed build leaves none. @throws Error with what the compiler said */
export function buildBinary(): void {
  rmSync(binary, { force: true });
  const built = Bun.spawnSync([process.execPath, "run", "--silent", "compile"], { cwd: root, stdin: "ignore" });
  if (!built.success) throw new Error(`dist/keyhole could not be built:\n${built.stdout}${built.stderr}`);
}

/** Whether it is missing, or older than anything it is built from. */
function isOutdated(): boolean {
  const builtAt = statSync(binary, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAt === undefined) return true;
  const folders = ["src", "drizzle"].flatMap((name) => [
    name,
    ...readdirSync(join(root, name), { recursive: true, encoding: "utf8" }).map((path) => join(name, path)),
  ]);
  const sources = ["package.json", "bun.lock", "tsconfig.json", ...folders];
  return sources.some((path) => statSync(join(root, path)).mtimeMs > builtAt);
}
