import { type Pointer, toArrayBuffer } from "bun:ffi";
import { secretSettingNames } from "../core/settings/setting-names.ts";
import { libc } from "./libc.ts";

/**
 * Erases the secrets in this process's environment. On Linux it also forbids other processes of the same user to read
 * its memory, and turns core dumps off. Call it once the secrets have been read.
 */
export function harden(): void {
  scrubEnvironment(secretSettingNames);
  for (const name of secretSettingNames) delete process.env[name];
  libc()?.prctl(prSetDumpable, 0n, 0n, 0n, 0n);
}

const prSetDumpable = 4;

/**
 * Overwrites values in the environment that this process was started with: on Linux, root can read them in /proc, and
 * in most containers every process runs as root. Values already read from `process.env` stay.
 * @param names - in Latin-1, each character a byte
 */
export function scrubEnvironment(names: readonly string[]): void {
  const { getenv, strlen } = libc() ?? {};
  for (const name of names) {
    const at = getenv?.(Buffer.from(`${name}\0`, "latin1")) as Pointer | null | undefined;
    const length = at ? Number(strlen?.(at)) : 0;
    if (at && length > 0) new Uint8Array(toArrayBuffer(at, 0, length)).fill(0x2a);
  }
}
