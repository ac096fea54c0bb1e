import { describe, expect, test } from "bun:test";
import { createCipheriv, createDecipheriv, createHmac, hkdfSync } from "node:crypto";
import {
  contentAssociatedData,
  dataKeyAssociatedData,
  listingFields,
  setAssociatedData,
  systemKeyAssociatedData,
} from "../../src/seal/associated-data.ts";
import { generationOf, open, overheadBytes, sealWithChosenNonceForVectors } from "../../src/seal/envelope.ts";
import { FileContent } from "../../src/seal/file-content.ts";
import { type DataKey, Keyring, type SystemKeyPurpose } from "../../src/seal/keyring.ts";
import { encodeItems, sealSet } from "../../src/seal/new-set.ts";
import { type SealedSet, setOpener, verifyListing } from "../../src/seal/set.ts";
import { digestKey, isWellFormedKey, mintKey } from "../../src/serve/access/api-key.ts";
import gcm from "../vectors/aes-256-gcm.json" with { type: "json" };
import apiKey from "../vectors/api-key-v1.json" with { type: "json" };
import envelope from "../vectors/envelope-v1.json" with { type: "json" };
import hkdf from "../vectors/hkdf-sha256.json" with { type: "json" };
import hmac from "../vectors/hmac-sha256.json" with { type: "json" };
import keyring from "../vectors/keyring-v1.json" with { type: "json" };
import vectors from "../vectors/set-v1.json" with { type: "json" };

const hex = (text: string) => Buffer.from(text, "hex");
const failed = expect.objectContaining({ code: "decryption_failed" });

/*
 * The formats written a second time, from the descriptions at the top of the files of `src/seal/` and with
 * `node:crypto` alone. What both implementations agree on is the format, not a habit of one of them.
 */

/** Length-prefixed fields. */
function fieldsOf(...fields: readonly (string | number | Buffer)[]): Buffer {
  const parts = fields.map((field) => {
    if (typeof field !== "number") return Buffer.from(field as string);
    const integer = Buffer.alloc(8);
    integer.writeBigUInt64BE(BigInt(field));
    return integer;
  });
  return Buffer.concat(parts.flatMap((part) => [u32(part.length), part]));
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** An envelope, version 1. */
function sealedBy(key: Buffer, nonce: Buffer, generation: number, associatedData: Buffer, plaintext: Buffer): string {
  const header = Buffer.concat([Buffer.of(1, 1), u32(generation)]);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.concat([header, associatedData]));
  const ciphertext = Buffer.concat([cipher.update(plaintext), cipher.final()]);
  return Buffer.concat([header, nonce, ciphertext, cipher.getAuthTag()]).toString("hex");
}

type SetVector = Omit<(typeof vectors.sets)[number], "comment">;

function identityFields({ organizationId, projectId, slug, kind, environment, version }: SetVector) {
  return [organizationId, projectId, slug, kind, environment, version] as const;
}

function listingMacOf(set: SetVector): string {
  const covered = fieldsOf("listing", ...identityFields(set), set.generation, set.listing);
  return createHmac("sha256", hex(vectors.listingKey)).update(covered).digest("hex");
}

/** The values of a set: the count, the lengths, the items with commas between them. */
function layOut(items: readonly string[]): Buffer {
  const lengths = items.map((item) => u32(Buffer.byteLength(item)));
  return Buffer.concat([u32(items.length), ...lengths, Buffer.from(items.join(","))]);
}

describe("envelope, version 1", () => {
  /** These take the members that the JSON has; `kind` says which. */
  type Fields = SetVector & { id: string; size: number; sha256: string; rootId: string; purpose: string };
  const builders: Readonly<Record<string, (fields: Fields) => Buffer>> = {
    set: (fields) => setAssociatedData(fields, hex(fields.listingMac)),
    listing: (fields) => listingFields(fields, fields.generation, fields.listing),
    "file content": contentAssociatedData,
    "data key": ({ projectId, generation, rootId }) => dataKeyAssociatedData(projectId, generation, rootId),
    "system key": ({ purpose, rootId }) => systemKeyAssociatedData(purpose, rootId),
  };

  test.each(envelope.associatedData)("the associated data of a $kind has these bytes: $comment", (row) => {
    expect(builders[row.kind]?.(row.fields as unknown as Fields).toString("hex")).toBe(row.bytes);
    const fields = Object.entries(row.fields).map(([name, field]) => (name === "listingMac" ? hex(`${field}`) : field));
    expect(fieldsOf(row.kind, ...fields).toString("hex")).toBe(row.bytes);
  });

  test.each(envelope.opens)("seals to these bytes and opens again: $comment", async (row) => {
    const [key, nonce, plaintext] = [hex(row.key), hex(row.nonce), hex(row.plaintext)];
    const associatedData = hex(row.associatedData);
    const sealed = sealWithChosenNonceForVectors(nonce, key, row.generation, associatedData, plaintext);
    expect(sealed.toString("hex")).toBe(row.sealed);
    expect(sealedBy(key, nonce, row.generation, associatedData, plaintext)).toBe(row.sealed);
    expect(sealed.length).toBe(plaintext.length + overheadBytes);
    expect(generationOf(sealed)).toBe(row.generation);
    expect(open(key, associatedData, sealed)).toEqual(plaintext);
    const content = new FileContent({ id: "file", key, associatedData, sealed }, true);
    expect(content.open()).toBe(plaintext.toString("base64"));
    await content.verify();
    expect([...content.base64()].join("")).toBe(plaintext.toString("base64"));
  });

  test.each(envelope.fails)("never opens: $reason", async (row) => {
    const [key, associatedData, sealed] = [hex(row.key), hex(row.associatedData), hex(row.sealed)];
    expect(() => open(key, associatedData, sealed)).toThrow(failed);
    const content = new FileContent({ id: "file", key, associatedData, sealed }, true);
    expect(() => content.open()).toThrow();
    await expect(content.verify()).rejects.toMatchObject({ code: "decryption_failed" });
  });
});

