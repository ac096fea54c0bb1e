import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Fault } from "../../src/fault.ts";
import { generationOf, open, openInPieces, overheadBytes, pieceBytes, seal } from "../../src/seal/envelope.ts";
import { Keyring, newKey, type SubkeyKind } from "../../src/seal/keyring.ts";
import {
  accountPlace,
  dataKeyPlace,
  encodeFields,
  filePlace,
  systemKeyPlace,
  variablePlace,
} from "../../src/seal/place.ts";

const key = fc.uint8Array({ minLength: 32, maxLength: 32 });
const bytes = fc.uint8Array({ maxLength: 80 });
const generation = fc.nat({ max: 2 ** 32 - 1 });
const item = fc.record({ key, generation, place: bytes, plaintext: bytes });
const text = fc.string({ unit: "binary", maxLength: 20 });
const integer = fc.maxSafeNat();

describe("an envelope", () => {
  test("opens to what was sealed, 34 bytes shorter, and names its generation", () => {
    fc.assert(
      fc.property(item, ({ key, generation, place, plaintext }) => {
        const sealed = seal(key, generation, place, plaintext);
        expect(sealed.length).toBe(plaintext.length + overheadBytes);
        expect(generationOf(sealed)).toBe(generation);
        expect(open(key, place, sealed)).toEqual(Buffer.from(plaintext));
        expect(inPieces(key, place, sealed)).toEqual(Buffer.from(plaintext));
      }),
    );
  });

  test("does not open when any single bit of it is flipped", () => {
    fc.assert(
      fc.property(item, ({ key, generation, place, plaintext }) => {
        const sealed = seal(key, generation, place, plaintext);
        for (let bit = 0; bit < sealed.length * 8; bit++) expectClosed(key, place, flipped(sealed, bit));
      }),
      { numRuns: 20 },
    );
  });

  test("does not open when it is cut to any other length, at either end, or made longer", () => {
    fc.assert(
      fc.property(item, bytes, ({ key, generation, place, plaintext }, more) => {
        const sealed = seal(key, generation, place, plaintext);
        for (let length = 0; length < sealed.length; length++) {
          expectClosed(key, place, sealed.subarray(0, length));
          expectClosed(key, place, sealed.subarray(sealed.length - length));
        }
        fc.pre(more.length > 0);
        expectClosed(key, place, Buffer.concat([sealed, more]));
        expectClosed(key, place, Buffer.concat([more, sealed]));
      }),
      { numRuns: 20 },
    );
  });

  test("does not open with another key or at another place", () => {
    fc.assert(
      fc.property(item, key, bytes, ({ key, generation, place, plaintext }, otherKey, otherPlace) => {
        fc.pre(!Buffer.from(key).equals(otherKey) && !Buffer.from(place).equals(otherPlace));
        const sealed = seal(key, generation, place, plaintext);
        expectClosed(otherKey, place, sealed);
        expectClosed(key, otherPlace, sealed);
        for (let bit = 0; bit < 256; bit++) expectClosed(flipped(key, bit), place, sealed);
      }),
      { numRuns: 30 },
    );
  });

  test("does not open when any bytes are put together in its form", () => {
    fc.assert(
      fc.property(key, bytes, fc.uint8Array({ maxLength: 100 }), (key, place, tail) => {
        expectClosed(key, place, tail);
        expectClosed(key, place, Buffer.from([1, 1, ...tail]));
      }),
      { numRuns: 5000 },
    );
  });

  test("of a file does not open after any of 10,000 flips", () => {
    const [key, place] = [newKey(), Buffer.from("file")];
    const sealed = seal(key, 1, place, Buffer.alloc(16 * 1024, "content"));
    fc.assert(
      fc.property(fc.nat({ max: sealed.length * 8 - 1 }), (bit) => expectClosed(key, place, flipped(sealed, bit))),
      { numRuns: 10_000 },
    );
  });

  test("opens in pieces exactly when it opens at once, whatever was done to it", () => {
    const length = pieceBytes + 40; // two pieces
    const plaintext = Buffer.alloc(length, "plaintext");
    const change = fc.oneof(
      fc.constant((sealed: Buffer) => sealed),
      fc.nat({ max: (length + overheadBytes) * 8 - 1 }).map((bit) => (sealed: Buffer) => flipped(sealed, bit)),
      fc.nat({ max: length + overheadBytes }).map((to) => (sealed: Buffer) => sealed.subarray(0, to)),
      bytes.map((more) => (sealed: Buffer) => Buffer.concat([sealed, more])),
    );
    fc.assert(
      fc.property(key, bytes, change, (key, place, change) => {
        const sealed = change(seal(key, 1, place, plaintext));
        const [once, pieces] = [attempt(() => open(key, place, sealed)), attempt(() => inPieces(key, place, sealed))];
        expect(typeof pieces).toBe(typeof once);
        expect(Buffer.compare(Buffer.from(pieces), Buffer.from(once))).toBe(0);
      }),
      { numRuns: 60 },
    );
  });
});

