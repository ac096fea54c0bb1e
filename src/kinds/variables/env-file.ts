import { parse } from "dotenv";
import { isVariableName, variableValueBytesMax } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { isSteering } from "../../core/words/steering.ts";
import { counted } from "../../core/words/text.ts";
import { unseenIn } from "../../core/words/unseen.ts";
import { setItemsMax } from "../../serve/sets/kind.ts";
import { findForeign, isEscapedPem } from "./foreign.ts";

/** What a dotenv file holds. Problems and warnings are sentences with a line and perhaps a name, never a value. */
export type EnvFile = {
  /** In the file's order; `line` is where the assignment begins, counted from 1. */
  readonly variables: readonly (Pick<Statement, "note"> & {
    readonly name: string;
    readonly value: string;
    readonly line: number;
  })[];
  /** About values that may not be what their author meant. */
  readonly warnings: readonly string[];
  /** Why the file is refused. */
  readonly problems: readonly string[];
};

/**
 * Reads a dotenv file for an import. The npm package dotenv decodes the values, but it silently skips what it does not
 * understand. So this function splits the file into statements, decodes each value alone, and refuses what two readers
 * of such files read differently. A byte order mark and CR LF are allowed.
 */
export function parseEnvFile(text: string, isLiteral?: IsLiteral): EnvFile {
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  // Unless every line ends in CR LF, a carriage return inside quotes may be part of the value.
  const body = /(?<!\r)\n/.test(source) ? source : source.replaceAll("\r\n", "\n");
  return envFileOf(statementsIn(body), isLiteral);
}

function* statementsIn(body: string): Generator<Statement> {
  let comments: string[] = [];
  for (let at = 0, line = 1; at < body.length; ) {
    const { end, ...statement } = readStatement(body, at, line);
    const comment = /^[ \t]*#(.*)/.exec(body.slice(at, end))?.[1];
    yield { ...statement, line, note: comment === undefined ? noteOf(comments) : undefined };
    if (comment === undefined) comments = [];
    else comments.push(comment);
    line += countLineBreaks(body.slice(at, end));
    at = end;
  }
}

/** The note that the lines of a comment are. There is none if one of them may hold a value, which may be a secret. */
export function noteOf(comment: readonly string[]): string | undefined {
  const lines = comment.filter((line) => /[\p{L}\p{N}]/u.test(line)); // and not of dashes alone
  return lines.length === 0 || lines.some(mayHoldValue) ? undefined : lines.join(" ");
}

