import { Fault } from "../fault.ts";
import { isVariableName } from "../names.ts";

/**
 * dotenv text as Keyhole writes it. There is no standard: the rules below were found by running hostile values through
 * some forty readers, and each looks odd only until one of those readers runs a command, eats the next variable or makes
 * up a new one. The tests run the readers; change nothing here without them.
 *
 * "Hot" characters are `"`, `\`, `$` and the backtick: those that a shell reads inside double quotes.
 */

export type NamedValue = { readonly name: string; readonly value: string };

/** The text, and the names of the values that at least one common reader will not give back exactly. */
export type DotenvText = { readonly text: string; readonly nonportable: readonly string[] };

/**
 * Writes variables as dotenv text, ordered by name. No shell and no reader that knows quotes runs a command, loses a
 * variable or gains one because of a value, but for dotenv-expand from 1000 on, which runs every `$(...)` it meets.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with all names that no harmless text can carry
 */
export function renderDotenv(variables: readonly NamedValue[]): DotenvText {
  const lines: string[] = [];
  const bareEnders: string[] = [];
  const quotedEnders: string[] = [];
  const nonportable: string[] = [];
  const unrepresentable: string[] = [];
  for (const { name, value } of [...variables].sort(byName)) {
    const written = isVariableName(name) ? writeValue(value) : undefined;
    if (written === undefined) {
      unrepresentable.push(name);
      continue;
    }
    if (!isPortable(value)) nonportable.push(name);
    const line = `${name}=${written}\n`;
    if (!value.endsWith("\\")) lines.push(line);
    else if (written !== value) quotedEnders.push(line);
    else bareEnders.push(`${line}\n`); // a shell takes the backslash for a line that goes on, and joins the next one
  }
  if (unrepresentable.length > 0) {
    throw new Fault("env_unrepresentable", `no harmless dotenv text for ${listNames(unrepresentable)}`, {
      names: unrepresentable,
    });
  }
  // The regular expressions of several readers take `\"` for a quote inside the value and read on to the next one, so
  // such values come last, and the quote in the comment stops the reader before it reaches the next of them.
  const text = lines.join("") + bareEnders.join("") + quotedEnders.join('# "\n');
  return { text, nonportable };
}

/** The `Keyhole-Env-Nonportable` header, `undefined` for no names; at most 4096 bytes, the rest told by `, ...`. */
export function nonportableHeader(names: readonly string[]): string | undefined {
  return names.length === 0 ? undefined : listNames(names);
}

const listBytesMax = 4096;

function listNames(names: readonly string[]): string {
  const whole = names.join(", ");
  if (whole.length <= listBytesMax) return whole;
  const cut = whole.lastIndexOf(", ", listBytesMax - ", ...".length);
  return `${whole.slice(0, Math.max(cut, 0))}, ...`;
}

/** Byte order: these names are ASCII, so it is also the order of their code units. */
function byName(a: NamedValue, b: NamedValue): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/**
 * What follows `NAME=`, by the first rule that fits, or `undefined` where nothing harmless fits. Every test is a single
 * pass: a value may be 64 KiB of anything, and must not buy time or stack.
 */
function writeValue(value: string): string | undefined {
  if (value.includes("\0") || !value.isWellFormed()) return undefined; // no environment holds a NUL, no UTF-8 the other
  if (isBare(value, bareCharacters)) return value;
  const endsInBackslash = value.endsWith("\\");
  if (endsInBackslash && isBare(value, bareCharactersOrBackslash)) return value;
  const breaksLine = value.includes("\n") || value.includes("\r");
  if ((breaksLine || value.includes("'")) && !hot.test(value)) {
    // Readers that know `\r` turn a raw CR into LF; those that do not know it lose a value with CR either way.
    return value.includes("\r") ? `"${escapeLineBreaks(value)}"` : `"${value}"`;
  }
  if (!value.includes("'") && !endsInBackslash) return `'${value}'`;
  if (!breaksLine && isBalanced(value)) return value;
  // dotenvx and ruby-dotenv run `$(` even behind a backslash, so the two are torn apart. That takes more than one run
  // of quotes, and of a line break in there the JavaScript readers would make new variables.
  if (value.includes("$(")) {
    if (breaksLine || breaksComment(value)) return undefined;
    return `"${escapeHot(value).replaceAll("\\$(", tornApart)}"`;
  }
  const escaped = escapeHot(value);
  // Node, Deno and Vite stop at the first `"` whatever precedes it, and read the lines that remain as variables.
  return value.includes('"') ? `"${escapeLineBreaks(escaped)}"` : `"${escaped}"`;
}

const bareCharacters = /^[\w./@%+,:=-]*$/;
const bareCharactersOrBackslash = /^[\w./@%+,:=\\-]*$/;
const hot = /["\\$`]/;
const tornApart = () => `\\$"'('"`; // a function: in a replacement text `$"` would mean something

/**
 * Whether a reader in JavaScript, to whom a `#` after the torn quotes begins a comment, would end it inside the value: its
 * lines end at U+2028 and U+2029 too, and what follows would be a variable.
 */
function breaksComment(value: string): boolean {
  const from = value.indexOf("#");
  return from >= 0 && Math.max(value.lastIndexOf("\u2028"), value.lastIndexOf("\u2029")) > from;
}

/** Safe without quotes in every shell; zsh takes `=cmd` for the path of a command, at the start and after a colon. */
function isBare(value: string, characters: RegExp): boolean {
  return !value.startsWith("=") && !value.includes(":=") && characters.test(value);
}

const balancedForbidden = /[#$`\n\r\u2028\u2029]/;
const balancedOutside = /[\w./@%+,:{}[\]-]/;

/**
 * Whether a value may stand bare although it has quotes, as compact JSON does: every quote closes, and outside the
 * quotes is nothing that a shell would act on. Written out because a regular expression of this shape (a group repeated
 * once per character) would need memory for each repetition.
 */
function isBalanced(value: string): boolean {
  if (balancedForbidden.test(value)) return false;
  for (let at = 0; at < value.length; at++) {
    const character = value.charAt(at);
    if (balancedOutside.test(character)) continue;
    if (at === 0) return false; // a quote here would be taken off
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

function escapeHot(value: string): string {
  return value.replace(/["\\$`]/g, "\\$&");
}

function escapeLineBreaks(value: string): string {
  return value.replaceAll("\r", "\\r").replaceAll("\n", "\\n");
}

const expanded = /\r|\\\\|\\\$|\\$|\$[A-Za-z0-9_{(]/;

/** Whether all readers that know quotes give the value back exactly. */
function isPortable(value: string): boolean {
  return !expanded.test(value) && !(value.includes("'") && hot.test(value));
}
