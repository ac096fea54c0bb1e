import { Fault } from "../fault.ts";
import { isVariableName } from "../names.ts";

/*
 * dotenv text has no standard. The rules here come from tests with hostile values and some forty readers. Without any
 * one of the rules, a reader runs a command, loses the next variable or invents one. Change nothing without those
 * tests.
 *
 * "Special" characters are `"`, `\`, `$` and the backtick: a shell interprets them inside double quotes.
 */

/** A variable with its plaintext value. */
export type NamedValue = { readonly name: string; readonly value: string };

/**
 * Writes variables as dotenv text, ordered by name. No value can make a shell, or a reader that supports quotes, run a
 * command, lose a variable or gain one. The exception is dotenv-expand 1000 and newer, which runs every `$(...)`.
 * @param variables - each name once
 * @returns the text, and the names of the variables that at least one common reader does not read back exactly
 * @throws Fault `env_unrepresentable` with the names of all variables that no harmless text can carry
 */
export function renderDotenv(variables: readonly NamedValue[]): { text: string; nonportable: string[] } {
  const lines: string[] = [];
  /** Lines that end in a backslash, without quotes and with them. */
  const bareBackslash: string[] = [];
  const quotedBackslash: string[] = [];
  const nonportable: string[] = [];
  const refused: NamedValue[] = [];
  for (const variable of variables.toSorted(byName)) {
    const { name, value } = variable;
    const written = isVariableName(name) ? writeValue(value) : undefined;
    if (written === undefined) {
      refused.push(variable);
      continue;
    }
    if (!isPortable(value)) nonportable.push(name);
    const line = `${name}=${written}\n`;
    if (!value.endsWith("\\")) lines.push(line);
    else if (written !== value) quotedBackslash.push(line);
    else bareBackslash.push(`${line}\n`); // a shell joins the line after a trailing backslash, so an empty one follows
  }
  if (refused.length > 0) throw unrepresentable(refused);
  // The regular expressions of several readers take the final `\"` for an escaped quote and read on to the next quote.
  // So these lines come last, and a comment with a quote between them stops such a reader.
  const text = lines.join("") + bareBackslash.join("") + quotedBackslash.join('# "\n');
  return { text, nonportable };
}

/** The fault for variables whose values the format cannot carry. */
function unrepresentable(variables: readonly NamedValue[]): Fault {
  const names = variables.map(({ name }) => name);
  return new Fault("env_unrepresentable", `the format cannot carry ${listNames(names)}`, { names });
}

const listBytesMax = 4096;

/** Names of variables with commas, at most 4096 bytes; `, ...` stands for those left out. */
export function listNames(names: readonly string[]): string {
  const whole = names.join(", ");
  if (whole.length <= listBytesMax) return whole;
  const cut = whole.lastIndexOf(", ", listBytesMax - ", ...".length);
  return `${whole.slice(0, Math.max(cut, 0))}, ...`;
}

/**
 * Writes variables ordered by name. The property tests read the text of every format back with other programs.
 * @throws Fault `env_unrepresentable` with the names of all variables that the format cannot carry
 */
export function renderEach(
  variables: readonly NamedValue[],
  write: (variable: NamedValue) => string,
  carries: (variable: NamedValue) => boolean = () => true,
): string {
  const refused = variables.filter((variable) => !variable.value.isWellFormed() || !carries(variable));
  if (refused.length > 0) throw unrepresentable(refused);
  return variables.toSorted(byName).map(write).join("");
}

/** Orders variables by name. Names are ASCII, so the order of their code units is byte order. */
function byName(a: NamedValue, b: NamedValue): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/**
 * What follows `NAME=`, by the first rule that applies, or `undefined` if no harmless text exists. Every check is a
 * single pass without recursion, because a value may be 64 KiB of anything.
 */
