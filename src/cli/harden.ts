import { dlopen, FFIType } from "bun:ffi";
import { scrubEnvironment } from "./scrub.ts";

const prSetDumpable = 4;

/**
 * Takes from the process what it no longer needs and others could read: the secrets in its environment, and on Linux the right of processes of the same user to look into its memory, core dumps included.
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
    // No glibc (musl): the memory stays as protected as the system makes it.
  }
}
