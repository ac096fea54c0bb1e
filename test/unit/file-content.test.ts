import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { seal } from "../../src/seal/envelope.ts";
import { discard, FileContent } from "../../src/seal/file-content.ts";

const pieceBytes = 192 * 1024;
const key = randomBytes(32);
const associatedData = Buffer.from("here");

function contentOf(sealed: Buffer, isKept = true): FileContent {
  return new FileContent({ id: "file-1", key, associatedData, sealed }, isKept);
}

/* Contents of every length that open: property/seal.test.ts and integration/files.test.ts. */

describe("a file content", () => {
  test("does not open if a bit of any piece or of the tag is flipped, and names itself", async () => {
    const sealed = seal(key, 1, associatedData, Buffer.alloc(3 * pieceBytes));
    const refusal = { code: "decryption_failed", message: "the content file-1 does not open" };
    for (const at of [0, 17, 18, pieceBytes + 18, 2 * pieceBytes + 18, sealed.length - 17, sealed.length - 1]) {
      const flipped = Buffer.from(sealed);
      flipped.writeUInt8(flipped.readUInt8(at) ^ 0x80, at);
      const content = contentOf(flipped);
      await expect(content.verify()).rejects.toMatchObject(refusal);
      await expect((async () => content.open())()).rejects.toMatchObject(refusal);
      expect(() => content.base64().next()).toThrow("before it was verified");
    }
  });

  test("fails at its end if its sealed bytes change after it was verified", async () => {
    const sealed = seal(key, 1, associatedData, Buffer.alloc(3 * pieceBytes));
    const content = contentOf(sealed);
    await content.verify();
    sealed.writeUInt8(sealed.readUInt8(100) ^ 1, 100);
    expect(() => [...content.base64()]).toThrow();
  });

  test.each(["to its end", "in part"])("that is not kept gives its memory back once it was read %s", async (how) => {
    const sealed = Buffer.from(seal(key, 1, associatedData, randomBytes(3 * pieceBytes)));
    const content = contentOf(sealed, false);
    await content.verify();
    for (const _ of content.base64()) if (how === "in part") break;
    expect(sealed.length).toBe(0);
  });

  test("that is kept is verified once, and leaves as often as it is read", async () => {
    const bytes = randomBytes(3 * pieceBytes);
    const sealed = seal(key, 1, associatedData, bytes);
    const content = contentOf(sealed);
    await content.verify();
    for (const _ of [1, 2]) expect([...content.base64()].join("")).toBe(bytes.toString("base64"));
    sealed.writeUInt8(sealed.readUInt8(100) ^ 1, 100);
    await content.verify();
  });

  test("frees only a buffer that it has for itself", () => {
    const [whole, shared] = [new Uint8Array(8), new Uint8Array(new SharedArrayBuffer(8))];
    for (const part of [whole.subarray(0, 4), whole.subarray(4), shared]) discard(part);
    expect([whole.length, shared.length]).toEqual([8, 8]);
    discard(whole);
    expect(whole.length).toBe(0);
  });

  test("does not block the event loop while it is verified", async () => {
    let turns = 0;
    let verified = false;
    const work = contentOf(seal(key, 1, associatedData, Buffer.alloc(16 * pieceBytes))).verify();
    void work.then(() => {
      verified = true;
    });
    for (; !verified; turns++) await new Promise(setImmediate);
    expect(turns).toBeGreaterThan(10);
  });
});
