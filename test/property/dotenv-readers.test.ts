/**
 * How other programs read Keyhole's dotenv text: which of them read which values back exactly, and that no value runs a
 * command, damages another variable or adds one. There is no dotenv standard, so the tests run the programs.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { type NamedValue, renderDotenv } from "../../src/core/formats/dotenv.ts";
import { canary } from "../support/canary.ts";
import { newFolder } from "../support/folder.ts";
import { skipWithout } from "../support/programs.ts";
import { isRepresentable, nastyValue, nastyValues } from "../support/readers/nasty.ts";
import { type Family, families, findReaders, type Reader, type Reading } from "../support/readers/readers.ts";
import { parts, seed } from "../support/seed.ts";

setDefaultTimeout(120_000);

/** One row for each reason why a value is not portable, and the readers that do not read it back exactly. */
const table: readonly { readonly values: readonly string[]; readonly lostIn: readonly Family[] }[] = [
  { values: ["plain", "two words", "don't panic", "p$", '{\n "a": "b"\n}', "C:\\Users\\me", "=x:=y"], lostIn: [] },
  { values: ["a$NAME", "P4$sW0rd"], lostIn: ["bun", "dotenv-expand"] },
  { values: [`a\${NAME}b`], lostIn: ["bun", "dotenv-expand", "python"] },
  { values: [`a$(touch ${canary})b`], lostIn: ["dotenv-expand"] },
  { values: ["\\\\server\\share"], lostIn: ["python"] },
  { values: ["one\r\ntwo", "a\rb", "it's\r"], lostIn: ["node", "shell"] },
  { values: ['"a"\rb', "a\\b\rc"], lostIn: ["dotenv", "dotenv-expand", "dotenvx", "node", "bun", "python"] },
  { values: ['{"msg":"it\'s on"}', "C:\\Temp\\"], lostIn: ["shell"] },
  { values: ["it's $5", "it's $ 5"], lostIn: ["dotenv", "node", "python"] },
  {
    values: ['it\'s "fine"', "it's C:\\new", "pass word\\"],
    lostIn: ["dotenv", "dotenv-expand", "dotenvx", "node", "bun"],
  },
  { values: ['a\'b\n"c"'], lostIn: ["dotenv", "dotenv-expand", "dotenvx", "node", "bun", "shell"] },
  { values: ["it's `x`", "I'm at $(pwd)"], lostIn: families.filter((family) => family !== "shell") },
];

/** Portable values next to the others. A value that does not end where it should would swallow them. */
const neighbours = ["# hash", "", "it's", 'a "b" c', "two\nlines", "x=y", "{}", "end"];

const corpus = nastyValues.filter(isRepresentable);

const { readers, missing } = await findReaders();
for (const name of missing) skipWithout([name], `${name} reads our dotenv text as promised`);

describe.each(readers.map((reader) => ({ name: reader.name, reader })))("$name", ({ reader }) => {
  const allowed = (value: string) => !runsCommand(value, reader.family);

  test("reads the corpus of nasty values as promised", async () => {
    const values = corpus.filter(allowed);
    const alone = values.map((value, at) => named([neighbour(at), value, neighbour(at + 1)]));
    const among = chunks(values, 150).map((chunk) => named(chunk.flatMap((value, at) => [neighbour(at), value])));
    expect(await broken(reader, reader.slow ? among : [...among, ...alone])).toEqual([]);
  });

  test.each(parts(4))("reads files of random nasty values as promised, part %i", async (part) => {
    // As many values in fewer files, if each file takes a process.
    const { files: numRuns, ...lengths } = reader.slow
      ? { files: 1, minLength: 50, maxLength: 100 }
      : { files: 75, minLength: 2, maxLength: 12 };
    const file = fc.array(nastyValue, { ...lengths, size: "max" });
    const files = fc.sample(file, { seed: seed + part, numRuns });
    const written = files.map((values) => named(values.filter((value) => isRepresentable(value) && allowed(value))));
    expect({ seed, broken: await broken(reader, written) }).toEqual({ seed, broken: [] });
  });

  test("reads back exactly the values that the table promises", async () => {
    const rows = table.flatMap(({ values, lostIn }) =>
      values.filter(allowed).map((value) => ({ value, exact: !lostIn.includes(reader.family) })),
    );
    const [reading] = await readFiles(reader, [named(rows.map(({ value }) => value))]);
    expect(rows.map(({ value }, at) => ({ value, exact: reading?.get(nameAt(at)) === value }))).toEqual(rows);
  });
});

