import type { Config } from "../settings/settings.ts";
import { exclusively } from "../store/sqlite-file.ts";
import { removeRestoreDrafts, serveLock } from "./data-folder.ts";
import { removeKeyDrafts, rotateLock } from "./root-keys.ts";

/**
 * Removes the files that killed commands left in the data folder: drafts of the root key, which hold live root keys,
 * and of a restored database. A draft that a command writes now stays. Call it before the server takes its lock.
 */
export function removeLeftovers(config: Config): void {
  if (config.postgres !== undefined) return;
  if (config.rootKey.from === "folder") whileLocked(rotateLock(config), () => removeKeyDrafts(config));
  whileLocked(serveLock(config), () => removeRestoreDrafts(config));
}

function whileLocked(path: string, work: () => void): void {
  using lock = exclusively(path, 0);
  if (lock) work();
}
