import { contentBytesMax, type Environment, isVariableName, itemsMax, variableValueBytesMax } from "../core/names.ts";
import { pathProblem, pathSetProblem } from "../core/path.ts";
import type { NamedValue } from "../formats/dotenv.ts";

/*
 * Validates the API's answers before anything uses them. Every member that is used must be exactly right; others are
 * ignored, so that a later version of the API may add some.
 */

/** A project and one of its environments. */
export type Asked = { readonly project: string; readonly environment: Environment };

/** Which variables: all if neither is given, those that match both if both are. */
export type Selection = { readonly keys?: readonly string[] | undefined; readonly prefix?: string | undefined };

/** An answer that no honest server sends. The message is a clause that says what is wrong. */
export class Untrustworthy extends Error {
  override readonly name = "Untrustworthy";
}

/** A secret file without its content. */
export type FileRecord = {
  /** Without a `pathProblem`. */
  readonly path: string;
  readonly mode: "0600" | "0400";
  readonly size: number;
  /** Lower-case hex. */
  readonly sha256: string;
};

/** A secret file whose content has the size and checksum of its record. */
export type FetchedFile = FileRecord & { readonly content: Uint8Array };

/** The variables of an answer: only those asked for, each name once. @throws Untrustworthy */
export function validateVariables(answer: unknown, asked: Asked, selection: Selection): NamedValue[] {
  const { variables } = answerOf(answer, asked);
  const names = new Set<string>();
  return listOf(variables, "variables").map((one) => {
    const { key: name, value } = membersOf(one, "a variable");
    if (typeof name !== "string" || !isVariableName(name)) throw new Untrustworthy("a variable has no valid name");
    if (names.has(name)) throw new Untrustworthy(`${name} is there twice`);
    names.add(name);
    const wanted = (selection.keys?.includes(name) ?? true) && name.startsWith(selection.prefix ?? "");
    if (!wanted) throw new Untrustworthy(`${name} was not asked for`);
    if (typeof value !== "string") throw new Untrustworthy(`${name} has no value`);
    if (value.includes("\0") || !value.isWellFormed()) throw new Untrustworthy(`the value of ${name} is not text`);
    if (Buffer.byteLength(value) > variableValueBytesMax) throw new Untrustworthy(`the value of ${name} is too long`);
    return { name, value };
  });
}

/** The files of a metadata answer, with paths that are safe together. @throws Untrustworthy */
export function validateFiles(answer: unknown, asked: Asked): FileRecord[] {
  const files = filesOf(answer, asked);
  if (files.some((file) => "content" in file)) throw new Untrustworthy("it holds content that was not asked for");
  const records = files.map(recordOf);
  const together = pathSetProblem(records.map(({ path }) => path));
  if (together !== undefined) throw new Untrustworthy(`among its paths, ${together}`);
  return records;
}

/** The files of an answer with content: exactly those asked for, in the order of `wanted`. @throws Untrustworthy */
export function validateContents(answer: unknown, asked: Asked, wanted: readonly FileRecord[]): FetchedFile[] {
  const found = new Map<string, FetchedFile>();
  for (const file of filesOf(answer, asked)) {
    const record = recordOf(file);
    if (found.has(record.path)) throw new Untrustworthy(`'${record.path}' is there twice`);
    found.set(record.path, { ...record, content: contentOf(file["content"], record) });
  }
  const files = wanted.map((record) => {
    const file = found.get(record.path);
    if (file === undefined) throw new Untrustworthy(`'${record.path}' was listed and is missing`);
    const { mode, size, sha256 } = record;
    if (file.mode !== mode || file.size !== size || file.sha256 !== sha256) {
      throw new Untrustworthy(`'${record.path}' is not the file that was listed; if it has just changed, try again`);
    }
    return file;
  });
  if (found.size > wanted.length) throw new Untrustworthy("it holds files that were not asked for");
  return files;
}

type Members = Readonly<Record<string, unknown>>;

function answerOf(answer: unknown, asked: Asked): Members {
  const members = membersOf(answer, "it");
  if (members["environment"] === asked.environment) return members;
  throw new Untrustworthy("it is about another environment than the one asked for");
}

function filesOf(answer: unknown, asked: Asked): Members[] {
  const { project, files } = answerOf(answer, asked);
  if (membersOf(project, "its project")["slug"] !== asked.project) {
    throw new Untrustworthy("it is about another project than the one asked for");
  }
  return listOf(files, "files").map((file) => membersOf(file, "a file"));
}

function recordOf({ path, mode, size, sha256 }: Members): FileRecord {
  if (typeof path !== "string") throw new Untrustworthy("a file has no path");
  const problem = pathProblem(path);
  if (problem !== undefined) throw new Untrustworthy(`the path ${JSON.stringify(path.slice(0, 100))} ${problem}`);
  const wrong = (what: string) => new Untrustworthy(`'${path}' has ${what}`);
  if (mode !== "0600" && mode !== "0400") throw wrong("a mode other than 0600 and 0400");
  if (typeof size !== "number" || !Number.isSafeInteger(size) || size < 0 || size > contentBytesMax) {
    throw wrong("no size, or one over 8 MiB");
  }
  if (typeof sha256 !== "string" || !/^[0-9a-f]{64}$/.test(sha256)) throw wrong("no checksum");
  return { path, mode, size, sha256 };
}

function contentOf(content: unknown, { path, size, sha256 }: FileRecord): Uint8Array {
  const wrong = (what: string) => new Untrustworthy(`'${path}' has ${what}`);
  if (typeof content !== "string") throw wrong("no content");
  if (content.length !== Math.ceil(size / 3) * 4) throw wrong("content of another size than its record");
  const bytes = Buffer.from(content, "base64");
  const isExact = bytes.length === size && bytes.toString("base64") === content;
  if (!isExact) throw wrong("content that is not valid base64 of its size");
  if (sha256Of(bytes) !== sha256) throw wrong("content with another checksum than its record");
  return bytes;
}

/** Lower-case hex. */
export function sha256Of(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

function membersOf(value: unknown, what: string): Members {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Members;
  throw new Untrustworthy(`${what} is not an object`);
}

function listOf(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value)) throw new Untrustworthy(`it has no list of ${what}`);
  if (value.length > itemsMax) throw new Untrustworthy(`it has more than ${itemsMax} ${what}`);
  return value;
}
