import { dlopen, FFIType } from "bun:ffi";

const { i32, i64, ptr, u64 } = FFIType;
const functions = {
  __errno_location: { args: [], returns: ptr },
  execve: { args: [ptr, ptr, ptr], returns: i32 },
  fcntl: { args: [i32, i32, i64], returns: i32 },
  getenv: { args: [ptr], returns: ptr },
  prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
  signal: { args: [i32, i64], returns: i64 },
  sigprocmask: { args: [i32, ptr, ptr], returns: i32 },
  strlen: { args: [ptr], returns: u64 },
  waitid: { args: [i32, i32, ptr, i32], returns: i32 },
  waitpid: { args: [i32, ptr, i32], returns: i32 },
} as const;

type Libc = ReturnType<typeof dlopen<typeof functions>>["symbols"];

let opened: Libc | null | undefined;

/** The C library, on Linux. Undefined elsewhere, and if the runtime cannot call it. */
export function libc(): Libc | undefined {
  if (opened === undefined) {
    try {
      opened = process.platform === "linux" ? dlopen("libc.so.6", functions).symbols : null;
    } catch {
      opened = null;
    }
  }
  return opened ?? undefined;
}
