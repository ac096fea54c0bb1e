import { isAlias, isMap, isScalar, Lexer, LineCounter, type ParsedNode, parseDocument } from "yaml";
import { attempt } from "../../core/attempt.ts";
import { isVariableName } from "../../core/names.ts";
import { setItemsMax } from "../../serve/sets/kind.ts";
import {
  type EnvFile,
  envFileOf,
  findValueProblem,
  type IsLiteral,
  nameWarnings,
  noteOf,
  parseEnvFile,
  type Statement,
  tooMany,
} from "./env-file.ts";

/** What `var import` reads. */
export type ImportFormat = "env" | "json" | "yaml";

/**
 * Reads the text of an import, as variables in their order or as the reasons why all of it is refused.
 * @throws Refused `bound` before anything is built of a text with too many names
 */
export function parseImport(format: ImportFormat, text: string, isLiteral?: IsLiteral): EnvFile {
  if (format === "env") return parseEnvFile(text, isLiteral);
  const source = text.startsWith("\uFEFF") ? text.slice(1) : text;
  refuseTooMany(source);
  return format === "json" ? parseJson(source, isLiteral) : parseYaml(source, isLiteral);
}

/** The parser takes a hundred times the bytes of a text that is all names, lists or comments. */
function refuseTooMany(text: string): void {
  let tokens = 0;
  for (const _ of new Lexer().lex(text)) if (++tokens > tokensMax) throw tooMany();
}

/** For each name, its value and what stands between them, with some lines of comment. */
const tokensMax = 20 * setItemsMax;

/**
 * Reads JSON with the parser of YAML, which contains JSON: `JSON.parse` would keep the last of two equal names and turn
 * 1.10 into 1.1. YAML does not allow tabs and carriage returns in all places where JSON does. In valid JSON they stand
 * only between tokens, so blanks can replace them.
 */
function parseJson(text: string, isLiteral: IsLiteral | undefined): EnvFile {
  // The error of `JSON.parse` may quote a value, so it is not used.
  const isJson = attempt(() => JSON.parse(text)) !== undefined;
  if (isJson) return parseYaml(text.replace(/[\t\r]/g, " "), isLiteral);
  const { syntax } = readDocument(text);
  const problem = syntax[0] === undefined ? "this is YAML, but not JSON" : `line ${syntax[0].line}: this is not JSON`;
  return { variables: [], warnings: [], problems: [problem] };
}

/** Reads a mapping of names to text. Numbers and booleans are the text that the source has for them. */
function parseYaml(text: string, isLiteral: IsLiteral | undefined): EnvFile {
  const { contents, lineOf, syntax } = readDocument(text);
  const refused = (...problems: string[]): EnvFile => ({ variables: [], warnings: [], problems });
  if (syntax.length > 0) return refused(...syntax.map(({ line, what }) => `line ${line}: ${what}`));
  if (contents === null) return refused();
  if (!isMap(contents)) return refused("this is not an object of names and values");
  const statements = contents.items.map(({ key, value }): Statement => {
    const name = isScalar(key) ? String(key.value) : "";
    const line = lineOf(key.range[0]);
    if (!isVariableName(name)) return { line, problems: [`${shownName(name)} is not a valid variable name`] };
    const { text, problem } = readValue(value);
    if (problem !== undefined) return { line, name, problems: [`${name} ${problem}`] };
    const comment = key.commentBefore?.split(/\n\s*\n/).at(-1);
    return { line, name, value: text, note: noteOf(comment?.split("\n") ?? []), warnings: nameWarnings(name) };
  });
  return envFileOf(statements, isLiteral);
}

/** The text of a value as it is written, or what is wrong with it. */
function readValue(value: ParsedNode | null): { readonly text: string; readonly problem?: string | undefined } {
  const no = (problem: string) => ({ text: "", problem });
  if (isAlias(value)) return no("is an alias: write the value itself");
  if (isMap(value)) return no("is an object: only text, numbers and booleans can be imported");
  if (!isScalar(value))
    return no(value === null ? nullProblem : "is a list: only text, numbers and booleans can be imported");
  if (value.tag !== undefined && !plainTags.has(value.tag)) return no("has a tag: only !!str can be imported");
  if (value.value === null) return no(nullProblem);
  const text = value.source ?? "";
  return { text, problem: findValueProblem(text) };
}

const nullProblem = 'is null: write "" for an empty value';
const plainTags: ReadonlySet<string> = new Set(["!", "tag:yaml.org,2002:str"]);

/** Hides a name that may be part of a value, as in a file of another format. */
function shownName(name: string): string {
  return /^[\w.-]{1,255}$/.test(name) ? name : "what stands for a name here";
}

/** The parser's messages may quote a value, so a problem has only its code, such as "bad indent". */
function readDocument(text: string) {
  const lines = new LineCounter();
  const lineOf = (offset: number) => lines.linePos(offset).line;
  const { contents, errors } = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    schema: "core",
    stringKeys: true,
    uniqueKeys: false, // compares each name with each other
  });
  const syntax = errors.map(({ code, pos }) => ({
    line: lineOf(pos[0]),
    what: `this is not YAML (${code.toLowerCase().replaceAll("_", " ")})`,
  }));
  return { contents, lineOf, syntax };
}
