import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { attempt } from "../attempt.ts";
import { usageProblem } from "../problem.ts";
import { bytesOf, wouldChange } from "./inherited.ts";

/* What a child process inherits. */

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
