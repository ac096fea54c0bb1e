import { dlopen, FFIType, type Pointer, toArrayBuffer } from "bun:ffi";

/**
 * Erases the secrets in this process's environment. On Linux it also forbids other processes of the same user to read
 * its memory, and turns core dumps off. Call it once the secrets have been read.
 */
export function harden(): void {
  const secrets = ["KEYHOLE_ROOT_KEY", "DATABASE_URL", "PGPASSWORD", "KEYHOLE_LIMITER_URL"];
  scrubEnvironment(secrets);
  for (const name of secrets) delete process.env[name];
  withLibc(({ prctl }) => prctl(prSetDumpable, 0n, 0n, 0n, 0n));
}

/**
 * Overwrites values in the environment that this process was started with: on Linux, root can read them in /proc, and
 * in most containers every process runs as root. Values already read from `process.env` stay.
 */
export function scrubEnvironment(names: readonly string[]): void {
  withLibc(({ getenv }) => {
    for (const name of names) {
      const length = Buffer.byteLength(process.env[name] ?? "");
      const at = length === 0 ? null : (getenv(Buffer.from(`${name}\0`)) as Pointer | null);
      if (at !== null) new Uint8Array(toArrayBuffer(at, 0, length)).fill(0x2a);
    }
  });
}

const prSetDumpable = 4;
const { cstring, i32, ptr, u64 } = FFIType;
const functions = {
  getenv: { args: [cstring], returns: ptr },
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
} as const;

function withLibc(work: (libc: ReturnType<typeof dlopen<typeof functions>>["symbols"]) => void): void {
  if (process.platform !== "linux") return;
  try {
    const libc = dlopen("libc.so.6", functions);
    work(libc.symbols);
    libc.close();
  } catch {
    // Without glibc (on musl), only the system's permissions protect the environment and the memory.
  }
}
