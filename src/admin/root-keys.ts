import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import { type Config, ConfigProblem, type RootKeySource } from "../config.ts";
import { Problem } from "../problem.ts";
import { Keyring, newKey, parseRootKeys } from "../seal/keyring.ts";
import { type Database, type Db, databaseErrorCode } from "../store/database.ts";
import { exclusively } from "../store/migrate.ts";
import { writeWholeSync } from "../whole-file.ts";
import { Refused } from "./refused.ts";

/*
 * Where root keys come from, and the one file of them that is ours to write: `root.key` in the data folder.
 */

/**
 * The keyring of the root keys that the settings lead to. One that comes from a file reads it again when something is
 * wrapped by a root key that the file did not hold at first: a server goes on through a rotation without a restart.
 *
 * @param hasKeys - whether the database holds keys already: then a missing `root.key` is not made anew
 * @param say - takes a line for a person: that a key was made, that others may read it, what the command wrote to stderr
 * @param commandDeadlineMs - how long the command may take
 * @throws ConfigProblem where the root key is missing or malformed
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
    // A new key would not open what the old one wrapped, and would hide that the old one is gone.
    if (hasKeys) throw new ConfigProblem(`The root key ${path} of this database is missing: put it back.`);
    makeKeyFile(path);
    say(
      `A NEW ROOT KEY was made: ${path}. Without it nothing stored here can ever be read: keep a copy in a safe place.`,
    );
  }
  const file = new KeyFile(rootKey.from === "file" ? "KEYHOLE_ROOT_KEY_FILE" : path, path);
  const keys = file.read();
  if (file.mode & 0o077) {
    say(`WARNING: others than its owner may read or change the root key ${path} (mode ${octal(file.mode)}).`);
  }
  return new Keyring(keys, undefined, () => file.news());
}

/**
 * The root key that new data keys are to be wrapped by: whichever wraps the system keys. A rotation moves these first,
 * so nothing is wrapped by the older root key any more once it has moved the rest, whoever still has that one in front.
 *
 * @param db - a transaction; until it ends no rotation moves on
 */
export async function currentRootId(database: Database, db: Db): Promise<string> {
  const { systemKeys: s } = database.tables;
  const query = db.select({ rootId: s.rootId }).from(s).where(eq(s.purpose, "pepper"));
  const [row] = await (database.dialect === "postgres" ? query.for("share") : query);
  return row?.rootId ?? "";
}

/** What the root keys are called in a sentence: the setting, or the file that was generated. */
export function rootKeyName({ rootKey, dataFolder }: Config): string {
  if (rootKey.from === "folder") return join(dataFolder, "root.key");
  return { text: "KEYHOLE_ROOT_KEY", file: "KEYHOLE_ROOT_KEY_FILE", command: "KEYHOLE_ROOT_KEY_COMMAND" }[rootKey.from];
}

/**
 * Keeps every other rotation of the generated root key out until it is released, or the process ends.
 * @throws Refused `unavailable` where one is under way
 */
export function lockKeyFile(config: Config): { release(): void } {
  const lock = exclusively(join(config.dataFolder, "rotate.lock"), 0);
  if (lock) return lock;
  throw new Refused("unavailable", `Another rotation of ${pathOf(config)} is under way.`);
}

/**
 * Puts a new root key in front of the generated one, unless two stand there already: then a rotation was begun and is
 * to be finished. The file is durable before this returns. Only to be called under {@link lockKeyFile}.
 * @throws ConfigProblem
 */
export function addRootKey(config: Config): void {
  const path = pathOf(config);
  const keys = new KeyFile(path, path).read();
  if (keys.length === 1) replaceKeyFile(path, [newKey(), ...keys]);
}

/**
 * Leaves the first root key alone in the generated file. Only to be called under {@link lockKeyFile}, and once nothing
 * is wrapped by the others.
 * @throws ConfigProblem
 */
export function dropOlderRootKeys(config: Config): void {
  const path = pathOf(config);
  const keys = new KeyFile(path, path).read();
  if (keys.length > 1) replaceKeyFile(path, keys.slice(0, 1));
}

function pathOf({ rootKey, dataFolder }: Config): string {
  return rootKey.from === "file" ? rootKey.path : join(dataFolder, "root.key");
}

