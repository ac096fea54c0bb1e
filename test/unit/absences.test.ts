import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Glob } from "bun";
import { absences, cuts, slices } from "../support/absences.ts";

const source = `${import.meta.dir}/../../src`;
const files = ["{kinds,people}/**/*.ts", "core/words/*.ts", "cli/*.ts"];
/** What refuses there says why; only `outcome.ts` tells what is not there. */
const isLeftOut = (file: string) => /^people\/desk\/(?!outcome\.ts$)/.test(file);
const absence =
  /^(?:nothing|nobody|no|none|there (?:is|are) no)\b|\b(?:not since|has no|holds no|none is|read nothing)\b/i;
/** What a command did not do. */
const deed = /^Nothing (?:was (?!found)|would|is stored)/;

/** Where a pattern stands in the code of people, as `FILE: its first group`. */
function found(pattern: RegExp): string[] {
  const folders = "{kinds,people,cli,dashboard}/**/*.{ts,tsx}";
  return [...new Glob(folders).scanSync(source)].flatMap((file) =>
    [...readFileSync(`${source}/${file}`, "utf8").matchAll(pattern)].map(([, what = ""]) => `${file}: ${what}`),
  );
}

test("every list that may be cut is listed with what says that there is more", () => {
  const given = found(/\.with\(\s*("[^"]*"|<a|[\w.]+)/g).map((one) => one.replace(/<a$/, "<a …"));
  expect(given.sort()).toEqual(Object.values(cuts).flat().toSorted());
});

test("so is every list of which a part is taken", () => {
  const known = Object.values(slices).flat();
  const taken = found(/\.slice\(0, (\w*[Mm]ax|limit|shown)\b/g);
  expect([...new Set(taken)].sort()).toEqual(known.toSorted());
});

/** The texts that say that nothing is there, as `FILE: TEXT`. */
function textsOf(file: string): string[] {
  const code = readFileSync(`${source}/${file}`, "utf8").replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, "");
  return [...code.matchAll(/"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\.)*`/g)]
    .map(([literal]) => literal.slice(1, -1))
    .filter((text) => absence.test(text) && !deed.test(text))
    .map((text) => `${file}: ${text.replace(/\$\{[^{}]*\}/g, "…")}`);
}

test("every text that says that nothing is there is listed with what makes it true, and each line is of one", () => {
  const texts = files
    .flatMap((pattern) => [...new Glob(pattern).scanSync(source)])
    .filter((file) => !isLeftOut(file))
    .flatMap(textsOf);
  const lines = Object.values(absences).flat();
  /** One word stands for itself alone, and more of them for the text that begins so. */
  const isOf = (line: string) => (text: string) =>
    text === line || (line.split(" ").length > 2 && text.startsWith(line));
  expect(texts.filter((text) => !lines.some((line) => isOf(line)(text)))).toEqual([]);
  expect(lines.filter((line) => !texts.some(isOf(line)))).toEqual([]);
});