const commands = [`$(touch ${canary})`, `$$UNSET(touch ${canary})`];
test.each(commands)("dotenv-expand, the only exception, runs %s", async (value) => {
  const reader = readers.find(({ family }) => family === "dotenv-expand");
  if (reader === undefined) throw new Error("dotenv-expand is a development dependency");
  expect(await broken(reader, [named([value])])).toContain("a command ran");
});

/** The promises that the reader broke for these files, in a few sentences. */
async function broken(reader: Reader, files: readonly NamedValue[][]): Promise<string[]> {
  const wrong: string[] = [];
  const readings = await readFiles(reader, files, () => wrong.push("a command ran"));
  if (readings.length !== files.length) wrong.push(`${readings.length} of ${files.length} files were read`);
  for (const [at, reading] of readings.entries()) {
    const file = files[at] ?? [];
    const where = `in ${JSON.stringify(renderDotenv(file).text)}`;
    const lastBackslash = file.findLast(({ value }) => value.endsWith("\\"));
    for (const variable of file) {
      const read = reading.get(variable.name);
      if (read === variable.value || lostIn(variable.value, variable === lastBackslash).has(reader.family)) continue;
      wrong.push(
        `${JSON.stringify(variable.value)} ${read === undefined ? "is gone" : `became ${JSON.stringify(read)}`} ${where}`,
      );
    }
    const names = new Set(file.map(({ name }) => name));
    for (const name of reading.keys()) if (!names.has(name)) wrong.push(`${name} was added ${where}`);
  }
  return wrong.slice(0, 10);
}

async function readFiles(reader: Reader, files: readonly NamedValue[][], onCommand = () => {}): Promise<Reading[]> {
  const folder = newFolder();
  const paths = files.map((file, at) => {
    const path = join(folder, `${at}.env`);
    writeFileSync(path, renderDotenv(file).text);
    return path;
  });
  const readings = await reader.read(paths, folder);
  // If a reader runs a command from a value, a file of this name appears.
  if (readdirSync(folder, { recursive: true }).some((path) => String(path).includes(canary))) onCommand();
  return readings;
}

/**
 * The readers that need not read a value back, by the form in which it is written: the table above for any value. Empty
 * for portable values.
 */
function lostIn(value: string, isLastBackslash: boolean): ReadonlySet<Family> {
  const { text, nonportable } = renderDotenv([{ name: "V", value }]);
  const lost = new Set<Family>();
  if (nonportable.length === 0) return lost;
  const javascript = ["dotenv", "dotenv-expand", "dotenvx", "node", "bun"] as const;
  const lose = (when: boolean, ...where: readonly Family[]) => {
    if (when) for (const family of where) lost.add(family);
  };
  const has = (pattern: RegExp) => pattern.test(value);
  if (text.startsWith("V='")) {
    lose(has(/\$[A-Za-z0-9_{]/), "bun", "dotenv-expand");
    lose(has(/\\\$/), "bun", "dotenv-expand");
    lose(has(/\$\{|\\\\/), "python");
    lose(has(/\$\(/), "dotenv-expand");
    lose(has(/\r/), ...javascript, "python");
  } else if (!text.startsWith('V="')) {
    lose(true, "shell");
  } else if (!has(/["\\$`]/)) {
    lose(has(/\r/), "node", "shell");
  } else {
    lose(has(/\$/), "dotenv", "node", "python");
    lose(has(/["\\]/), ...javascript);
    lose(has(/`|\$\(/), ...javascript, "python");
    lose(has(/\r/), ...javascript, "python");
    lose(has(/"/) && has(/[\r\n]/), "shell");
    lose(!isLastBackslash && value.endsWith("\\"), "python");
    lose(value.startsWith("encrypted:"), "dotenvx"); // it would decrypt this, and keeps the backslashes
  }
  return lost;
}

/** Whether the reader may run a command in this value, which is then not tested. Expansion can produce `$(` too. */
function runsCommand(value: string, family: Family): boolean {
  return family === "dotenv-expand" && /\$[\s\S]*\(/.test(value) && !value.includes("'") && !value.endsWith("\\");
}

function neighbour(at: number): string {
  return neighbours[at % neighbours.length] ?? "";
}

function named(values: readonly string[]): NamedValue[] {
  return values.map((value, at) => ({ name: nameAt(at), value }));
}

function nameAt(at: number): string {
  return `V${String(at).padStart(4, "0")}`;
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}