/** A file of root keys, and whether it is still the one that was read. */
class KeyFile {
  readonly #source: string;
  readonly #path: string;
  #read = "";
  mode = 0;

  constructor(source: string, path: string) {
    this.#source = source;
    this.#path = path;
  }

  /** @throws ConfigProblem */
  read(): Uint8Array[] {
    try {
      // Looked at first: what is written between the two shows as news later.
      this.#read = this.#look();
      return parsed(this.#source, readFileSync(this.#path, "utf8"));
    } catch (error) {
      if (error instanceof ConfigProblem) throw error;
      throw new ConfigProblem(`${this.#source}: the file ${this.#path} cannot be read (${databaseErrorCode(error)}).`);
    }
  }

  /** What the file holds, where it was changed since it was last read, and can be read: else nothing. */
  news(): Uint8Array[] {
    try {
      return this.#look() === this.#read ? [] : this.read();
    } catch {
      return [];
    }
  }

  /** A stamp of the file's present state; one that was replaced differs in its inode, one that was edited in its times. */
  #look(): string {
    const { ino, size, mtimeNs, ctimeNs, mode } = statSync(this.#path, { bigint: true });
    this.mode = Number(mode) & 0o777;
    return [ino, size, mtimeNs, ctimeNs].join(" ");
  }
}

function parsed(source: string, text: string): Uint8Array[] {
  try {
    return parseRootKeys(text);
  } catch (error) {
    throw new ConfigProblem(`${source}: ${error instanceof Error ? error.message : "not a root key"}`);
  }
}

/** Creates the file; if another process was first, its key stays. */
function makeKeyFile(path: string): void {
  try {
    writeWholeSync(path, false, textOf([newKey()]));
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== "exists") throw error;
  }
}

/** @throws ConfigProblem; the file is then unchanged */
function replaceKeyFile(path: string, keys: readonly Uint8Array[]): void {
  try {
    writeWholeSync(realpathSync(path), true, textOf(keys)); // a link stays a link
  } catch (error) {
    throw new ConfigProblem(`The root key ${path} cannot be replaced (${databaseErrorCode(error)}).`);
  }
}

function textOf(keys: readonly Uint8Array[]): Uint8Array {
  return Buffer.from(keys.map((key) => `${Buffer.from(key).toString("base64")}\n`).join(""));
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

const commandBytesMax = 64 * 1024;

/**
 * Runs the program and takes what it prints. Its stderr passes on line by line, so that it may ask for a touch of a
 * hardware key; its stdout is the root key and shows in no sentence, whatever went wrong.
 *
 * @throws ConfigProblem
 */
async function runCommand(
  { words, env }: Extract<RootKeySource, { from: "command" }>,
  say: (line: string) => void,
  deadlineMs: number,
): Promise<string> {
  const failed = (what: string) => new ConfigProblem(`KEYHOLE_ROOT_KEY_COMMAND: the command ${what}.`);
  let child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  try {
    child = Bun.spawn([...words], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  } catch (error) {
    throw failed(`cannot be started (${databaseErrorCode(error)})`);
  }
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(failed(`took longer than ${deadlineMs / 1000} s`)), deadlineMs);
  const passedOn = passOn(child.stderr, say);
  try {
    // What it started itself may outlive it and keep its streams open: nobody waits for more than the deadline.
    const text = await Promise.race([late, readAtMost(child.stdout, commandBytesMax)]);
    if (text === undefined) throw failed("printed more than root keys");
    const exitCode = await Promise.race([late, child.exited]);
    await Promise.race([late, passedOn]);
    if (exitCode !== 0) {
      throw failed(child.signalCode === null ? `ended with exit code ${exitCode}` : `was ended by ${child.signalCode}`);
    }
    return text;
  } finally {
    clearTimeout(timer);
    child.kill("SIGKILL");
    child.unref();
  }
}

async function readAtMost(stream: ReadableStream<Uint8Array>, bytesMax: number): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
    if (bytes > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function passOn(stream: ReadableStream<Uint8Array>, say: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let line = "";
  for await (const chunk of stream) {
    const lines = (line + decoder.decode(chunk, { stream: true })).split("\n");
    line = lines.pop() ?? "";
    lines.forEach(say);
  }
  if (line !== "") say(line);
}
