import { describe, expect, test } from "bun:test";
import { Keyring, newKey, parseRootKeys } from "../../src/seal/keyring.ts";

const project = "prj-1";
const kinds: readonly string[] = ["variables", "accounts", "file"];
const failed = expect.objectContaining({ code: "decryption_failed" });

/* Other projects, generations, roots and bits: vectors.test.ts and property/seal.test.ts. */

test("data keys do not open for a generation that no row can have, nor with another root key", () => {
  const keyring = new Keyring([newKey()]);
  const { rootId, wrapped } = keyring.wrapDataKey(project, 3, newKey());
  expect(() => keyring.dataKey(project, -1, rootId, wrapped)).toThrow(failed);
  expect(() => new Keyring([newKey()]).dataKey(project, 3, rootId, wrapped)).toThrow(failed);
});

test("remembered data keys are bounded: the oldest is dropped first, and opens again on demand", () => {
  const keyring = new Keyring([newKey()], 2);
  const rows = [1, 2, 3].map((generation) => keyring.wrapDataKey(project, generation, newKey()));
  const ask = (generation: number) => {
    const row = rows[generation - 1] as (typeof rows)[number];
    return keyring.dataKey(project, generation, row.rootId, row.wrapped);
  };
  const [first, second] = [ask(1), ask(2)];
  expect([ask(1), ask(2)]).toEqual([first, second]);
  expect(ask(1)).toBe(first);
  const third = ask(3);
  expect(ask(2)).toBe(second);
  expect(ask(3)).toBe(third);
  const again = ask(1);
  expect(again).not.toBe(first);
  expect(again.subkey("file")).toEqual(first.subkey("file"));
});

describe("system keys", () => {
  const root = newKey();
  const keyring = new Keyring([root]);

  test("a root key that does not match the database is refused in one sentence", () => {
    const { rootId, wrapped } = keyring.wrapSystemKey("pepper", newKey());
    const other = new Keyring([newKey()]);
    const words = `which needs the root key ${rootId}; this is ${other.rootId}.`;
    const act = () => other.unwrapSystemKey("pepper", rootId, wrapped);
    expect(act).toThrow(new Error(`The root key does not match this database, ${words}`));
  });

  test("a row does not open for another purpose, nor if it was changed", () => {
    const { rootId, wrapped } = keyring.wrapSystemKey("pepper", newKey());
    expect(() => keyring.unwrapSystemKey("grant", rootId, wrapped)).toThrow("The grant key of this database");
    const flipped = Buffer.from(wrapped);
    flipped.writeUInt8(flipped.readUInt8(40) ^ 1, 40);
    expect(() => keyring.unwrapSystemKey("pepper", rootId, flipped)).toThrow("The pepper key of this database");
  });

  test("a data key does not open as a system key", () => {
    const { rootId, wrapped } = keyring.wrapDataKey("pepper", 1, newKey());
    expect(() => keyring.unwrapSystemKey("pepper", rootId, wrapped)).toThrow("does not open");
  });
});

