import { describe, expect, test } from "bun:test";
import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { digestKey, isWellFormedKey, mintKey } from "../../src/access/api-key.ts";
import { generationOf, open, overheadBytes, sealWithChosenNonceForVectors } from "../../src/seal/envelope.ts";
import { openAsText } from "../../src/seal/file-text.ts";
import { Keyring, type SubkeyKind, type SystemKeyPurpose } from "../../src/seal/keyring.ts";
import { accountPlace, dataKeyPlace, filePlace, systemKeyPlace, variablePlace } from "../../src/seal/place.ts";
import gcm from "../vectors/aes-256-gcm.json" with { type: "json" };
import apiKey from "../vectors/api-key-v1.json" with { type: "json" };
import envelope from "../vectors/envelope-v1.json" with { type: "json" };
import hkdf from "../vectors/hkdf-sha256.json" with { type: "json" };
import hmac from "../vectors/hmac-sha256.json" with { type: "json" };
import keyring from "../vectors/keyring-v1.json" with { type: "json" };

const hex = (text: string) => Buffer.from(text, "hex");

/** Builds the associated data of a row's `kind` from its `fields`. */
const associatedDataOf: Readonly<Record<string, (fields: never) => Buffer>> = {
  variable: variablePlace,
  account: accountPlace,
  file: filePlace,
  "data key": dataKeyPlace,
  "system key": systemKeyPlace,
};

describe("envelope, version 1", () => {
  test.each(envelope.places)("the associated data of $kind has these bytes: $comment", ({ kind, fields, bytes }) => {
    expect(associatedDataOf[kind]?.(fields as never).toString("hex")).toBe(bytes);
  });

  test.each(envelope.opens)("seals to these bytes and opens again: $comment", (row) => {
    const [key, nonce, associatedData, plaintext] = [hex(row.key), hex(row.nonce), hex(row.place), hex(row.plaintext)];
    const sealed = sealWithChosenNonceForVectors(nonce, key, row.generation, associatedData, plaintext);
    expect(sealed.toString("hex")).toBe(row.sealed);
    expect(sealed.length).toBe(plaintext.length + overheadBytes);
    expect(generationOf(sealed)).toBe(row.generation);
    expect(open(key, associatedData, sealed)).toEqual(plaintext);
    expect(Buffer.from(openAsText({ id: "file", key, place: associatedData, sealed }).base64).toString()).toBe(
      plaintext.toString("base64"),
    );
  });

  test.each(envelope.fails)("never opens: $reason", (row) => {
    const [key, associatedData, sealed] = [hex(row.key), hex(row.place), hex(row.sealed)];
    expect(() => open(key, associatedData, sealed)).toThrow(expect.objectContaining({ code: "decryption_failed" }));
    expect(() => openAsText({ id: "file", key, place: associatedData, sealed })).toThrow(
      expect.objectContaining({ code: "decryption_failed" }),
    );
  });
});

describe("keyring, version 1", () => {
  const roots = keyring.roots.map((root) => hex(root.rootKey));
  const both = new Keyring(roots);

  test.each(keyring.roots)("root $rootId has this id", ({ rootKey, rootId }) => {
    expect(new Keyring([hex(rootKey)]).rootId).toBe(rootId);
  });

  test.each(keyring.systemKeys)("the $purpose key under root $rootId unwraps to these bytes", (row) => {
    const key = both.unwrapSystemKey(row.purpose as SystemKeyPurpose, row.rootId, hex(row.wrapped));
    expect(Buffer.from(key).toString("hex")).toBe(row.key);
  });

  test.each(keyring.dataKeys)("data key $generation under root $rootId has these subkeys for $project.slug", (row) => {
    const dataKey = both.dataKey(row.project, row.generation, row.rootId, hex(row.wrapped));
    expect(dataKey.generation).toBe(row.generation);
    for (const [kind, subkey] of Object.entries(row.subkeys)) {
      expect(Buffer.from(dataKey.subkey(kind as SubkeyKind)).toString("hex")).toBe(subkey);
    }
  });

  test.each(keyring.dataKeyFails)("a data key never opens: $reason", (row) => {
    const project = { id: row.projectId, organizationId: "o", slug: "s" };
    expect(() => both.dataKey(project, row.generation, row.rootId, hex(row.wrapped))).toThrow(
      expect.objectContaining({ code: "decryption_failed" }),
    );
  });
});

describe("API key, version 1", () => {
  test.each(apiKey.minted)("these random bytes yield this key: $comment", ({ random, key }) => {
    const source = hex(random);
    let at = 0;
    const minted = mintKey((length) => {
      at += length;
      return source.subarray(at - length, at);
    });
    expect(minted).toBe(key);
    expect(isWellFormedKey(key)).toBe(true);
  });

  test.each(apiKey.wellFormed)("is well formed: $comment", ({ key }) => {
    expect(isWellFormedKey(key)).toBe(true);
  });

  test.each(apiKey.malformed)("is malformed: $reason", ({ text }) => {
    expect(isWellFormedKey(text)).toBe(false);
  });

  test.each(apiKey.digests)("$key has this digest under this pepper", ({ pepper, key, digest }) => {
    expect(digestKey(hex(pepper), key).toString("hex")).toBe(digest);
  });
});

/* The runtime's primitives, called as in `src/`. */

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

/* The associated data is passed in two parts, as in the envelope. */

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