function mayHoldValue(line: string): boolean {
  const words = line.split(/\s+/).filter((word) => !/^[("'<]*https?:\/\/[^@]*$/.test(word));
  const text = words.join(" ");
  if (assigning.test(text) || setting.test(text) || /-----(?:BEGIN|END) /.test(text)) return true;
  return words.some((word) => word.length >= 16 && /\d/.test(word) && /[A-Za-z]/.test(word));
}

/** A name, then `=`, `:`, `:=`, `=>` or `->`, wherever it is in a line: after another `#` or a dash. */
const assigning = /(?<![\w.?&-])[\w.-]+["'`]?\s*(?:\+?=|->|:(?!\/\/))/;
/** `set NAME value`, or the same in another language. */
const setting = /\b(?:[sS][eE][tT]\w*|[eE]xport|ENV|ARG|[pP]ut)\s+["'`]?(?=[\w.-]*[A-Z\d_])[\w.-]+["'`]?\s+\S/;

/** Whether a variable is taken as it is, even if its value is encrypted text or a reference of another tool. */
export type IsLiteral = (name: string, value: string) => boolean;

/**
 * Combines the statements of a file. A name that is set twice is a problem, and so is text that another tool has still
 * encrypted.
 * @throws Refused `bound` once there are more variables than an environment can hold
 */
export function envFileOf(statements: Iterable<Statement>, isLiteral: IsLiteral = () => false): EnvFile {
  const variables: EnvFile["variables"][number][] = [];
  const warnings: string[] = [];
  const problems: string[] = [];
  const lineByName = new Map<string, number>();
  for (const { line, name, value, note, ...found } of statements) {
    if (problems.length >= problemsMax) {
      problems.push(`line ${line} and those after it were not looked at`);
      break;
    }
    for (const problem of found.problems ?? []) problems.push(`line ${line}: ${problem}`);
    for (const warning of found.warnings ?? []) warnings.push(`line ${line}: ${warning}`);
    if (name === undefined) continue;
    if (lineByName.size >= setItemsMax && !lineByName.has(name)) throw tooMany();
    const earlier = lineByName.get(name);
    lineByName.set(name, earlier ?? line);
    if (earlier !== undefined) problems.push(`line ${line}: ${name} is already set on line ${earlier}`);
    if (earlier !== undefined || value === undefined) continue;
    variables.push({ name, value, line, ...(note !== undefined && { note }) });
    const foreign = isLiteral(name, value) ? undefined : findForeign(name, value);
    if (foreign !== undefined)
      problems.push(`line ${line}: ${name} ${foreign}, or give --literal to store it as it is`);
    if (isEscapedPem(value)) warnings.push(`line ${line}: ${name} ${escapedPem}`);
  }
  return { variables, warnings, problems };
}

/** Enough for one round of corrections. */
const problemsMax = 20;

/** The refusal of a text with more names than an environment can hold. */
export function tooMany(): Refused {
  return new Refused("bound", `The text has more than the ${setItemsMax} variables that an environment can hold.`);
}

/** A clause of warning if machines refuse a variable of this valid name, or some reader of dotenv files fails on it. */
export function nameWarnings(name: string): string[] {
  if (isSteering(name, "linux") || isSteering(name, "win32")) {
    const refused = `\`run\` and \`pull\` refuse it without --allow-name ${name}`;
    return [`${name} steers loaders, runtimes, shells or CI: ${refused}`];
  }
  if (prototypeNames.has(name)) {
    return [`${name} is a name that every JavaScript object has: dotenvx and Vite crash on a dotenv file that sets it`];
  }
  if (shellNames.has(name)) return [`${name} is special in some shells, which refuse it, change it or act on it`];
  return [];
}

const escapedPem = 'is a key in PEM with "\\n" in place of line breaks, which is kept as written';

/** Warnings about a value that may be a mistake. */
export function valueWarnings(name: string, value: Uint8Array): string[] {
  const text = Buffer.from(value).toString();
  const foreign = findForeign(name, text);
  return [
    ...(foreign === undefined ? [] : [`${name} ${foreign}. It is stored as it is.`]),
    ...(isEscapedPem(text) ? [`${name} ${escapedPem}.`] : []),
    ...unseenInValues([{ name, value: text }]),
    ...(value.length === 0 ? [`The value of ${name} is empty.`] : []),
  ];
}

/** Names what nobody sees in values, at most twenty of them. */
export function unseenInValues(variables: Iterable<{ readonly name: string; readonly value: string }>): string[] {
  const all = [...variables].flatMap(({ name, value }) => unseenIn(`The value of ${name}`, value));
  const more = all.length - unseenMax;
  return more > 0 ? [...all.slice(0, unseenMax), `The same goes for ${counted(more, "more value")}.`] : all;
}

const unseenMax = 20;

/** Says why a variable cannot have this value. */
export function findValueProblem(value: string): string | undefined {
  if (value.includes("\0")) return "holds a NUL, which no environment can carry";
  if (!value.isWellFormed()) return "holds half a surrogate pair, which is not text";
  return Buffer.byteLength(value) > variableValueBytesMax ? tooLong : undefined;
}

const tooLong = `is longer than ${variableValueBytesMax} bytes`;

const prototypeNames: ReadonlySet<string> = new Set(Object.getOwnPropertyNames(Object.prototype));

const shellNames: ReadonlySet<string> = new Set([
  ...["UID", "EUID", "PPID", "OPTIND", "BASHOPTS", "SHELLOPTS", "LINENO", "RANDOM", "SECONDS", "PATH"],
  ...["path", "status", "argv"],
]);

/** An assignment, or a statement that should be one. A wrong one has no `value`, and perhaps no `name`. */
export type Statement = {
  readonly line: number;
  readonly name?: string;
  readonly value?: string;
  /** What the comment above it says. */
  readonly note?: string | undefined;
  readonly problems?: readonly string[];
  readonly warnings?: readonly string[];
};

/** A value before decoding: without its quotes, or without the blanks around it and the comment after it. */
type RawValue = { readonly end: number; readonly quote: string; readonly raw: string; readonly problem?: string };

// Sticky. None backtracks over a line more than a fixed number of times.
const blankOrComment = /[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y;
const blankOrSeparateComment = /(?:[ \t]+(?:#[^\n]*)?)?\r?(?:\n|$)/y;
const assignment = /[ \t]*(?:export[ \t]+)?([^\s=#'"`]+)[ \t]*=[ \t]*/y;

/** One line, or the lines of a quoted value, up to `end`. */
function readStatement(body: string, at: number, line: number): Omit<Statement, "line"> & { readonly end: number } {
  const blankEnd = endOfMatch(blankOrComment, body, at);
  if (blankEnd !== undefined) return { end: blankEnd };
  assignment.lastIndex = at;
  const name = assignment.exec(body)?.[1];
  if (name === undefined) return { end: nextLine(body, at), problems: [noAssignment] };
  const valueAt = assignment.lastIndex;
  const written = /['"`]/.test(body.charAt(valueAt)) ? readQuoted(body, valueAt, line) : readBare(body, valueAt);
  const { end } = written;
  if (!isVariableName(name)) {
    const more = written.problem === undefined ? [] : [`the variable ${written.problem}`];
    return { end, problems: [sayInvalid(name, written), ...more] };
  }
  const decoded = decode(name, written);
  if ("problem" in decoded) return { end, name, problems: [`${name} ${decoded.problem}`] };
  return { end, name, value: decoded.value, warnings: warningsAbout(name, written) };
}

const openQuote = "has a quote that is never closed, so nothing after it could be read";
const noAssignment = "this is not an assignment of the form NAME=value";

function readQuoted(body: string, open: number, line: number): RawValue {
  const quote = body.charAt(open);
  const close = closingQuote(body, open);
  if (close === -1) return { end: body.length + 1, quote, raw: "", problem: openQuote };
  const raw = body.slice(open + 1, close);
  const end = endOfMatch(blankOrSeparateComment, body, close + 1);
  if (end !== undefined) return { end, quote, raw };
  const lineOfQuote = line + countLineBreaks(body.slice(open, close));
  const problem =
    body.charAt(close + 1) === "#"
      ? 'has a "#" right after its closing quote: put a blank before it'
      : `has text after its closing quote on line ${lineOfQuote}`;
  return { end: nextLine(body, close), quote, raw, problem };
}

/**
 * In double quotes, a backslash escapes the next character for every reader. In other quotes it does so for dotenv, but
 * not for a shell. So there, a quote after a backslash closes the value only at the end of a line, as in `'C:\'`, which
 * both read alike. Anything else is refused later.
 */
function closingQuote(body: string, open: number): number {
  const quote = body.charAt(open);
  for (let at = body.indexOf(quote, open + 1); at !== -1; at = body.indexOf(quote, at + 1)) {
    let backslashes = 0;
    while (body.charAt(at - 1 - backslashes) === "\\") backslashes++;
    if (quote === '"' ? backslashes % 2 === 0 : backslashes === 0) return at;
    if (quote !== '"' && endOfMatch(blankOrSeparateComment, body, at + 1) !== undefined) return at;
  }
  return -1;
}

function readBare(body: string, start: number): RawValue {
  const end = nextLine(body, start);
  const line = body.slice(start, end).replace(/\r?\n$/, "");
  const hash = line.indexOf("#");
  const raw = trimBlankEnd(hash === -1 ? line : line.slice(0, hash));
  const written = { end, quote: "", raw };
  if (hash === -1) return written;
  if (!/[ \t]/.test(body.charAt(start + hash - 1))) return { ...written, problem: unclearComment };
  return /['"`]/.test(raw) ? { ...written, problem: commentAfterQuotes } : written;
}

const unclearComment = 'has a "#" where some readers begin a comment and some do not: put the value in quotes';
const commentAfterQuotes = 'has quotes and then a "#" in an unquoted value: put the whole value in quotes';

/** A regular expression would take quadratic time on a long run of blanks. */
function trimBlankEnd(text: string): string {
  let end = text.length;
  while (end > 0 && (text.charAt(end - 1) === " " || text.charAt(end - 1) === "\t")) end--;
  return text.slice(0, end);
}

/** Decodes with dotenv's fast parser: its other one is a regular expression that fails silently on large values. */
function decode(name: string, written: RawValue): { readonly value: string } | { readonly problem: string } {
  const { quote, raw, problem } = written;
  if (problem !== undefined) return { problem };
  if (raw.includes("\r")) return { problem: 'holds a carriage return: write it as "\\r" in double quotes' };
  if (raw.length > 2 * variableValueBytesMax) return { problem: tooLong }; // decoding at most halves the length
  const odd = { problem: "holds a blank or line break that readers take differently: put the value in quotes" };
  if (quote === "" && /[\u2028\u2029]/.test(raw)) return odd;

  const parsed = parse(`${name}=${quote}${raw}${quote}`, { fast: true });
  const value = parsed[name];
  if (value === undefined || Object.keys(parsed).length !== 1) return { problem: "is not understood by dotenv" };
  if (quote === "" && value !== raw) return odd;
  const unusable = findValueProblem(value);
  return unusable === undefined ? { value } : { problem: unusable };
}

function warningsAbout(name: string, { quote, raw }: RawValue): string[] {
  const warnings = nameWarnings(name);
  if (quote === '"' && raw.match(/\\[\s\S]/g)?.some((pair) => pair !== "\\n" && pair !== "\\r")) {
    warnings.push(`${name} holds backslashes other than "\\n" and "\\r", and they are kept as written`);
  } else if (quote !== "" && quote !== '"' && raw.includes(`\\${quote}`)) {
    warnings.push(`${name} holds a quote behind a backslash, and both are kept as written`);
  } else if ((quote === "" || quote === '"') && /\$[{(A-Za-z_]/.test(raw)) {
    warnings.push(`${name} holds "$" before a word, "{" or "(", which is kept as written: nothing is expanded or run`);
  }
  return warnings;
}

/** Hides the name if it may be part of a value, such as the last line of a PEM key without quotes. */
function sayInvalid(name: string, { quote, raw }: RawValue): string {
  const padding = quote === "" && /^=*$/.test(raw);
  const shown = /^[\w.-]{1,255}$/.test(name) && !padding ? name : 'what comes before "="';
  return `${shown} is not a valid variable name`;
}

function endOfMatch(sticky: RegExp, text: string, at: number): number | undefined {
  sticky.lastIndex = at;
  return sticky.test(text) ? sticky.lastIndex : undefined;
}

function nextLine(text: string, at: number): number {
  const lineEnd = text.indexOf("\n", at);
  return lineEnd === -1 ? text.length + 1 : lineEnd + 1;
}

function countLineBreaks(text: string): number {
  return text.split("\n").length - 1;
}
