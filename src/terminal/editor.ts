import { type ChildProcess, spawn } from "node:child_process";
import {
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { attempt } from "../core/attempt.ts";
import { withoutSettings } from "../core/inherited.ts";
import { exits, Problem } from "../core/problem.ts";
import { requireFile } from "../core/whole-file.ts";
import type { CommandContext } from "./command.ts";
import { toProblem } from "./failure.ts";
import { localName, unreadable } from "./input.ts";

/**
 * Lets a person edit a secret text. `$VISUAL`, `$EDITOR` or vi gets a file of mode 0600 in a folder of its own, in
 * memory if the system has such a folder. The folder is gone when this ends, even if this process is killed. But if
 * `work` fails with what the person wrote, it is kept until the next edit, and the failure says where.
 *
 * @param name - of the file, whose ending tells the editor the syntax
 * @param work - gets a function that opens the editor with a text and returns what the person saved
 */
export async function withEditor<T>(
  context: CommandContext,
  name: string,
  work: (edit: (text: string) => Promise<Buffer>) => Promise<T>,
): Promise<T> {
  removeKept(context);
  const folder = newFolder(context);
  const remover = removeAtOurEnd(context, folder);
  const file = join(folder, name);
  let saved: Buffer | undefined;
  try {
    return await work(async (text) => {
      writeFileSync(file, text, { mode: 0o600 });
      await runEditor(context, file);
      saved = readSaved(file);
      if (saved.equals(Buffer.from(text))) return saved;
      if (!saved.every((byte) => byte <= 0x20)) return saved;
      saved = undefined;
      throw new Problem(exits.failed, "empty", "The editor left an empty file. Nothing was written.");
    });
  } catch (error) {
    if (saved === undefined) throw error;
    const kept = folder.replace(/-(?=[^-]*$)/, keptMark);
    renameSync(folder, kept);
    const problem = toProblem(error);
    problem.message += `\nYour text is kept in ${join(kept, name)} until the next edit.`;
    throw problem;
  } finally {
    rmSync(folder, { recursive: true, force: true });
    remover.stdin?.end();
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
const keptMark = "-kept-";

/** Removes what an earlier edit of this account kept. */
function removeKept(context: CommandContext): void {
  for (const parent of [context.env["XDG_RUNTIME_DIR"], "/dev/shm", tmpdir()]) {
    for (const name of attempt(() => readdirSync(parent || "/dev/shm")) ?? []) {
      const folder = join(parent || "/dev/shm", name);
      if (name.startsWith(`keyhole${keptMark}`) && attempt(() => lstatSync(folder).uid) === process.getuid?.()) {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  }
}

/** A process that removes the folder once ours has ended, however it ended: then its standard input ends. */
function removeAtOurEnd({ env: { PATH } }: CommandContext, folder: string): ChildProcess {
  const script = `trap '' HUP INT TERM; cat > /dev/null; rm -rf -- "$1"`;
  // Detached, so that a signal to the terminal's processes does not reach it.
  const remover = spawn("/bin/sh", ["-c", script, "sh", folder], {
    // Every process of the same account can read the environment of this one.
    env: { PATH },
    stdio: ["pipe", "ignore", "ignore"],
    detached: true,
  });
  remover.unref();
  return remover;
}

/** A new folder whose files never reach a disk, other than by swapping; else a temporary one, and a message says so. */
function newFolder({ env, say }: CommandContext): string {
  const runtime = env["XDG_RUNTIME_DIR"];
  for (const parent of [runtime, "/dev/shm"]) {
    try {
      const isUsable =
        parent && memoryTypes.includes(statfsSync(parent).type) && (parent !== runtime || isOurs(parent));
      if (isUsable) return mkdtempSync(join(parent, "keyhole-"));
    } catch {} // it is missing, or nothing can be created there
  }
  say(`No folder in memory was found, so the text is in a file in ${tmpdir()} while you edit it.`);
  return mkdtempSync(join(tmpdir(), "keyhole-"));
}

/**
 * Whether nobody else can replace the files in a folder. After `su`, XDG_RUNTIME_DIR is the folder of somebody else.
 */
function isOurs(folder: string): boolean {
  const { uid, mode } = statSync(folder);
  return uid === process.getuid?.() && (mode & 0o022) === 0;
}

/** tmpfs and ramfs. @see https://man7.org/linux/man-pages/man2/statfs.2.html */
const memoryTypes = [0x01021994, 0x858458f6];

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
