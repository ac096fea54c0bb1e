import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../src/core/fault.ts";
import {
  contentAssociatedData,
  dataKeyAssociatedData,
  encodeFields,
  listingFields,
  setAssociatedData,
  systemKeyAssociatedData,
} from "../../src/seal/associated-data.ts";
import { generationOf, open, overheadBytes, seal } from "../../src/seal/envelope.ts";
import { FileContent } from "../../src/seal/file-content.ts";
import { type DataKey, Keyring, newKey } from "../../src/seal/keyring.ts";
import { sealSet } from "../../src/seal/new-set.ts";
import { setOpener, verifyListing } from "../../src/seal/set.ts";

const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
const bytes = fc.uint8Array({ maxLength: 80 });
const generation = fc.nat({ max: 2 ** 32 - 1 });
const item = fc.record({ key, generation, associatedData: bytes, plaintext: bytes });
const text = fc.string({ unit: "binary", maxLength: 20 });
const integer = fc.maxSafeNat();
const name = text.filter(isUnicode);
const identity = {
  organizationId: name,
  projectId: name,
  slug: name,
  kind: fc.constantFrom("variables", "accounts"),
  environment: name,
  version: integer,
};

describe("an envelope", () => {
  test("opens to what was sealed, 34 bytes shorter, and names its generation", () => {
    fc.assert(
      fc.property(item, ({ key, generation, associatedData, plaintext }) => {
        const sealed = seal(key, generation, associatedData, plaintext);
        expect(sealed.length).toBe(plaintext.length + overheadBytes);
        expect(generationOf(sealed)).toBe(generation);
        expect(open(key, associatedData, sealed)).toEqual(Buffer.from(plaintext));
        expect(asFile(key, associatedData, sealed)).toEqual(Buffer.from(plaintext));
      }),
    );
  });

  test("does not open when any single bit of it is flipped", () => {
    fc.assert(
      fc.property(item, ({ key, generation, associatedData, plaintext }) => {
        const sealed = seal(key, generation, associatedData, plaintext);
        for (let bit = 0; bit < sealed.length * 8; bit++) expectClosed(key, associatedData, flipped(sealed, bit));
      }),
      { numRuns: 20 },
    );
  });

  test("does not open when it is cut to any other length, at either end, or made longer", () => {
    fc.assert(
      fc.property(item, bytes, ({ key, generation, associatedData, plaintext }, more) => {
        const sealed = seal(key, generation, associatedData, plaintext);
        for (let length = 0; length < sealed.length; length++) {
          expectClosed(key, associatedData, sealed.subarray(0, length));
          expectClosed(key, associatedData, sealed.subarray(sealed.length - length));
        }
        fc.pre(more.length > 0);
        expectClosed(key, associatedData, Buffer.concat([sealed, more]));
        expectClosed(key, associatedData, Buffer.concat([more, sealed]));
      }),
      { numRuns: 20 },
    );
  });

  test("does not open with another key or with other associated data", () => {
    fc.assert(
      fc.property(item, key, bytes, ({ key, generation, associatedData, plaintext }, otherKey, otherData) => {
        fc.pre(!Buffer.from(key).equals(otherKey) && !Buffer.from(associatedData).equals(otherData));
        const sealed = seal(key, generation, associatedData, plaintext);
        expectClosed(otherKey, associatedData, sealed);
        expectClosed(key, otherData, sealed);
        for (let bit = 0; bit < 256; bit++) expectClosed(flipped(key, bit), associatedData, sealed);
      }),
      { numRuns: 30 },
    );
  });

  test("opens in pieces exactly when it opens at once, whatever was done to it", async () => {
    const length = 192 * 1024 + 40; // two pieces
    const plaintext = Buffer.alloc(length, "plaintext");
    const change = fc.oneof(
      fc.constant((sealed: Buffer) => sealed),
      fc.nat({ max: (length + overheadBytes) * 8 - 1 }).map((bit) => (sealed: Buffer) => flipped(sealed, bit)),
      fc.nat({ max: length + overheadBytes }).map((to) => (sealed: Buffer) => sealed.subarray(0, to)),
      bytes.map((more) => (sealed: Buffer) => Buffer.concat([sealed, more])),
    );
    await fc.assert(
      fc.asyncProperty(key, bytes, change, async (key, associatedData, change) => {
        const sealed = change(seal(key, 1, associatedData, plaintext));
        const once = attempt(() => open(key, associatedData, sealed));
        const content = new FileContent({ id: "", key, associatedData, sealed }, true);
        const verified = await content.verify().then(
          () => true,
          () => false,
        );
        expect(verified).toBe(typeof once !== "string");
        if (typeof once === "string") return;
        expect([...content.base64()].join("")).toBe(once.toString("base64"));
      }),
      { numRuns: 60 },
    );
  });
});

