import { realpathSync } from "node:fs";
import { configProblem } from "../../core/problem.ts";
import { HostRefused } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { writeWholeSync } from "../../core/whole-file.ts";
import { KeyFile, pathOf, rotateLock, textOf } from "../../installation/root-keys.ts";
import { Keyring, newKey } from "../../seal/keyring.ts";
import { databaseErrorCode } from "../../store/database.ts";
import { exclusively, type Lock } from "../../store/sqlite-file.ts";

/* What a rotation does to the file of root keys. */

/**
 * Locks the generated root key against other rotations until release or the end of the process.
 * @throws Refused `unavailable` if a rotation is running
 */
export function lockKeyFile(config: Config): Lock {
  const lock = exclusively(rotateLock(config), 0);
  if (lock) return lock;
  throw new HostRefused("unavailable", `Another rotation of ${pathOf(config)} is running.`);
}

/**
 * Puts a new root key in front of the generated one, unless the file holds two: then an earlier rotation must be
 * finished. The file is durable before this returns. Call it only under {@link lockKeyFile}.
 */
export function addRootKey(config: Config): void {
  const path = pathOf(config);
  const keys = new KeyFile(path, path).read();
  if (keys.length === 1) replaceKeyFile(path, [newKey(), ...keys]);
}

/**
 * Removes all root keys but the first from the generated file. Call it only under {@link lockKeyFile}, and once they
 * wrap nothing any more.
 * @param keep - whether they are kept beside it: every earlier backup needs them
 * @returns the files that keep them
 */
export function dropOlderRootKeys(config: Config, keep: boolean): string[] {
  const path = pathOf(config);
  const [first, ...older] = new KeyFile(path, path).read();
  if (first === undefined || older.length === 0) return [];
  const kept = (keep ? older : []).map((key) => {
    const retired = `${path}.retired-${new Keyring([key]).rootId}`;
    writeWholeSync("root-key", retired, true, textOf([key]));
    return retired;
  });
  replaceKeyFile(path, [first]);
  return kept;
}

/** @throws Problem and leaves the file unchanged */
function replaceKeyFile(path: string, keys: readonly Uint8Array[]): void {
  try {
    writeWholeSync("root-key", realpathSync(path), true, textOf(keys)); // a link stays a link
  } catch (error) {
    throw configProblem(`The root key ${path} cannot be replaced (${databaseErrorCode(error)}).`);
  }
}
