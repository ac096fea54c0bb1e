import { afterAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { overheadBytes, seal } from "../../src/seal/envelope.ts";
import { FileOpener } from "../../src/seal/file-opener.ts";

const key = randomBytes(32);
const associatedData = Buffer.from("here");
const opener = new FileOpener();
afterAll(() => opener.close());

const large = 3 * 1024 * 1024 + 7;

function sealedFile(content: Buffer, index = 0) {
  return { id: `file-${index}`, key, associatedData, sealed: seal(key, 1, associatedData, content) };
}

describe("the opener of files", () => {
  test.each([[[0]], [[1, 2, 3]], [[100_000, 0, 70_000]], [[large]], [[large, 0, 1, 300_000]]])(
    "opens contents of %p bytes into base64, in their order",
    async (lengths) => {
      const contents = lengths.map((length) => randomBytes(length));
      const opened = await opener.open(contents.map(sealedFile));
      expect(opened.map(textOf)).toEqual(contents.map((content) => content.toString("base64")));
    },
  );

  test.each([10, large])(
    "opens all or none: one content of %p bytes that does not open fails the call",
    async (length) => {
      const files = [0, 1, 2].map((index) => sealedFile(randomBytes(length), index));
      const broken = files[1] as { sealed: Buffer };
      broken.sealed[broken.sealed.length - 1] = (broken.sealed.at(-1) as number) ^ 1;
      await expect(opener.open(files)).rejects.toMatchObject({
        code: "decryption_failed",
        message: expect.stringContaining("file-1"),
      });
      await expectOpens(opener, length);
    },
  );

  test("takes over a buffer that is the content's alone, and does not touch one that is shared", async () => {
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

  test("answers many calls at once, each with its own contents", async () => {
    const contents = Array.from({ length: 24 }, (_, n) => Buffer.alloc(n % 3 === 0 ? 50 : 400_000 + n, `content ${n}`));
    const opened = await Promise.all(contents.map((content) => opener.open([sealedFile(content)])));
    expect(opened.map(([bytes]) => textOf(bytes))).toEqual(contents.map((content) => content.toString("base64")));
  });

  test("does not block the event loop", async () => {
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

  test("refuses what cannot be handed to the thread, and goes on", async () => {
    const file = sealedFile(Buffer.alloc(large));
    await expect(opener.open([file, file])).rejects.toMatchObject({ code: "unavailable" });
    await expectOpens(opener, large);
  });

  test("refuses waiting calls if its thread ends, and then starts another", async () => {
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
    await expectOpens(other, large);
    other.close();
  });

  test("refuses waiting calls if it is closed, and starts another thread for later ones", async () => {
    const waiting = opener.open([sealedFile(Buffer.alloc(large))]);
    opener.close();
    await expect(waiting).rejects.toMatchObject({ code: "unavailable" });
    await expectOpens(opener, large);
  });
});

function textOf(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString();
}

async function expectOpens(opener: FileOpener, length: number): Promise<void> {
  const [opened] = await opener.open([sealedFile(Buffer.alloc(length))]);
  expect(textOf(opened)).toBe(Buffer.alloc(length).toString("base64"));
}
