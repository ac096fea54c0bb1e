import { byName, type NamedValue, unrepresentable } from "./dotenv.ts";

/** Reads the variables that a text sets, as the consumer of the format does. Throws if it cannot read the text. */
export type Reader = (text: string) => ReadonlyMap<string, string>;

/**
 * Writes variables ordered by name, and returns the text only if it reads back exactly.
 *
 * @param variables - each name once
 * @param write - the text of one variable; need not check that the format can carry the value
 * @throws Fault `env_unrepresentable` with the names of all variables that do not read back exactly
 */
export function renderEach(
  variables: readonly NamedValue[],
  write: (variable: NamedValue) => string,
  read: Reader,
): string {
  const ordered = variables.toSorted(byName);
  const texts = ordered.map(write);
  const lost = ordered.filter((variable, at) => !isExact(texts[at] ?? "", [variable], read));
  if (lost.length > 0) throw unrepresentable(lost);
  // A variable that reads back alone could still change how its neighbours read.
  const text = texts.join("");
  if (!isExact(text, ordered, read)) throw unrepresentable(ordered);
  return text;
}

/** Whether the text sets exactly these variables to exactly these values. */
export function isExact(text: string, variables: readonly NamedValue[], read: Reader): boolean {
  try {
    const found = read(text);
    return found.size === variables.length && variables.every(({ name, value }) => found.get(name) === value);
  } catch {
    return false;
  }
}
