import { readFileSync } from "node:fs";
import { usageProblem } from "../problem.ts";
import type { Env } from "./setting-names.ts";

/*
 * What this process was started with, as it was. The runtime shows the environment as text, in which bytes that are not
 * UTF-8 have become U+FFFD. Here an entry of it is `NAME=value` in Latin-1, so each character is a byte. A few entries
 * may have no `=`.
 */

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

export function wouldChange(name: string): Error {
  return usageProblem(`The variable ${name} is not UTF-8, so it would not arrive unchanged: unset it first.`);
}
