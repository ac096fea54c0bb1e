import { createReadStream } from "node:fs";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import type { ReadWords } from "../../people/desk/inputs.ts";
import { readHidden } from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/** Reads a local file, or stdin for `-`. @param what - its name in messages */
export async function readLocal(context: CommandContext, path: string, bytesMax: number, what = localName(path)) {
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of openLocal(context, path)) {
      chunks.push(chunk);
      length += chunk.length;
      if (length > bytesMax) break;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
  if (length <= bytesMax) return Buffer.concat(chunks);
  throw new Problem(exits.refused, "bound", `${what} is larger than ${bytesMax} bytes.`);
}

/** Reads what an input names: a file, stdin byte for byte, or what is typed at a hidden prompt. @throws Problem */
export async function readSource(
  context: CommandContext,
  { bytesMax, what, prompt, unlessEmpty }: ReadWords,
  given: Readonly<Record<string, unknown>>,
  path: string,
): Promise<Uint8Array> {
  const asks = path === "-" && prompt !== undefined && context.terminal.stdin.isTTY;
  const value = asks
    ? await readHidden(context.terminal, prompt(given))
    : await readLocal(context, path, bytesMax, what?.(given));
  if (unlessEmpty === undefined || value.length > 0) return value;
  const words = asks ? "No value was typed" : path === "-" ? "Nothing came on stdin" : `${localName(path)} is empty`;
  throw usageProblem(`${words}: ${unlessEmpty}.`);
}

/**
 * The bytes of a local file of any length, or of stdin for `-`, as they come.
 * @throws Problem, also if they come through the door and do not end: they must not keep the host busy for ever
 */
export async function* readChunks(
  context: Pick<CommandContext, "terminal" | "person">,
  path: string,
): AsyncGenerator<Uint8Array> {
  let left = context.person === undefined ? Number.POSITIVE_INFINITY : doorMiBMax * 1024 * 1024;
  try {
    for await (const chunk of openLocal(context, path) as AsyncIterable<Uint8Array>) {
      left -= chunk.length;
      if (left < 0) {
        throw new Problem(exits.refused, "bound", `stdin is longer than ${doorMiBMax} MiB, the most over SSH.`);
      }
      yield chunk;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

const doorMiBMax = 256;

function openLocal(
  context: Pick<CommandContext, "terminal" | "person">,
  path: string,
): NodeJS.ReadableStream & AsyncIterable<Uint8Array> {
  const { stdin } = context.terminal;
  // A person who comes over SSH has no files on this machine.
  if (path !== "-" && context.person !== undefined) throw usageProblem("A file is read over SSH from stdin only: -");
  if (path !== "-") return createReadStream(path);
  if (!stdin.isTTY) return stdin;
  throw usageProblem("Stdin is a terminal, which would show what is typed: use a pipe, or name a file.");
}

/** @returns a Problem that says why a local file or stdin cannot be read */
export function unreadable(path: string, error: unknown): unknown {
  if (error instanceof Problem) return error;
  const { code = "no reason given" } = error as NodeJS.ErrnoException;
  const words = `${localName(path)} cannot be read: ${readFailures[code] ?? code}.`;
  return new Problem(exits.failed, "unreadable", words, { cause: error });
}

/** The name of a local file argument in messages. */
export function localName(path: string): string {
  return path === "-" ? "stdin" : path || "''";
}

const readFailures: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file",
  EISDIR: "it is a folder",
  EACCES: "its mode does not allow it",
};