function writeValue(value: string): string | undefined {
  if (value.includes("\0") || !value.isWellFormed()) return undefined; // NUL or a lone surrogate
  if (isBare(value, bareCharacters)) return value;
  const endsInBackslash = value.endsWith("\\");
  if (endsInBackslash && isBare(value, bareCharactersOrBackslash)) return value;
  const breaksLine = value.includes("\n") || value.includes("\r");
  if ((breaksLine || value.includes("'")) && !special.test(value)) {
    // Readers that support `\r` turn a raw CR into LF. The others read a value with CR wrongly in both forms.
    return value.includes("\r") ? `"${escapeLineBreaks(value)}"` : `"${value}"`;
  }
  if (!value.includes("'") && !endsInBackslash) return `'${value}'`;
  if (!breaksLine && isBalanced(value)) return value;
  // dotenvx and ruby-dotenv run `$(` even after a backslash, so `$` and `(` go into different quotes. With a line
  // break in them, JavaScript readers would find new variables.
  if (value.includes("$(")) {
    if (breaksLine || breaksComment(value)) return undefined;
    return `"${escapeSpecial(value).replaceAll("\\$(", splitCommand)}"`;
  }
  const escaped = escapeSpecial(value);
  // Node, Deno and Vite stop at the first `"`, escaped or not, and read the remaining lines as variables.
  return value.includes('"') ? `"${escapeLineBreaks(escaped)}"` : `"${escaped}"`;
}

const bareCharacters = /^[\w./@%+,:=-]*$/;
const bareCharactersOrBackslash = /^[\w./@%+,:=\\-]*$/;
const special = /["\\$`]/;
const splitCommand = () => `\\$"'('"`; // a function, because `$` has a meaning in a replacement string

/**
 * Whether a JavaScript reader would find a new variable in the value: it takes `#` after the split quotes for a
 * comment, and ends the comment at U+2028 or U+2029.
 */
function breaksComment(value: string): boolean {
  const from = value.indexOf("#");
  return from >= 0 && Math.max(value.lastIndexOf("\u2028"), value.lastIndexOf("\u2029")) > from;
}

/** Safe without quotes in every shell. zsh replaces `=cmd` with a path, at the start and after a colon. */
function isBare(value: string, characters: RegExp): boolean {
  return !value.startsWith("=") && !value.includes(":=") && characters.test(value);
}

const balancedForbidden = /[#$`\n\r\u2028\u2029]/;
const balancedOutside = /[\w./@%+,:{}[\]-]/;

/**
 * Whether a value with quotes, such as compact JSON, is safe without more quotes: every quote closes, and the rest
 * contains nothing that a shell interprets. A regular expression for this would need memory for each character.
 */
function isBalanced(value: string): boolean {
  if (balancedForbidden.test(value)) return false;
  for (let at = 0; at < value.length; at++) {
    const character = value.charAt(at);
    if (balancedOutside.test(character)) continue;
    if (at === 0) return false; // readers would strip this quote
    if (character === "=") {
      if (/[:'"]/.test(value.charAt(at - 1))) return false;
    } else if (character === "'" || character === '"') {
      at = closingQuote(value, at);
      if (at === -1) return false;
    } else return false;
  }
  return value.length > 0;
}

function closingQuote(value: string, open: number): number {
  if (value.charAt(open) === "'") return value.indexOf("'", open + 1);
  for (let at = open + 1; at < value.length; at++) {
    const character = value.charAt(at);
    if (character === "\\") at++;
    else if (character === '"') return at;
  }
  return -1;
}

function escapeSpecial(value: string): string {
  return value.replaceAll(/["\\$`]/g, "\\$&");
}

function escapeLineBreaks(value: string): string {
  return value.replaceAll("\r", "\\r").replaceAll("\n", "\\n");
}

const expanded = /\r|\\\\|\\\$|\\$|\$[A-Za-z0-9_{(]/;

/** Whether every reader that supports quotes reads the value back exactly. */
function isPortable(value: string): boolean {
  return !expanded.test(value) && !(value.includes("'") && special.test(value));
}
