import { describe, expect, test } from "bun:test";
import { parseMinisignKey, verifyMinisign } from "../../src/cli/minisign.ts";

/** Made by minisign 0.11 of Debian: a key, what it signed, and the signatures of both forms. */
const publicKey = `untrusted comment: minisign public key 3AA64C4F136BBA47
RWRHumsTT0ymOpR2CxJRhpMOZsi+4aUujN7yP+3Jh5derUXkqp5fyT/0
`;
const content = Buffer.from("one\ntwo\n");
const signature = `untrusted comment: signature from minisign secret key
RURHumsTT0ymOojc3FCnkqWfUf2VOvkwngZv3CVCBwvdTO4zViFYOu5RqO5JpyAhjHv8SL1ACUGfwVIPhCuDx+P0RrEyn+o0MAA=
trusted comment: keyhole 0.3.0
ctYqgeiQ0oCqiksk7Kf3LkYPV9plgkZKEOJgu4hlEVokdCHEF/wtHWhfmHdfOTJNADLbqF4dR5//FrK67tvLAw==
`;
const older = `untrusted comment: signature from minisign secret key
RWRHumsTT0ymOscPYiCuGij6JkofrKaDwXvZ8SzNkcqzHAGPc8XhOFUcQDBDDdyKdgnzEwuP7XzVyoHi6Ncf1MjaVBRZ9B4A5A8=
trusted comment: keyhole 0.3.0
IF/vaKkEisjHEYO+Aze4lzPSzXsNId6uSJqx8n1BpnMvkWRSmdVOBblAUz7r8Yq8dJiHcp5wN7OBlYszilfbCw==
`;
const another = "RWT/AS80Rh25GzinzezWyr1CG5v6tqMnOVZJ71T7QOYEPoUIp+KSEYVX";

const verifiedBy = (keyText: string, signed: Uint8Array, text: string) => {
  const key = parseMinisignKey(keyText);
  if (key === undefined) throw new Error("this is no public key");
  return verifyMinisign(key, signed, text);
};

describe("a signature of minisign", () => {
  test("is verified, and gives its trusted comment, by the file of the key or by its line", () => {
    expect(verifiedBy(publicKey, content, signature)).toBe("keyhole 0.3.0");
    expect(verifiedBy(publicKey.split("\n")[1] ?? "", content, signature)).toBe("keyhole 0.3.0");
    expect(verifiedBy(publicKey, content, signature.trimEnd())).toBe("keyhole 0.3.0");
  });

  test("is refused for other content, by another key, and in the older form", () => {
    expect(verifiedBy(publicKey, Buffer.from("one\ntwO\n"), signature)).toBeUndefined();
    expect(verifiedBy(publicKey, Buffer.alloc(0), signature)).toBeUndefined();
    expect(verifiedBy(another, content, signature)).toBeUndefined();
    expect(verifiedBy(publicKey, content, older)).toBeUndefined();
  });

  test("is refused after a change of any character but those of its untrusted comment", () => {
    const start = signature.indexOf("\n") + 1;
    for (let at = 0; at < signature.length - 1; at++) {
      for (const other of ["A", "z", " ", "\n"]) {
        if (signature[at] === other) continue;
        const changed = signature.slice(0, at) + other + signature.slice(at + 1);
        const isComment = at >= "untrusted comment: ".length && at < start - 1 && other !== "\n";
        const trusted = isComment ? "keyhole 0.3.0" : undefined;
        expect([at, other, verifiedBy(publicKey, content, changed)]).toEqual([at, other, trusted]);
      }
    }
    expect(verifiedBy(publicKey, content, `${signature}${signature}`)).toBeUndefined();
    expect(verifiedBy(publicKey, content, "")).toBeUndefined();
  });

  test("needs a public key: not a signature, not a shorter one, and no other kind", () => {
    const line = publicKey.split("\n")[1] ?? "";
    for (const text of ["", "RW", line.slice(0, -4), `${line}AAAA`, line.replace(/^RW/, "RU"), signature]) {
      expect([text, parseMinisignKey(text)]).toEqual([text, undefined]);
    }
  });
});
