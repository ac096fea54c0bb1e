import { describe, expect, test } from "bun:test";
import type { Body } from "../../src/core/held.ts";
import { answer } from "../../src/serve/gates/body.ts";
import { beginExchange } from "../../src/serve/gates/exchange.ts";
import { MemoryBudget, smallBytesMax } from "../../src/serve/limit/budget.ts";

/** The answer with this body. @param amount - the memory that was taken for it */
function answerWith(content: Body["content"], amount: number) {
  const memory = new MemoryBudget();
  const share = memory.take(amount, "key-1");
  if (share === undefined) throw new Error("there is no memory");
  const measured = { stages: false, traceparent: false };
  const exchange = beginExchange(new Request("http://localhost/"), () => "", false, measured);
  const response = answer({ log: () => {} }, exchange, { content, contentType: "text/plain" }, share, '"tag"');
  return { response, exchange, memory };
}

describe("a body", () => {
  test("leaves in pieces that are neither empty nor larger than 256 KiB, whatever it is made of", async () => {
    const large = "a".repeat(600 * 1024);
    const small = Array<string>(1000).fill("bé");
    const bytes = Uint8Array.of(1, 2, 3);
    const some = Array<string>(4).fill("c".repeat(100 * 1024));
    const { response, memory } = answerWith([large, ...small, bytes, ...some], 1024 * 1024);
    const pieces: (string | Uint8Array)[] = [];
    for await (const piece of response.body as ReadableStream<string | Uint8Array>) pieces.push(piece);
    const two = 200 * 1024;
    expect(pieces.map(({ length }) => length)).toEqual([smallBytesMax, smallBytesMax, 88 * 1024, 2000, 3, two, two]);
    const all = Buffer.concat(pieces.map((piece) => Buffer.from(piece as Uint8Array)));
    expect(all.equals(Buffer.from(`${large}${small.join("")}\x01\x02\x03${some.join("")}`))).toBe(true);
    expect(memory.bytesTaken).toEqual({ small: 0, large: 0 });
  });

  test("of 256 KiB is sent whole and gives its memory back at once; one byte more is sent in pieces", () => {
    const bodyOf = (bytes: number) => answerWith(["x".repeat(bytes)], bytes);
    const [whole, inPieces] = [bodyOf(smallBytesMax), bodyOf(smallBytesMax + 1)];
    expect([whole.exchange.bytes, whole.memory.bytesTaken]).toEqual([smallBytesMax, { small: 0, large: 0 }]);
    expect(inPieces.exchange.bytes).toBeUndefined();
    expect(inPieces.memory.bytesTaken).toEqual({ small: 0, large: smallBytesMax + 1 });
  });
});
