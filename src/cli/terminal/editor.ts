import { spawn } from "node:child_process";
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attempt } from "../../core/attempt.ts";
import { exits, Problem } from "../../core/problem.ts";
import { scratchFolder } from "../../core/scratch.ts";
import { withoutSettings } from "../../core/settings/inherited.ts";
import { requireFile } from "../../core/whole-file.ts";
import { toProblem } from "./failure.ts";
import { localName, unreadable } from "./input.ts";
import type { CommandContext } from "./verb.ts";

/**
 * Lets a person edit a secret text. `$VISUAL`, `$EDITOR` or vi gets a file of mode 0600 in a folder of its own, which is
 * removed when this ends. But if `work` fails with what the person wrote, it is kept until the next edit, and the
 * failure says where. The next edit removes what a killed command left, too.
 *
 * @param name - of the file, whose ending tells the editor the syntax
 * @param work - gets a function that opens the editor with a text and returns what the person saved
 */
export async function withEditor<T>(
  context: CommandContext,
  name: string,
  work: (edit: (text: string) => Promise<Buffer>) => Promise<T>,
): Promise<T> {
  const folder = newFolder(context);
  const file = join(folder, name);
  let saved: Buffer | undefined;
  try {
    const result = await work(async (text) => {
      writeFileSync(file, text, { mode: 0o600 });
      await runEditor(context, file);
      saved = readSaved(file);
      if (saved.equals(Buffer.from(text)) || !saved.every((byte) => byte <= 0x20)) return saved;
      saved = undefined;
      throw new Problem(exits.failed, "empty", "The editor left an empty file. Nothing was written.");
    });
    saved = undefined;
    return result;
  } catch (error) {
    if (saved === undefined) throw error;
    const problem = toProblem(error, context);
    problem.message += `\nYour text is kept in ${file} until the next edit.`;
    throw problem;
  } finally {
    if (saved === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

/** What the editor left. A pipe in its place would never end. */
function readSaved(file: string): Buffer {
  try {
    const stat = lstatSync(file);
    requireFile(file, stat);
    if (stat.size <= textBytesMax) return readFileSync(file);
  } catch (error) {
    throw unreadable(localName(file), error);
  }
  throw new Problem(exits.refused, "bound", `The text is larger than ${textBytesMax} bytes.`);
}

/** Larger than the text of any environment. */
const textBytesMax = 64 * 1024 * 1024;

/** A new folder, in memory where the system has /dev/shm. Removes those of edits of this account that have ended. */
function newFolder({ say }: CommandContext): string {
  for (const parent of ["/dev/shm", tmpdir()]) {
    for (const name of attempt(() => readdirSync(parent)) ?? []) {
      const [, pid] = /^keyhole-edit-(\d+)-/.exec(name) ?? [];
      if (pid === undefined || attempt(() => process.kill(Number(pid), 0))) continue;
      const folder = join(parent, name);
      if (attempt(() => lstatSync(folder).uid) === process.getuid?.()) rmSync(folder, { recursive: true, force: true });
    }
  }
  const prefix = `keyhole-edit-${process.pid}-`;
  const inMemory = attempt(() => mkdtempSync(join("/dev/shm", prefix)));
  if (inMemory === undefined)
    say(`There is no folder in memory, so the text is in a file in ${tmpdir()} while you edit it.`);
  return inMemory ?? scratchFolder(prefix);
}

/** Runs the editor on the terminal and waits. It gets none of Keyhole's settings. */
async function runEditor({ env, terminal }: CommandContext, file: string): Promise<void> {
  const editor = env["VISUAL"] || env["EDITOR"] || "vi";
  // Standard output is for what was asked for.
  const stdout = terminal.stdout.isTTY ? "inherit" : 2;
  const child = spawn("/bin/sh", ["-c", `${editor} "$@"`, editor, file], {
    env: withoutSettings(env),
    stdio: ["inherit", stdout, "inherit"],
  });
  // Ctrl-C is the editor's while it runs.
  const ignore = () => {};
  process.on("SIGINT", ignore);
  try {
    const { promise, resolve, reject } = Promise.withResolvers<string | number>();
    child.on("error", reject).on("exit", (code, signal) => resolve(code ?? signal ?? "unknown"));
    const ended = await promise;
    if (ended === 0) return;
    const how =
      ended === 127 ? "cannot be started" : `ended with ${typeof ended === "number" ? "exit code " : ""}${ended}`;
    throw new Problem(exits.failed, "editor_failed", `The editor '${editor}' ${how}. Nothing was written.`);
  } finally {
    process.off("SIGINT", ignore);
  }
}
