import { dlopen, FFIType, type Pointer, toArrayBuffer } from "bun:ffi";

/**
 * Overwrites values in the environment that this process was started with. On Linux others can read it in /proc for as
 * long as the process lives, however it is hardened, where they are root, as everybody is in most containers. What has
 * been read from `process.env` before stays as it was.
 *
 * @param names - variables, of which some may not be set
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
    // No glibc (musl): what the system's permissions protect is protected.
  }
}
