import { sha256Of } from "../core/hash.ts";
import { contentBytesMax, type Environment, isVariableName, itemsMax, variableValueBytesMax } from "../core/names.ts";
import { pathProblem, pathSetProblem } from "../core/words/path.ts";
import type { Files, SecretFile, Variable, Variables } from "./npm/answers.ts";
import type { FileMetadata } from "./npm/questions.ts";

/*
 * What commands require of an answer beyond its form, because they make an environment, text or files of it. Each check
 * returns a clause that says what is wrong, or undefined.
 */

/** A project and one of its environments. */
export type Asked = { readonly project: string; readonly environment: Environment };

/** A secret file without its content. */
export type FileRecord = Pick<FileMetadata, "path" | "mode" | "size" | "sha256">;

/** A secret file whose content has the size and checksum of its record. */
export type FetchedFile = FileRecord & { readonly content: Uint8Array };

export function whyNotVariables({ variables }: Variables): string | undefined {
  return tooMany("variables", variables) ?? firstOf(variables, whyNotVariable);
}

/** The records of all files, whose paths must be safe together. */
export function whyNotRecords({ files }: { readonly files: readonly FileRecord[] }): string | undefined {
  if (files.some((file) => "content" in file)) return "it holds content that was not asked for";
  const wrong = tooMany("files", files) ?? firstOf(files, whyNotRecord);
  if (wrong !== undefined) return wrong;
  const together = pathSetProblem(files.map(({ path }) => path));
  return together && `among its paths, ${together}`;
}

/** The files with content: each as it was listed. */
export function whyNotContents({ files }: Files, listed: readonly FileRecord[]): string | undefined {
  const found = new Map(files.map((file) => [file.path, file]));
  const whyNotListed = (record: FileRecord) => {
    const file = found.get(record.path);
    if (file === undefined) return `'${record.path}' was listed and is missing`;
    const isListed = file.mode === record.mode && file.size === record.size && file.sha256 === record.sha256;
    return isListed ? undefined : `'${record.path}' is not the file that was listed; if it has just changed, try again`;
  };
  const wrong = tooMany("files", files) ?? firstOf(files, (file) => whyNotRecord(file) ?? whyNotContent(file));
  const more = files.length > listed.length ? "it holds files that were not asked for" : undefined;
  return wrong ?? firstOf(listed, whyNotListed) ?? more;
}

export function contentOf({ content }: Pick<SecretFile, "content">): Buffer {
  return Buffer.from(content, "base64");
}

function tooMany(what: string, items: readonly unknown[]): string | undefined {
  return items.length > itemsMax ? `it has more than ${itemsMax} ${what}` : undefined;
}

function firstOf<T>(items: readonly T[], whyNot: (item: T) => string | undefined): string | undefined {
  return items
    .values()
    .map(whyNot)
    .find((wrong) => wrong !== undefined);
}

function whyNotVariable({ key, value }: Variable): string | undefined {
  if (!isVariableName(key)) return "a variable has no valid name";
  if (value.includes("\0") || !value.isWellFormed()) return `the value of ${key} is not text`;
  return Buffer.byteLength(value) > variableValueBytesMax ? `the value of ${key} is too long` : undefined;
}

function whyNotRecord({ path, size, sha256 }: FileRecord): string | undefined {
  const problem = pathProblem(path);
  if (problem !== undefined) return `the path ${JSON.stringify(path.slice(0, 100))} ${problem}`;
  if (size > contentBytesMax) return `'${path}' has a size over 8 MiB`;
  return /^[0-9a-f]{64}$/.test(sha256) ? undefined : `'${path}' has no checksum`;
}

function whyNotContent({ path, size, sha256, content }: SecretFile): string | undefined {
  if (content.length !== Math.ceil(size / 3) * 4) return `'${path}' has content of another size than its record`;
  const bytes = contentOf({ content });
  const isExact = bytes.length === size && bytes.toString("base64") === content;
  if (!isExact) return `'${path}' has content that is not valid base64 of its size`;
  return sha256Of(bytes) === sha256 ? undefined : `'${path}' has content with another checksum than its record`;
}