describe("associated data", () => {
  test("can be read back field by field, so two lists of fields never share their bytes", () => {
    const fields = fc.array(fc.oneof(text.filter(isUnicode), integer, bytes));
    fc.assert(
      fc.property(fields, (fields) => {
        const raw = fields.map((field) => (typeof field === "string" ? Buffer.from(field) : field));
        expect(decoded(encodeFields(...fields))).toEqual(
          raw.map((field) => Buffer.from(typeof field === "number" ? u64(field) : field)),
        );
      }),
    );
  });

  type Fields = Readonly<Record<string, never>>;
  const kinds: [string, Readonly<Record<string, fc.Arbitrary<unknown>>>, (fields: Fields) => Buffer][] = [
    ["set", { ...identity, mac: bytes }, (fields) => setAssociatedData(fields as never, fields["mac"] as never)],
    [
      "listing",
      { ...identity, generation: integer, listing: name },
      (fields) => listingFields(fields as never, fields["generation"] as never, fields["listing"] as never),
    ],
    [
      "file content",
      { projectId: name, id: name, size: integer, sha256: name },
      (fields) => contentAssociatedData(fields as never),
    ],
    [
      "data key",
      { projectId: name, generation: integer, rootId: name },
      ({ projectId, generation, rootId }) =>
        dataKeyAssociatedData(projectId as never, generation as never, rootId as never),
    ],
    [
      "system key",
      { purpose: name, rootId: name },
      ({ purpose, rootId }) => systemKeyAssociatedData(purpose as never, rootId as never),
    ],
  ];

  test.each(kinds)("of a %s: a value does not open if any one field differs", (_, fields, associatedDataOf) => {
    fc.assert(
      fc.property(fc.record(fields), fc.record(fields), (here, there) => {
        const key = newKey();
        const sealed = seal(key, 1, associatedDataOf(here as Fields), Buffer.from("value"));
        expect(open(key, associatedDataOf({ ...here } as Fields), sealed).toString()).toBe("value");
        for (const field of Object.keys(fields)) {
          if (Bun.deepEquals(here[field], there[field])) continue;
          expectClosed(key, associatedDataOf({ ...here, [field]: there[field] } as Fields), sealed);
        }
      }),
    );
  });

  test("of two kinds is never the same, whatever the fields", () => {
    fc.assert(
      fc.property(fc.tuple(...kinds.map(([, fields]) => fc.record(fields))), (lists) => {
        const all = kinds.map(([, , associatedDataOf], at) => associatedDataOf(lists[at] as Fields).toString("hex"));
        expect(new Set(all).size).toBe(kinds.length);
      }),
    );
  });
});

const items = fc.array(
  name.map((value) => Buffer.from(JSON.stringify(value))),
  { maxLength: 12 },
);
const listingKey = newKey();
const dataKeyOf = (generation: number): DataKey => ({ generation, subkey: () => listingKey });

test("a set opens to the items that were sealed, and a flipped bit anywhere in the row is noticed", () => {
  fc.assert(
    fc.property(fc.record(identity), name, items, fc.nat(), (set, listing, items, bit) => {
      const dataKey = dataKeyOf(7);
      const row = sealSet(listingKey, set, listing, { items, dataKey });
      verifyListing(listingKey, set, row);
      const opened = setOpener(set, row, dataKey).open();
      expect(items.map((_, index) => opened.item(index))).toEqual(items);
      const sealed = flipped(row.sealed as Buffer, bit % ((row.sealed as Buffer).length * 8));
      const listingMac = flipped(row.listingMac, bit % 256);
      for (const change of [{ sealed }, { listingMac }, { generation: row.generation ^ (1 << (bit % 31)) }]) {
        const changed = { ...row, ...change };
        const act = () => setOpener(set, changed, dataKeyOf(changed.generation)).open();
        expect(attempt(act)).toMatch(/^Fault: /);
        if ("sealed" in change) continue;
        expect(attempt(() => verifyListing(listingKey, set, changed))).toMatch(/^Fault: /);
      }
      fc.pre(listing.length > 0);
      const other = `${listing.slice(1)}${listing[0] === "x" ? "y" : "x"}`;
      fc.pre(other !== listing && other.isWellFormed());
      expect(attempt(() => verifyListing(listingKey, set, { ...row, listing: other }))).toMatch(/^Fault: /);
    }),
  );
});

describe("a keyring", () => {
  test("opens a data key only for its project and generation, unchanged, remembered or not", () => {
    const keyring = new Keyring([newKey(), newKey()], 3);
    fc.assert(
      fc.property(text.filter(isUnicode), integer, fc.nat({ max: 66 * 8 - 1 }), (id, generation, bit) => {
        const { rootId, wrapped } = keyring.wrapDataKey(id, generation, newKey());
        for (let time = 0; time < 2; time++) {
          expect(keyring.dataKey(id, generation, rootId, wrapped).generation).toBe(generation);
          const acts: readonly (() => unknown)[] = [
            () => keyring.dataKey(`${id}x`, generation, rootId, wrapped),
            () => keyring.dataKey(id, (generation + 1) % 2 ** 40, rootId, wrapped),
            () => keyring.dataKey(id, generation, rootId, flipped(wrapped, bit)),
            () => keyring.rewrapDataKey(`${id}x`, generation, rootId, wrapped),
          ];
          for (const act of acts) expect(attempt(act)).toMatch(/^Fault: /);
        }
      }),
    );
  });
});

function expectClosed(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): void {
  try {
    open(key, associatedData, sealed);
  } catch (error) {
    if (error instanceof Fault && error.code === "decryption_failed") return;
    throw error;
  }
  throw new Error(`opened, though it must not: ${Buffer.from(sealed).toString("hex")}`);
}

function attempt<T>(act: () => T): T | string {
  try {
    return act();
  } catch (error) {
    return String(error);
  }
}

function flipped(bytes: Uint8Array, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed.writeUInt8(changed.readUInt8(bit >> 3) ^ (1 << (bit & 7)), bit >> 3);
  return changed;
}

/** Half a surrogate pair has no encoding: `test/unit/envelope.test.ts`. */
function isUnicode(text: string): boolean {
  return text.isWellFormed();
}

function decoded(associatedData: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 0; at < associatedData.length; ) {
    const length = associatedData.readUInt32BE(at);
    fields.push(Buffer.from(associatedData.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return fields;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** The plaintext, opened as small files are: into base64. */
function asFile(key: Uint8Array, associatedData: Uint8Array, sealed: Uint8Array): Buffer {
  return Buffer.from(new FileContent({ id: "", key, associatedData, sealed }, true).open(), "base64");
}
