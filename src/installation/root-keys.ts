import { type ExecFileException, execFile } from "node:child_process";
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { eq } from "drizzle-orm";
import { attempt } from "../core/attempt.ts";
import { configProblem, Problem } from "../core/problem.ts";
import { warnOfReaders } from "../core/settings/secret-file.ts";
import type { Config, RootKeySource } from "../core/settings/settings.ts";
import { removeDrafts, writeWholeSync } from "../core/whole-file.ts";
import { Keyring, newKey, parseRootKeys } from "../seal/keyring.ts";
import { type Database, databaseErrorCode } from "../store/database.ts";

/**
 * Opens the keyring with the root keys that the settings name. If they come from a file, the keyring reads it again
 * when it meets an unknown root key: a server needs no restart during a rotation.
 *
 * @param hasKeys - whether the database already holds keys; if so, a missing `root.key` is not replaced by a new one
 * @param say - shows a line to the operator: a new key, a file that others may read, the command's stderr
 * @param commandDeadlineMs - how long the command may take
 * @throws Problem if the root key is missing or malformed
 */
export async function openKeyring(
  config: Config,
  hasKeys: boolean,
  say: (line: string) => void,
  commandDeadlineMs = 10_000,
): Promise<Keyring> {
  const { rootKey } = config;
  if (rootKey.from === "text") return new Keyring(parsed("KEYHOLE_ROOT_KEY", rootKey.text));
  if (rootKey.from === "command") {
    return new Keyring(parsed("KEYHOLE_ROOT_KEY_COMMAND", await runCommand(rootKey, say, commandDeadlineMs)));
  }
  const path = pathOf(config);
  if (rootKey.from === "folder" && !existsSync(path)) {
    // A new key could not open what the old one wrapped, and would hide that the old one is lost.
    if (hasKeys) throw configProblem(`The root key ${path} of this database is missing: put it back.`);
    makeKeyFile(path);
    say(
      `A NEW ROOT KEY was made: ${path}. Without it nothing stored here can ever be read: keep a copy in a safe place.`,
    );
  }
  const file = new KeyFile(rootKey.from === "file" ? "KEYHOLE_ROOT_KEY_FILE" : path, path);
  const keys = file.read();
  warnOfReaders("The root key", path, say);
  return new Keyring(keys, undefined, () => file.news());
}

/**
 * The id of the root key that must wrap new data keys: the one that wraps the system keys. A rotation rewraps those
 * first. So a process that still has the older root key in front does not wrap with it behind the rotation's back.
 *
 * @param db - a transaction; until it ends, no rotation continues
 */
export async function currentRootId(database: Database): Promise<string> {
  const { systemKeys: s } = database.tables;
  const query = database.db.select({ rootId: s.rootId }).from(s).where(eq(s.purpose, "pepper"));
  const [row] = await database.locked(query, "share");
  return row?.rootId ?? "";
}

/** The name of the root keys in messages: the setting, or the path of the generated file. */
export function rootKeyName(config: Config): string {
  const { rootKey } = config;
  if (rootKey.from === "folder") return pathOf(config);
  return { text: "KEYHOLE_ROOT_KEY", file: "KEYHOLE_ROOT_KEY_FILE", command: "KEYHOLE_ROOT_KEY_COMMAND" }[rootKey.from];
}

/** The file that a rotation of the generated root key keeps locked. */
export function rotateLock({ dataFolder }: Config): string {
  return join(dataFolder, "rotate.lock");
}

/**
 * Removes the drafts of the generated root key that a killed command left: they hold live root keys. Call it only under
 * {@link lockKeyFile}, and once the file is there: then nobody else writes one.
 */
export function removeKeyDrafts(config: Config): void {
  const path = pathOf(config);
  const real = existsSync(path) ? realpathSync(path) : path;
  for (const folder of new Set([dirname(path), dirname(real)]))
    removeDrafts(folder, "root-key", Number.POSITIVE_INFINITY);
}

export function pathOf({ rootKey, dataFolder }: Config): string {
  if (rootKey.from === "file") return rootKey.path;
  return join((rootKey.from === "folder" && rootKey.folder) || dataFolder, "root.key");
}

/** A file of root keys that notices when it has changed. */
export class KeyFile {
  readonly #source: string;
  readonly #path: string;
  #read = "";

  constructor(source: string, path: string) {
    this.#source = source;
    this.#path = path;
  }

  /** @throws Problem */
  read(): Uint8Array[] {
    try {
      // The stamp comes first: a write between the two lines is then noticed later.
      this.#read = this.#look();
      return parsed(this.#source, readFileSync(this.#path, "utf8"));
    } catch (error) {
      if (error instanceof Problem) throw error;
      const what = this.#source === this.#path ? "The root key" : `${this.#source}: the file`;
      throw configProblem(`${what} ${this.#path} cannot be read (${databaseErrorCode(error)}).`);
    }
  }

  /** @returns the keys if the file was changed since it was last read and is readable; none otherwise */
  news(): Uint8Array[] {
    return attempt(() => (this.#look() === this.#read ? [] : this.read())) ?? [];
  }

  /** A stamp of the file's state: a replaced file has another inode, an edited one other times. */
  #look(): string {
    const { ino, size, mtimeNs, ctimeNs } = statSync(this.#path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs].join(" ");
  }
}

function parsed(source: string, text: string): Uint8Array[] {
  try {
    return parseRootKeys(text);
  } catch (error) {
    throw configProblem(`${source}: ${error instanceof Error ? error.message : "not a root key"}`);
  }
}

/** Creates the file whole or not at all; if another process was first, its key stays. */
function makeKeyFile(path: string): void {
  try {
    writeWholeSync("root-key", path, false, textOf([newKey()]));
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "exists") throw error;
  }
}

export function textOf(keys: readonly Uint8Array[]): Uint8Array {
  return Buffer.from(keys.map((key) => `${Buffer.from(key).toString("base64")}\n`).join(""));
}

const outputBytesMax = 64 * 1024;

/**
 * Runs the program and returns what it prints. Its stderr is shown line by line, because it may ask for a touch of a
 * hardware key. Its stdout is the root key, so no message shows it.
 */
function runCommand(
  { words, env }: Extract<RootKeySource, { from: "command" }>,
  say: (line: string) => void,
  timeout: number,
): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const [program, ...args] = words;
  const options = { env, timeout, killSignal: "SIGKILL", maxBuffer: outputBytesMax } as const;
  const child = execFile(program, args, options, (error, stdout) => {
    if (error === null) resolve(stdout);
    else reject(configProblem(`KEYHOLE_ROOT_KEY_COMMAND: the command ${commandFailure(error, timeout)}.`));
  });
  child.stdin?.end();
  if (child.stderr) createInterface({ input: child.stderr }).on("line", say);
  return promise;
}

function commandFailure({ code, killed, signal }: ExecFileException, timeoutMs: number): string {
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return "printed more than root keys";
  if (killed) return `took longer than ${timeoutMs / 1000} s`;
  if (typeof code === "string") return `cannot be started (${code})`;
  return signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
}
