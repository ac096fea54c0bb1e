import { Fault } from "../fault.ts";
import type { NamedValue } from "./dotenv.ts";

/** What a text sets, by the rules of whoever will read it. Throws, or leaves out, what cannot be read. */
export type Reader = (text: string) => ReadonlyMap<string, string>;

/**
 * Writes variables one after the other, ordered by name, and reads the text back before anybody else does.
 *
 * @param variables - each name once
 * @param write - the text of one variable, whether or not it can carry the value
 * @throws Fault `env_unrepresentable` with the names of all values that do not come back exactly
 */
export function renderEach(
  variables: readonly NamedValue[],
  write: (variable: NamedValue) => string,
  read: Reader,
): string {
  const ordered = inOrder(variables);
  const texts = ordered.map(write);
  const lost = ordered.filter((variable, at) => !isExact(texts[at] ?? "", [variable], read));
  if (lost.length > 0) throw unrepresentable(lost);
  // Together once more: one variable must not change what its neighbours say.
  const text = texts.join("");
  if (!isExact(text, ordered, read)) throw unrepresentable(ordered);
  return text;
}

/** Whether the text sets these variables to exactly these values, and nothing besides. */
export function isExact(text: string, variables: readonly NamedValue[], read: Reader): boolean {
  try {
    const found = read(text);
    return found.size === variables.length && variables.every(({ name, value }) => found.get(name) === value);
  } catch {
    return false;
  }
}

/** The format cannot carry the values of these variables. */
export function unrepresentable(variables: readonly NamedValue[]): Fault {
  const names = variables.map(({ name }) => name);
  return new Fault("env_unrepresentable", `the format cannot carry ${names.join(", ")}`, { names });
}

/** By name; names are ASCII, so the order of their code units is byte order. */
function inOrder(variables: readonly NamedValue[]): NamedValue[] {
  return [...variables].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}