describe("places", () => {
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

  test("differ when characters move from a field to its neighbour", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 12 }), (both) => {
        const splits = Array.from({ length: both.length + 1 }, (_, at) => [both.slice(0, at), both.slice(at)] as const);
        const places = splits.flatMap(([a, b]) => [
          variablePlace({ projectId: a, environment: b, variableId: "", version: 1, name: "" }),
          variablePlace({ projectId: "", environment: a, variableId: b, version: 1, name: "" }),
          systemKeyPlace({ purpose: a, rootId: b }),
        ]);
        // The two kinds of split of a variable meet where all of the text is the environment.
        expect(new Set(places.map((place) => place.toString("hex"))).size).toBe(places.length - 1);
      }),
    );
  });

  const sha256 = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
  const name = text.filter(isUnicode);
  const variable = { projectId: name, environment: name, variableId: name, version: integer, name };
  const account = { projectId: name, accountId: name, version: integer, environments: integer, name };
  const file = {
    projectId: name,
    fileId: name,
    version: integer,
    environments: integer,
    path: name,
    mode: name,
    size: integer,
    sha256,
    name,
    contentType: name,
  };
  const kinds: [
    string,
    Readonly<Record<string, fc.Arbitrary<string | number>>>,
    (fields: Readonly<Record<string, string | number>>) => Buffer,
  ][] = [
    ["variable", variable, (fields) => variablePlace(fields as never)],
    ["account", account, (fields) => accountPlace(fields as never)],
    ["file", file, (fields) => filePlace(fields as never)],
    ["data key", { projectId: name, generation: integer, rootId: name }, (fields) => dataKeyPlace(fields as never)],
    ["system key", { purpose: name, rootId: name }, (fields) => systemKeyPlace(fields as never)],
  ];

  test.each(kinds)("of a %s: a value does not open where any one field differs", (_, fields, placeOf) => {
    fc.assert(
      fc.property(fc.record(fields), fc.record(fields), (here, there) => {
        const key = newKey();
        const sealed = seal(key, 1, placeOf(here), Buffer.from("value"));
        expect(open(key, placeOf({ ...here }), sealed).toString()).toBe("value");
        for (const field of Object.keys(fields)) {
          if (here[field] === there[field]) continue;
          expectClosed(key, placeOf({ ...here, [field]: there[field] as string | number }), sealed);
        }
      }),
    );
  });

  test("of two kinds are never the same, whatever their fields", () => {
    fc.assert(
      fc.property(fc.tuple(...kinds.map(([, fields]) => fc.record(fields))), (lists) => {
        const places = kinds.map(([, , placeOf], at) => placeOf(lists[at] ?? {}).toString("hex"));
        expect(new Set(places).size).toBe(kinds.length);
      }),
    );
  });
});

describe("a keyring", () => {
  const owner = fc.record({ organizationId: fc.string({ maxLength: 8 }), slug: fc.string({ maxLength: 8 }) });
  const kind = fc.constantFrom<SubkeyKind>("variable", "account", "file", "set");

  test("opens a value only for the organization, the slug and the kind that it was sealed for", () => {
    const keyring = new Keyring([newKey()]);
    const { rootId, wrapped } = keyring.wrapDataKey("p", 1, newKey());
    fc.assert(
      fc.property(owner, kind, owner, kind, (here, kind, there, otherKind) => {
        const subkey = keyring.dataKey({ id: "p", ...here }, 1, rootId, wrapped).subkey(kind);
        const sealed = seal(subkey, 1, Buffer.from("place"), Buffer.from("value"));
        for (const [project, asked] of [
          [here, kind],
          [there, kind],
          [{ ...here, slug: there.slug }, kind],
          [{ ...here, organizationId: there.organizationId }, kind],
          [here, otherKind],
        ] as const) {
          const same = project.organizationId === here.organizationId && project.slug === here.slug && asked === kind;
          const other = keyring.dataKey({ id: "p", ...project }, 1, rootId, wrapped).subkey(asked);
          if (same) expect(open(other, Buffer.from("place"), sealed).toString()).toBe("value");
          else expectClosed(other, Buffer.from("place"), sealed);
        }
      }),
    );
  });

  test("opens a data key only for its project and generation, unchanged, remembered or not", () => {
    const keyring = new Keyring([newKey(), newKey()], 3);
    fc.assert(
      fc.property(text.filter(isUnicode), integer, fc.nat({ max: 66 * 8 - 1 }), (id, generation, bit) => {
        const { rootId, wrapped } = keyring.wrapDataKey(id, generation, newKey());
        const project = { id, organizationId: "o", slug: "s" };
        for (let time = 0; time < 2; time++) {
          expect(keyring.dataKey(project, generation, rootId, wrapped).generation).toBe(generation);
          const acts: readonly (() => unknown)[] = [
            () => keyring.dataKey({ ...project, id: `${id}x` }, generation, rootId, wrapped),
            () => keyring.dataKey(project, (generation + 1) % 2 ** 40, rootId, wrapped),
            () => keyring.dataKey(project, generation, rootId, flipped(wrapped, bit)),
            () => keyring.rewrapDataKey(`${id}x`, generation, rootId, wrapped),
          ];
          for (const act of acts) expect(attempt(act)).toMatch(/^Fault: /);
        }
      }),
    );
  });
});

function expectClosed(key: Uint8Array, place: Uint8Array, sealed: Uint8Array): void {
  try {
    open(key, place, sealed);
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

/** Half a surrogate pair has no place: `test/unit/envelope.test.ts`. */
function isUnicode(text: string): boolean {
  return text.isWellFormed();
}

function decoded(place: Buffer): Buffer[] {
  const fields: Buffer[] = [];
  for (let at = 0; at < place.length; ) {
    const length = place.readUInt32BE(at);
    fields.push(Buffer.from(place.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  return fields;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

/** The plaintext, put together of its pieces. */
function inPieces(key: Uint8Array, place: Uint8Array, sealed: Uint8Array): Buffer {
  const pieces: Buffer[] = [];
  openInPieces(key, place, sealed, (piece) => pieces.push(Buffer.from(piece)));
  return Buffer.concat(pieces);
}
