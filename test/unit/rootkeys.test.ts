import { describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openKeyring } from "../../src/installation/root-keys.ts";
import { Keyring, newKey } from "../../src/seal/keyring.ts";
import { newFolder } from "../support/folder.ts";

const spelled = (key: Uint8Array) => Buffer.from(key).toString("base64");
const key = newKey();
const { rootId } = new Keyring([key]);

describe("KEYHOLE_ROOT_KEY_COMMAND", () => {
  const wordsOf = (command: string) => {
    const { rootKey } = readConfig({ KEYHOLE_ROOT_KEY_COMMAND: command });
    return rootKey.from === "command" ? rootKey.words : undefined;
  };
  const opened = async (command: string, env: Record<string, string | undefined> = {}) => {
    const said: string[] = [];
    const config = readConfig({ PATH: process.env["PATH"], ...env, KEYHOLE_ROOT_KEY_COMMAND: command });
    const keyring = await openKeyring(config, true, (line) => said.push(line));
    return { rootId: keyring.rootId, rootIds: keyring.rootIds, said };
  };

  test.each<[string, string[]]>([
    ["age -d /etc/keyhole/root.key.age", ["age", "-d", "/etc/keyhole/root.key.age"]],
    ["  spaced\tout\n ", ["spaced", "out"]],
    [`one 'two three' "four five" six\\ seven`, ["one", "two three", "four five", "six seven"]],
    [`--query='Plaintext|[0]' a"b"'c'd`, ["--query=Plaintext|[0]", "abcd"]],
    [`"say \\"it\\" for \\$5" '' ""`, [`say "it" for $5`, "", ""]],
    [`'\\' "\\n" \\\\`, ["\\", "\\n", "\\"]],
    [`sh -c 'cat key | tr -d "\\n"'`, ["sh", "-c", 'cat key | tr -d "\\n"']],
  ])("%s is words without a shell", (command, words) => expect(wordsOf(command)).toEqual(words as [string]));

  test.each([
    ...["cat 'key", 'cat "key', "cat key\\", "cat key | tr", "cat $KEY", 'cat "$KEY"', "cat `key`", "cat ~/key"],
    ...["a; b", "a > b", "cat *", "a#b"],
  ])("%s is refused, since only a shell could interpret it", (command) => {
    expect(() => wordsOf(command)).toThrow("KEYHOLE_ROOT_KEY_COMMAND has an open quote, or a character");
  });

  test.each([" ", "''", '"" x'])("%j names no program", (command) => {
    expect(() => wordsOf(command)).toThrow("KEYHOLE_ROOT_KEY_COMMAND names no program.");
  });

  test("is refused beside another setting that says where the root key is", () => {
    const env = { KEYHOLE_ROOT_KEY_COMMAND: "cat key", KEYHOLE_ROOT_KEY_FILE: "key" };
    expect(() => readConfig(env)).toThrow("KEYHOLE_ROOT_KEY_FILE and KEYHOLE_ROOT_KEY_COMMAND are both set");
  });

  test("gives the root keys that it prints, and passes its stderr on to people", async () => {
    expect(await opened(`echo ${spelled(key)}`)).toEqual({ rootId, rootIds: [rootId], said: [] });
    const other = newKey();
    const command = `sh -c 'echo touch the key >&2; printf "%s\\r\\n%s" ${spelled(key)} ${spelled(other)}; printf now >&2'`;
    const rootIds = [rootId, new Keyring([other]).rootId];
    expect(await opened(command)).toEqual({ rootId, rootIds, said: ["touch the key", "now"] });
  });

  test("runs with the caller's environment without the database's address and Keyhole's settings", async () => {
    const env = { DATABASE_URL: "postgres://u:secret@h/d", KEYHOLE_API_KEY: "kh_x", AWS_REGION: "eu-central-1" };
    const command = `sh -c 'env | grep -E "^(DATABASE_URL|KEYHOLE_|AWS_)" >&2; echo ${spelled(key)}'`;
    expect((await opened(command, env)).said).toEqual(["AWS_REGION=eu-central-1"]);
  });

  test.each<[string, string]>([
    ["no-such-program-of-ours", "the command cannot be started (ENOENT)."],
    [`sh -c 'echo ${spelled(key)}; exit 3'`, "the command ended with exit code 3."],
    [`sh -c 'echo ${spelled(key)}; kill -9 $$'`, "the command was ended by SIGKILL."],
    ["yes c4n4ry", "the command printed more than root keys."],
    [
      "echo c4n4ry",
      "A root key must be 32 bytes in standard base64, 44 characters; several are separated by commas or line ends.",
    ],
    ["true", "No root key is given."],
  ])("%s fails with one sentence that names the setting and repeats no output", async (command, sentence) => {
    const failure = await opened(command).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "invalid_configuration", message: `KEYHOLE_ROOT_KEY_COMMAND: ${sentence}` });
  });

  test("is ended at its deadline, and so is waiting for what it started", async () => {
    const openedWithin = (ms: number, command: string) =>
      openKeyring(readConfig({ PATH: process.env["PATH"], KEYHOLE_ROOT_KEY_COMMAND: command }), true, () => {}, ms);
    // Waiting for these would take longer than a test may.
    const failure = await openedWithin(100, "sleep 90").catch((error: unknown) => error);
    expect(failure).toMatchObject({ message: "KEYHOLE_ROOT_KEY_COMMAND: the command took longer than 0.1 s." });
    // A busy machine may take long to start a shell, and only its sleep is to meet the deadline.
    const keyring = await openedWithin(3000, `sh -c 'sleep 90 & echo ${spelled(key)}'`);
    expect(keyring.rootId).toBe(rootId);
  });
});

const stored = (...roots: Uint8Array[]) => new Keyring(roots).wrapDataKey("p", 1, newKey());
const failed = expect.objectContaining({ code: "decryption_failed" });

test("a keyring of a file reads it again for an unknown root key, and keeps what it knew if the file is gone", async () => {
  const path = join(newFolder(), "root.key");
  const write = (...keys: Uint8Array[]) => writeFileSync(path, keys.map((one) => `${spelled(one)}\n`).join(""));
  const [second, third] = [newKey(), newKey()];
  write(key);
  const keyring = await openKeyring(readConfig({ KEYHOLE_ROOT_KEY_FILE: path }), true, () => {});
  const opens = ({ rootId, wrapped } = stored(key)) => keyring.dataKey("p", 1, rootId, wrapped).generation;
  const [bySecond, byThird] = [stored(second), stored(third)];
  expect(() => opens(bySecond)).toThrow(failed);
  write(second);
  expect(opens(bySecond)).toBe(1);
  expect(opens(stored(key))).toBe(1);
  // An editor may leave half a file for a moment.
  writeFileSync(path, spelled(third).slice(0, 20));
  expect(() => opens(byThird)).toThrow(failed);
  write(third);
  expect(opens(byThird)).toBe(1);
  rmSync(path);
  expect(() => opens(stored(newKey()))).toThrow(failed);
  expect(opens(byThird)).toBe(1);
  // What wraps new keys is still the first root key that it knew.
  expect(keyring.rootId).toBe(rootId);
});
