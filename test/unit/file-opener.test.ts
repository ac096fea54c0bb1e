import { afterAll, describe, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { overheadBytes, seal } from "../../src/seal/envelope.ts";
import { FileOpener } from "../../src/seal/file-opener.ts";

const key = randomBytes(32);
const place = Buffer.from("here");
const opener = new FileOpener();
afterAll(() => opener.close());

const large = 3 * 1024 * 1024 + 7;

function sealedFile(content: Buffer, index = 0) {
  return { id: `file-${index}`, key, place, sealed: seal(key, 1, place, content) };
}

describe("the opener of files", () => {
  test.each([[[0]], [[1, 2, 3]], [[100_000, 0, 70_000]], [[large]], [[large, 0, 1, 300_000]]])(
    "gives sizes, checksums and base64 of %p bytes, in their order",
    async (lengths) => {
      const contents = lengths.map((length) => randomBytes(length));
      const texts = await opener.open(contents.map(sealedFile));
      expect(texts.map(({ size, sha256, base64 }) => [size, sha256, Buffer.from(base64).toString()])).toEqual(
        contents.map((content) => [
          content.length,
          createHash("sha256").update(content).digest("hex"),
          content.toString("base64"),
        ]),
      );
    },
  );

  test.each([10, large])(
    "opens all or none: one of %p bytes that does not open fails those beside it",
    async (length) => {
      const files = [0, 1, 2].map((index) => sealedFile(randomBytes(length), index));
      const broken = files[1] as { sealed: Buffer };
      broken.sealed[broken.sealed.length - 1] = (broken.sealed.at(-1) as number) ^ 1;
      await expect(opener.open(files)).rejects.toMatchObject({
        code: "decryption_failed",
        message: expect.stringContaining("file-1"),
      });
      expect((await opener.open([sealedFile(Buffer.alloc(length))]))[0]?.size).toBe(length);
    },
  );

  test("takes what is a file's own, and leaves as it was what shares its memory", async () => {
    const own = sealedFile(randomBytes(large));
    const around = Buffer.alloc(large + overheadBytes + 20, 7);
    const shared = { ...own, sealed: around.subarray(10, 10 + own.sealed.length) };
    shared.sealed.set(own.sealed);
    const [a, b] = await opener.open([own, shared]);
    expect(own.sealed.length).toBe(0);
    expect(shared.sealed.length).toBe(large + overheadBytes);
    expect([...around.subarray(0, 10), ...around.subarray(-10)]).toEqual(Array(20).fill(7));
    expect(b).toEqual(a as never);
    expect(key.equals(own.key)).toBe(true);
  });

  test("answers many at once, each with its own", async () => {
    const contents = Array.from({ length: 24 }, (_, n) => Buffer.alloc(n % 3 === 0 ? 50 : 400_000 + n, `content ${n}`));
    const texts = await Promise.all(contents.map((content) => opener.open([sealedFile(content)])));
    expect(texts.map(([text]) => Buffer.from(text?.base64 ?? []).toString())).toEqual(
      contents.map((content) => content.toString("base64")),
    );
  });

  test("lets others take a turn while it works", async () => {
    let turns = 0;
    let opened = false;
    const work = opener.open(Array.from({ length: 4 }, () => sealedFile(Buffer.alloc(large)))).then(() => {
      opened = true;
    });
    while (!opened) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      turns += 1;
    }
    await work;
    expect(turns).toBeGreaterThan(4);
  });

  test("refuses what cannot be handed over, and goes on", async () => {
    const file = sealedFile(Buffer.alloc(large));
    await expect(opener.open([file, file])).rejects.toMatchObject({ code: "unavailable" });
    expect((await opener.open([sealedFile(Buffer.alloc(large))]))[0]?.size).toBe(large);
  });

  test("refuses who waits when its thread ends without a word", async () => {
    const threads: Worker[] = [];
    const { Worker: Real } = globalThis;
    globalThis.Worker = class extends Real {
      constructor(url: string | URL) {
        super(url);
        threads.push(this);
      }
    };
    const other = new FileOpener();
    await other.open([sealedFile(Buffer.alloc(large))]);
    globalThis.Worker = Real;
    const waiting = other.open([sealedFile(Buffer.alloc(large)), sealedFile(Buffer.alloc(large))]);
    for (const thread of threads) thread.terminate();
    expect(threads.length).toBe(1);
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    expect((await other.open([sealedFile(Buffer.alloc(large))]))[0]?.size).toBe(large);
    other.close();
  });

  test("refuses who waits when it is closed, and begins another for who comes then", async () => {
    const waiting = opener.open([sealedFile(Buffer.alloc(large))]);
    opener.close();
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    expect((await opener.open([sealedFile(Buffer.alloc(large))]))[0]?.size).toBe(large);
  });
});