describe("keyring, version 1", () => {
  const roots = keyring.roots.map((root) => hex(root.rootKey));
  const both = new Keyring(roots);
  const derived = (key: string, label: string, bytes = 32) =>
    Buffer.from(hkdfSync("sha256", hex(key), "", fieldsOf(`keyhole 1 ${label}`), bytes)).toString("hex");
  const wrapKeys = new Map(keyring.roots.map(({ rootId, wrapKey }) => [rootId, hex(wrapKey)]));
  /** Wraps a key with the nonce that its vector has. */
  const wrappedAgain = ({ rootId, key, wrapped }: { rootId: string; key: string; wrapped: string }, data: Buffer) =>
    sealedBy(wrapKeys.get(rootId) as Buffer, hex(wrapped).subarray(6, 18), 0, data, hex(key));

  test.each(keyring.roots)("root $rootId has this id and this wrap key", ({ rootKey, rootId, wrapKey }) => {
    expect(new Keyring([hex(rootKey)]).rootId).toBe(rootId);
    expect([derived(rootKey, "root id", 8), derived(rootKey, "wrap key")]).toEqual([rootId, wrapKey]);
  });

  test.each(keyring.systemKeys)("the $purpose key under root $rootId unwraps to these bytes", (row) => {
    const key = both.unwrapSystemKey(row.purpose as SystemKeyPurpose, row.rootId, hex(row.wrapped));
    expect(Buffer.from(key).toString("hex")).toBe(row.key);
    expect(wrappedAgain(row, fieldsOf("system key", row.purpose, row.rootId))).toBe(row.wrapped);
  });

  test.each(keyring.dataKeys)("data key $generation of $projectId under root $rootId has these subkeys", (row) => {
    const dataKey = both.dataKey(row.projectId, row.generation, row.rootId, hex(row.wrapped));
    expect(dataKey.generation).toBe(row.generation);
    for (const [kind, subkey] of Object.entries(row.subkeys)) {
      expect(Buffer.from(dataKey.subkey(kind)).toString("hex")).toBe(subkey);
      expect(derived(row.key, `${kind} subkey`)).toBe(subkey);
    }
    expect(wrappedAgain(row, fieldsOf("data key", row.projectId, row.generation, row.rootId))).toBe(row.wrapped);
  });

  test.each(keyring.dataKeyFails)("a data key never opens: $reason", (row) => {
    expect(() => both.dataKey(row.projectId, row.generation, row.rootId, hex(row.wrapped))).toThrow(failed);
  });
});