describe("a keyring", () => {
  test("asks for further root keys for one that it does not know, once, and wraps with none that it cannot find", () => {
    const [before, after] = [newKey(), newKey()];
    const { rootId, wrapped } = new Keyring([after]).wrapDataKey(project, 1, newKey());
    let asked = 0;
    const keyring = new Keyring([before], 1, () => {
      asked += 1;
      return [after];
    });
    const own = keyring.wrapDataKey(project, 2, newKey());
    expect([own.rootId, asked]).toEqual([keyring.rootId, 0]);
    expect(keyring.dataKey(project, 1, rootId, wrapped).generation).toBe(1);
    keyring.dataKey(project, 2, own.rootId, own.wrapped);
    keyring.dataKey(project, 1, rootId, wrapped);
    expect(asked).toBe(1);
    const words = "wrapped by an unknown root key";
    expect(() => keyring.wrapDataKey(project, 1, newKey(), "0123456789abcdef")).toThrow(words);
  });

  test("derives each subkey of a data key once", () => {
    const keyring = new Keyring([newKey()]);
    const { rootId, wrapped } = keyring.wrapDataKey(project, 1, newKey());
    const { subkey } = keyring.dataKey(project, 1, rootId, wrapped);
    expect(subkey("file")).toBe(subkey("file"));
    expect(subkey("file")).not.toEqual(subkey("variables"));
  });

  test("needs a root key, of 32 bytes, and wraps only keys of 32 bytes", () => {
    expect(() => new Keyring([])).toThrow("at least one root key");
    expect(() => new Keyring([new Uint8Array(31)])).toThrow("32 bytes");
    expect(() => new Keyring([newKey()]).wrapDataKey("p", 1, new Uint8Array(16))).toThrow("32 bytes");
    expect(() => new Keyring([newKey()]).wrapSystemKey("audit", new Uint8Array(33))).toThrow("32 bytes");
  });

  test("still works when its root keys are zeroed", () => {
    const root = newKey();
    const stored = new Keyring([Buffer.from(root)]).wrapDataKey("p", 1, newKey());
    const keyring = new Keyring([root]);
    root.fill(0);
    expect(keyring.dataKey("p", 1, stored.rootId, stored.wrapped).generation).toBe(1);
  });

  test("never prints a key, and neither does a data key", () => {
    const root = Buffer.alloc(32, "c4n4ry");
    const keyring = new Keyring([root]);
    const { rootId, wrapped } = keyring.wrapDataKey(project, 1, Buffer.alloc(32, "d4t4"));
    const dataKey = keyring.dataKey(project, 1, rootId, wrapped);
    const printed = [Bun.inspect({ keyring, dataKey }, { depth: 9 }), JSON.stringify({ keyring, dataKey })].join("\n");
    const secrets = [root, ...kinds.map((kind) => Buffer.from(dataKey.subkey(kind)))];
    for (const secret of secrets) {
      for (const shown of [secret.toString("hex"), secret.toString("base64"), secret.join(", "), secret.join(",")]) {
        expect(printed).not.toContain(shown);
      }
    }
    const shown = { keyring: { rootId }, dataKey: { generation: 1 } };
    expect(JSON.parse(JSON.stringify({ keyring, dataKey }))).toEqual(shown);
  });
});

describe("parseRootKeys", () => {
  const [a, b] = [Buffer.alloc(32, 0xfb), Buffer.alloc(32, 2)];
  const [spelledA, spelledB] = [a.toString("base64"), b.toString("base64")];

  test.each([
    ["one", spelledA, [a]],
    ["one and a line end, as `echo` leaves it", `${spelledA}\n`, [a]],
    ["two with a comma, in their order", `${spelledB},${spelledA}`, [b, a]],
    ["two lines", `${spelledA}\n${spelledB}\n`, [a, b]],
    ["two lines as Windows ends them", `${spelledA}\r\n${spelledB}\r\n`, [a, b]],
    ["one behind a byte order mark", `\uFEFF${spelledA}\n`, [a]],
    ["blank lines", `\n${spelledA}\n\n${spelledB}`, [a, b]],
  ])("reads %s", (_, text, keys) => expect(parseRootKeys(text)).toEqual(keys));

  test.each([
    ["nothing", ""],
    ["line ends only", "\n\r\n"],
    ["a comma only", ","],
    ["no key before the comma, as an unset variable leaves it", `,${spelledA}`],
    ["no key after the comma", `${spelledA},`],
    ["a space before", ` ${spelledA}`],
    ["a space after", `${spelledA} `],
    ["a space after the comma", `${spelledA}, ${spelledB}`],
    ["a semicolon", `${spelledA};${spelledB}`],
    ["base64url", spelledA.replaceAll("+", "-").replaceAll("/", "_")],
    ["no padding", spelledA.slice(0, -1)],
    ["padding twice", `${spelledA}=`],
    ["31 bytes", Buffer.alloc(31, 1).toString("base64")],
    ["33 bytes", Buffer.alloc(33, 1).toString("base64")],
    ["16 bytes", Buffer.alloc(16, 1).toString("base64")],
    ["hex", a.toString("hex")],
    // "A" and "B" differ here only in bits that 32 bytes leave over: a second spelling of one key.
    ["bits left over that are not zero", `${Buffer.alloc(32).toString("base64").slice(0, -2)}B=`],
    ["a line end within", `${spelledA.slice(0, 20)}\n${spelledA.slice(20)}`],
    ["quotes around", `"${spelledA}"`],
    ["one good, one bad", `${spelledA},${spelledB.slice(1)}`],
  ])("refuses %s in one sentence that holds none of it", (_, text) => {
    let message = "";
    try {
      parseRootKeys(text);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(/^[A-Z][^.]*root key[^.]*\.$/i);
    for (const part of text.match(/[\w+/-]{8,}/g) ?? []) expect(message).not.toContain(part.slice(0, 8));
  });
});
