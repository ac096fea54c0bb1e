import { constants } from "node:fs";
import { access, link, open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { exits, Problem } from "./command.ts";

/**
 * Makes a file that appears whole or not at all, mode 0600, and is on the disk once this resolves.
 * @param fill - writes the draft that it is given the path of, an empty file
 * @param force - takes the place of a file that is there
 * @throws Problem where one is there, or the folder cannot be written; and what `fill` throws
 */
export async function writeWhole(path: string, force: boolean, fill: (draft: string) => Promise<void>): Promise<void> {
  // Told before the work, not after it; the link below is what makes sure.
  if (!force && (await isThere(path))) throw exists(path);
  const draft = `${path}.${crypto.randomUUID().slice(0, 8)}.part`;
  try {
    await (await open(draft, "wx", 0o600)).close();
    await fill(draft);
    await sync(draft);
    if (force) await rename(draft, path);
    else await link(draft, path);
    await sync(dirname(path));
  } catch (error) {
    throw problemOf(path, error);
  } finally {
    await rm(draft, { force: true });
  }
}

/** Flushes a file or a folder to the disk. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function exists(path: string): Problem {
  return new Problem(exits.failed, "exists", `${path} is there already: name another file, or add --force.`);
}

function problemOf(path: string, error: unknown): unknown {
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "EEXIST") return exists(path);
  if (syscall === undefined) return error;
  return new Problem(exits.failed, "unwritable", `${path} cannot be written (${code}).`, { cause: error });
}
