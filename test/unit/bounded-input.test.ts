import { describe, expect, test } from "bun:test";
import { Readable } from "node:stream";
import { readChunks } from "../../src/cli/terminal/input.ts";
import { linesOf as split } from "../../src/core/words/log-lines.ts";
import { parseImport } from "../../src/kinds/variables/import-text.ts";

/** The lines of what comes in these chunks. */
function linesOf(chunks: Iterable<Uint8Array>): Promise<string[]> {
  async function* coming() {
    yield* chunks;
  }
  return Array.fromAsync(split(coming()), String);
}

describe("the lines of an input", () => {
  test.each([
    ["are cut at line feeds, wherever a chunk ends", ["a\nb", "c\r", "\n\nlast"], ["a", "bc", "", "last"]],
    ["are none of an empty one", [], []],
    ["need no line feed at the end", ["a\n", "b"], ["a", "b"]],
  ])("%s", async (_, chunks, lines) => expect(await linesOf(chunks.map((chunk) => Buffer.from(chunk)))).toEqual(lines));

  test("are held up to 64 KiB, and the rest of a longer one is skipped", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "x");
    const endless = function* () {
      for (let n = 0; n < 4096; n++) yield chunk;
      yield Buffer.from("\nnext\n");
    };
    expect((await linesOf(endless())).map((line) => line.length)).toEqual([64 * 1024, 4]);
  });
});

test("what comes through the door ends at 256 MiB, and an operator's log does not", async () => {
  const chunk = Buffer.alloc(1024 * 1024, "x");
  const read = async (person: string | undefined, count: number) => {
    const stdin = Readable.from(Array.from({ length: count }, () => chunk)) as unknown as NodeJS.ReadStream;
    let bytes = 0;
    for await (const { length } of readChunks({ terminal: { ...process, stdin }, person }, "-")) bytes += length;
    return bytes;
  };
  expect([await read("ana", 256), await read(undefined, 257)]).toEqual([256 * 1024 * 1024, 257 * 1024 * 1024]);
  await expect(read("ana", 257)).rejects.toMatchObject({ code: "bound", exitCode: 5 });
});

describe("a text with more names than an environment can hold", () => {
  const bytes = 8 * 1024 * 1024;
  const fill = (part: string) => part.repeat(bytes / part.length);
  const names = (count: number, line: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => line(n)).join("");
  test.each([
    ["env", "names", names(10_001, (n) => `A${n}=1\n`)],
    ["yaml", "names", names(10_001, (n) => `A${n}: 1\n`)],
    ["yaml", "a list", `A:\n${fill("- a\n")}`],
    ["yaml", "a list in brackets", `A: [${fill("a,")}]`],
    ["yaml", "comments", fill("#\n")],
    ["json", "names", `{${names(10_000, (n) => `"A${n}":1,`)}"B":1}`],
    ["json", "lists", `{"A":[${fill("[],")}[]]}`],
    ["json", "open brackets", fill("[")],
  ] as const)("is refused before it is built, as %s of %s", (format, _, text) => {
    expect(() => parseImport(format, text)).toThrow("more than the 10000 variables");
  });

  test("is not one with as many as it can hold", () => {
    const value = "x".repeat(800);
    const yaml = names(10_000, (n) => `# a comment\nA${n}: "${value}"\n\n`);
    const json = `{${names(9_999, (n) => `"A${n}": "${value}",\n`)}"B": 1}`;
    const whole = { problems: [], variables: { length: 10_000 } };
    expect([parseImport("yaml", yaml), parseImport("json", json)]).toMatchObject([whole, whole]);
  });
});
