import { type Pointer, ptr, read } from "bun:ffi";
import { readFileSync } from "node:fs";
import { getSystemErrorName } from "node:util";
import type { Command } from "../client/run.ts";
import type { Descriptor } from "../core/settings/children.ts";
import { bytesOf } from "../core/settings/inherited.ts";
import { libc } from "./libc.ts";

/**
 * Puts the command in the place of this process: same process id, its environment byte for byte, the descriptors that
 * this process was started with, no signal ignored or blocked. Returns if the system has no call for that.
 * @throws Error with the system's code if the system refuses
 * @see https://man7.org/linux/man-pages/man2/execve.2.html
 */
export function replaceBy({ path, argv, env }: Command, inherited: readonly Descriptor[]): void {
  const system = libc();
  if (system === undefined) return;
  giveBack(inherited);
  for (const signal of ignoredSignals()) system.signal(signal, defaultAction);
  system.sigprocmask(setMask, Buffer.alloc(sigsetBytes), null);
  // The path comes first, so that this one buffer is also the path.
  const words = [path, ...argv.map(bytesOf), ...env];
  const texts = Buffer.from(words.map((word) => `${word}\0`).join(""), "latin1");
  const pointers = pointersTo(words, ptr(texts));
  const args = BigUint64Array.of(...pointers.slice(1, 1 + argv.length), 0n);
  const variables = BigUint64Array.of(...pointers.slice(1 + argv.length), 0n);
  system.execve(texts, args, variables);
  const code = getSystemErrorName(-read.i32(system.__errno_location() as Pointer, 0));
  throw Object.assign(new Error(`execve: ${code}`), { code });
}

/** Makes descriptors as they were, for a command that gets them: the runtime closes them and makes streams non-blocking. */
export function giveBack(inherited: readonly Descriptor[]): void {
  for (const { fd, flags } of inherited) {
    libc()?.fcntl(fd, setDescriptorFlags, 0n);
    libc()?.fcntl(fd, setStatusFlags, BigInt(flags));
  }
}

/** The runtime ignores SIGPIPE and SIGXFSZ. A signal with a handler gets its default action from the system. */
function ignoredSignals(): number[] {
  const [, hex = "0"] = /^SigIgn:\s*(\w+)$/m.exec(readFileSync("/proc/self/status", "utf8")) ?? [];
  const bits = BigInt(`0x${hex}`);
  return Array.from({ length: 64 }, (_, at) => at + 1).filter((signal) => (bits >> BigInt(signal - 1)) & 1n);
}

/** Where each word begins, if they stand one after another with a NUL after each. */
function pointersTo(words: readonly string[], begin: number): bigint[] {
  let at = begin;
  return words.map((word) => {
    const pointer = BigInt(at);
    at += word.length + 1;
    return pointer;
  });
}

/**
 * As process 1, ends the entries of processes that ended after their parents, which only their new parent can do.
 * @param own - a child whose end the runtime waits for
 */
export function reapOrphans(own: number | undefined): void {
  const info = new Int32Array(siginfoBytes / 4);
  for (;;) {
    info[siginfoPid] = 0;
    libc()?.waitid(anyChild, 0, info, exited | noHang | keep);
    const pid = info[siginfoPid] as number;
    if (pid === 0 || pid === own) return;
    libc()?.waitpid(pid, null, noHang);
  }
}

/* Numbers of Linux, the same on x64 and arm64. */
const setDescriptorFlags = 2;
const setStatusFlags = 4;
const defaultAction = 0n;
const setMask = 2;
const sigsetBytes = 128;
const siginfoBytes = 128;
const siginfoPid = 4; // the fifth int
const anyChild = 0;
const [noHang, exited, keep] = [1, 4, 0x01000000];
