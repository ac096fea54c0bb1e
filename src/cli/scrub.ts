import { dlopen, FFIType, type Pointer, toArrayBuffer } from "bun:ffi";

/**
 * Overwrites values in the environment that this process was started with. On Linux root can read it in /proc as long
 * as the process lives, and in most containers every process runs as root. Values already read from `process.env` stay.
 *
 * @param names - variables, set or not
 */
export function scrubEnvironment(names: readonly string[]): void {
  if (process.platform !== "linux") return;
  try {
    const libc = dlopen("libc.so.6", { getenv: { args: [FFIType.cstring], returns: FFIType.ptr } });
    for (const name of names) {
      const length = Buffer.byteLength(process.env[name] ?? "");
      const at = length === 0 ? null : (libc.symbols.getenv(Buffer.from(`${name}\0`)) as Pointer | null);
      if (at !== null) new Uint8Array(toArrayBuffer(at, 0, length)).fill(0x2a);
    }
    libc.close();
  } catch {
    // Without glibc (musl) only the system's permissions protect the environment.
  }
}
