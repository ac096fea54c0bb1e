import { dlopen, FFIType } from "bun:ffi";
import { scrubEnvironment } from "./scrub.ts";

const prSetDumpable = 4;

/**
 * Erases the secrets in this process's environment. On Linux it also forbids other processes of the same user to read
 * its memory, and turns core dumps off. To be called once the secrets have been read.
 */
export function harden(): void {
  const secrets = ["KEYHOLE_ROOT_KEY", "DATABASE_URL", "KEYHOLE_LIMITER_URL"];
  scrubEnvironment(secrets);
  for (const name of secrets) delete process.env[name];
  if (process.platform !== "linux") return;
  try {
    const libc = dlopen("libc.so.6", {
      prctl: { args: [FFIType.i32, FFIType.u64, FFIType.u64, FFIType.u64, FFIType.u64], returns: FFIType.i32 },
    });
    libc.symbols.prctl(prSetDumpable, 0n, 0n, 0n, 0n);
    libc.close();
  } catch {
    // Without glibc (musl) the memory is protected only as far as the system does it.
  }
}