describe("set, version 1", () => {
  const [listingKey, subkey] = [hex(vectors.listingKey), hex(vectors.subkey)];
  const dataKeyOf = (generation: number): DataKey => ({ generation, subkey: () => subkey });
  const storedOf = (row: SetVector): SealedSet => ({
    generation: row.generation,
    listing: row.listing,
    listingMac: hex(row.listingMac),
    sealed: row.sealed === null ? null : hex(row.sealed),
  });
  const openedOf = (row: SetVector) => setOpener(row, storedOf(row), dataKeyOf(row.generation)).open();
  /** By the second implementation. */
  const sealedAgain = (row: SetVector, nonce: Buffer) => {
    const associatedData = fieldsOf("set", ...identityFields(row), hex(row.listingMac));
    return row.items && sealedBy(subkey, nonce, row.generation, associatedData, layOut(row.items));
  };

  test.each(vectors.sets)(
    "has this mac and these bytes, and opens to these items: $comment",
    ({ comment: _, ...row }) => {
      expect(() => verifyListing(listingKey, row, storedOf(row))).not.toThrow();
      expect(listingMacOf(row)).toBe(row.listingMac);
      if (row.items === null || row.nonce === null) return;
      expect(encodeItems(row.items.map((item) => Buffer.from(item)))).toEqual(layOut(row.items));
      expect(sealedAgain(row, hex(row.nonce))).toBe(row.sealed as never);
      const { all, count, item } = openedOf(row);
      expect(Array.from({ length: count }, (_, index) => item(index).toString())).toEqual(row.items);
      expect(all.toString()).toBe(row.items.join(","));
    },
  );

  test.each(vectors.sets)("is sealed so: $comment", ({ comment: _, ...row }) => {
    const items = row.items?.map((item) => Buffer.from(item));
    const values = items ? { items, dataKey: dataKeyOf(row.generation) } : null;
    const { generation, listing, listingMac, sealed } = sealSet(listingKey, row, row.listing, values);
    expect([generation, listing, listingMac.toString("hex")]).toEqual([row.generation, row.listing, row.listingMac]);
    const nonce = sealed?.subarray(6, 18) ?? Buffer.alloc(0);
    expect(sealed?.toString("hex") ?? null).toBe(sealedAgain(row, nonce) as never);
  });

  const [{ comment: _, ...first }] = vectors.sets as [(typeof vectors.sets)[number]];

  test.each(vectors.listingFails)("never accepts its listing: $reason", ({ change }) => {
    const row = { ...first, ...change } as SetVector;
    expect(() => verifyListing(listingKey, row, storedOf(row))).toThrow(failed);
  });

  test.each(vectors.valueFails)("never opens its values: $reason", ({ change }) => {
    expect(() => openedOf({ ...first, ...change } as SetVector)).toThrow(failed);
  });
});

describe("API key, version 1", () => {
  test.each(apiKey.minted)("these random bytes make this key: $comment", ({ random, key }) => {
    const source = hex(random);
    let at = 0;
    const minted = mintKey((length) => {
      at += length;
      return source.subarray(at - length, at);
    });
    expect(minted).toBe(key);
    expect(isWellFormedKey(key)).toBe(true);
  });

  test.each(apiKey.wellFormed)("is well formed: $comment", ({ key }) => expect(isWellFormedKey(key)).toBe(true));

  test.each(apiKey.malformed)("is malformed: $reason", ({ text }) => expect(isWellFormedKey(text)).toBe(false));

  test.each(apiKey.digests)("$key has this digest under this pepper", ({ pepper, key, digest }) => {
    expect(digestKey(hex(pepper), key).toString("hex")).toBe(digest);
  });
});

/* The runtime's own primitives, called as `src/` calls them. */

for (const { source, tests } of gcm.groups) {
  test(`AES-256-GCM agrees with the published cases: ${source}`, () => {
    for (const row of tests) {
      const valid = row.result === "valid";
      expect({ ...row, msg: opened(row) }).toEqual({ ...row, msg: valid ? row.msg : "does not open" });
      if (valid) expect({ ...row, ...sealed(row) }).toEqual(row);
    }
  });
}

for (const { source, tests } of hkdf.groups) {
  test(`HKDF-SHA-256 agrees with the published cases: ${source}`, () => {
    for (const { ikm, salt, info, size, okm } of tests) {
      const derived = hkdfSync("sha256", hex(ikm), salt === "" ? "" : hex(salt), hex(info), size);
      expect(Buffer.from(derived).toString("hex")).toBe(okm);
    }
  });
}

for (const { source, tests } of hmac.groups) {
  test(`HMAC-SHA-256 agrees with the published cases: ${source}`, () => {
    for (const { key, msg, tag } of tests) {
      const mac = new Bun.CryptoHasher("sha256", hex(key)).update(hex(msg)).digest("hex");
      expect(mac.slice(0, tag.length)).toBe(tag);
      const text = hex(msg).toString("latin1");
      if (/^[ -~]+$/.test(text)) expect(digestKey(hex(key), text).toString("hex").slice(0, tag.length)).toBe(tag);
    }
  });
}

type GcmCase = (typeof gcm.groups)[number]["tests"][number];

/* The associated data is given in two parts, as `src/seal/envelope.ts` does. */

function opened(row: GcmCase): string {
  try {
    const opening = createDecipheriv("aes-256-gcm", hex(row.key), hex(row.iv), { authTagLength: 16 });
    opening.setAAD(hex(row.aad).subarray(0, 6));
    opening.setAAD(hex(row.aad).subarray(6));
    opening.setAuthTag(hex(row.tag));
    const plaintext = opening.update(hex(row.ct));
    opening.final();
    return plaintext.toString("hex");
  } catch {
    return "does not open";
  }
}

function sealed(row: GcmCase): { ct: string; tag: string } {
  const sealing = createCipheriv("aes-256-gcm", hex(row.key), hex(row.iv), { authTagLength: 16 });
  sealing.setAAD(hex(row.aad).subarray(0, 6));
  sealing.setAAD(hex(row.aad).subarray(6));
  const ct = sealing.update(hex(row.msg)).toString("hex");
  sealing.final();
  return { ct, tag: sealing.getAuthTag().toString("hex") };
}
