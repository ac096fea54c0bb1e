import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { attempt } from "../core/attempt.ts";
import { usageProblem } from "../core/problem.ts";

/*
 * What this process was started with, as it was. The runtime shows the environment as text, in which bytes that are not
 * UTF-8 have become U+FFFD. Here an entry of it is `NAME=value` in Latin-1, so each character is a byte. A few entries
 * may have no `=`.
 */

type Env = Readonly<Record<string, string | undefined>>;

/** The environment. @throws Problem if the system does not show what the runtime has changed: only Linux does */
export function inheritedEntries(): string[] {
  try {
    return readFileSync("/proc/self/environ", "latin1").split("\0").slice(0, -1);
  } catch {
    return Object.entries(process.env).map(([name, value]) => {
      if (mayBeChanged(name, value)) throw wouldChange(name);
      return bytesOf(`${name}=${value}`);
    });
  }
}

function mayBeChanged(name: string, value: string | undefined): boolean {
  return `${name}${value}`.includes("\uFFFD");
}

/** The bytes of a text, as an entry has them. */
export function bytesOf(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** The text of bytes that are UTF-8. */
export function textOf(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString();
}

/** The name of an entry; names on Windows may begin with `=`. */
export function nameOf(entry: string): string {
  const end = entry.indexOf("=", 1);
  return end === -1 ? entry : entry.slice(0, end);
}

/** Entries as text, which is all that some functions of the runtime take. @throws Problem if text would change one */
export function textEnvironment(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const name = nameOf(entry);
      if (name === entry) throw usageProblem("An entry of the environment has no =, so it would not arrive unchanged.");
      if (bytesOf(textOf(entry)) !== entry) throw wouldChange(textOf(name));
      return [textOf(name), textOf(entry.slice(name.length + 1))];
    }),
  );
}

/**
 * The environment for a program that Keyhole itself needs, such as an editor, without the settings of Keyhole.
 * @throws Problem if a variable would not arrive unchanged
 */
export function withoutSettings(env: Env): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => name !== "DATABASE_URL" && !name.startsWith("KEYHOLE_"));
  for (const [name, value] of kept) {
    const isChanged = mayBeChanged(name, value) && !inheritedEntries().includes(bytesOf(`${name}=${value}`));
    if (isChanged) throw wouldChange(name);
  }
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}

function wouldChange(name: string): Error {
  return usageProblem(`The variable ${name} is not UTF-8, so it would not arrive unchanged: unset it first.`);
}

/** A descriptor, and its status flags such as O_NONBLOCK. */
export type Descriptor = { readonly fd: number; readonly flags: number };

/**
 * The descriptors that this process was started with; none if the system does not tell. Call it before anything opens
 * one, and before the standard streams are used: the runtime changes their flags.
 */
export function inheritedDescriptors(): Descriptor[] {
  const names = attempt(() => readdirSync("/proc/self/fd")) ?? []; // without /proc, none
  const descriptors = names.map((name) =>
    attempt(() => {
      // The runtime's own event loop.
      if (/^anon_inode:\[event(?:poll|fd)\]$/.test(readlinkSync(`/proc/self/fd/${name}`))) return undefined;
      const [, flags = "0"] = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${name}`, "utf8")) ?? [];
      return { fd: Number(name), flags: Number.parseInt(flags, 8) };
    }),
  );
  return descriptors.filter((found) => found !== undefined); // the others were open for this list alone
}
