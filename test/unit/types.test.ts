import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";

/*
 * What does not compile. A file of `test/types` is about one promise. A line that breaks it stands below a comment that
 * says what the line is, and the compiler's reason as a pattern. `bun run types` requires an error there; this test
 * compiles copies without these comments, and compares the reasons.
 */

const root = join(import.meta.dir, "../..");
const src = join(root, "src");
const promises = readdirSync(join(root, "test/types"));
const kinds = readdirSync(join(src, "kinds")).filter((name) => !name.includes("."));
/** What the API reads through. It cannot import what opens sets: house.test.ts. */
const reads = [
  ...kinds.map((kind) => `kinds/${kind}/read.ts`),
  "serve/api/read-projects.ts",
  "serve/api/read-requests.ts",
];

type Refused = { readonly file: string; readonly line: number; readonly reason: RegExp };
const refused = promises.flatMap((file): [what: string, refused: Refused][] =>
  linesOf(file).flatMap((line, at) => {
    const [, what, reason] = /^\s*\/\/ @ts-expect-error ([^:]+): (.+)$/.exec(line) ?? [];
    return what && reason ? [[what, { file, line: at + 2, reason: new RegExp(reason) }]] : [];
  }),
);

/** Modules that compile, by what they show. */
const accepted: [what: string, code: string][] = [
  ...reads.map((file): [string, string] => [
    `no function of ${file} returns bytes outside a Held`,
    `import type { Leaks } from "./entry.ts";
    export const none: [Leaks<typeof import("${src}/${file}")>] extends [never] ? true : false = true;`,
  ]),
  ...kinds.map((kind): [string, string] => [
    `no maker of a render in kinds/${kind}/render.ts takes more than text`,
    `import type { Hooks } from "./entry.ts";
    export const none: [Hooks<typeof import("${src}/kinds/${kind}/render.ts")>] extends [never] ? true : false = true;`,
  ]),
];

/** Files with an example of what they export. */
const documented = [
  "core/held.ts",
  "people/desk/permit.ts",
  "people/desk/context.ts",
  "people/desk/operation.ts",
  "client/npm/client.ts",
];
const exampleScope = `
import { release } from "${src}/record/release.ts";
import { type Body, Held, Render } from "${src}/core/held.ts";
import type { AuditEntry } from "${src}/record/entry.ts";
import type { ApiParts } from "${src}/serve/gates/api-parts.ts";
import type { ProjectPlace } from "${src}/serve/access/rights.ts";
import type { Change } from "${src}/people/desk/changes.ts";
import { type AdminContext, writing } from "${src}/people/desk/context.ts";
import { input, project } from "${src}/people/desk/inputs.ts";
import { operation } from "${src}/people/desk/operation.ts";
import { done } from "${src}/people/desk/outcome.ts";
import { Permit, rightTo } from "${src}/people/desk/permit.ts";
import { planRename } from "${src}/people/projects/projects.ts";
import { type OpenedVariables, variablesJson } from "${src}/kinds/variables/render.ts";
import { createClient } from "${src}/client/npm/client.ts";
declare const admin: AdminContext;
declare const entries: AuditEntry[];
declare const place: ProjectPlace;
declare const change: Change;
declare const apiKey: string;
declare const work: (admin: AdminContext) => Promise<number>;
export const example = async (journal: ApiParts["journal"], opened: OpenedVariables) => {
`;

describe("the compiler", () => {
  let errors: readonly Found[];
  let instantiations: number;
  const examples = documented.flatMap(examplesOf);
  beforeAll(() => {
    ({ errors, instantiations } = compile(newFolder(), [...accepted, ...examples]));
  });

  test.each(refused)("refuses %s", (_, { file, line, reason }) => {
    const found = errors.find((error) => error.file === file && error.line === line);
    expect(found?.text ?? "").toMatch(reason);
  });
  test.each([...accepted, ...examples])("accepts: %s", (what) => {
    expect(
      errors.filter(({ file }) => file === fileOf([...accepted, ...examples].findIndex(([one]) => one === what))),
    ).toEqual([]);
  });
  test("finds no error but these", () => {
    const expected = refused.map(([, { file, line }]) => `${file}:${line}`);
    expect(errors.map(({ file, line }) => `${file}:${line}`).toSorted()).toEqual(expected.toSorted());
  });
  /** A type that costs more than it tells takes seconds of each check. A number far above the count is to be lowered. */
  test("stays within its budget: instantiations of types for all that these files import", () => {
    expect(instantiations).toBeLessThanOrEqual(instantiationsMax);
    expect(instantiations).toBeGreaterThan(0.9 * instantiationsMax);
  });
  test("has a reason for each line that it must refuse, and an example in each of these files", () => {
    const comments = promises.flatMap(linesOf).filter((line) => line.includes("@ts-expect-error"));
    expect(comments.length).toBe(refused.length);
    expect(examples.map(([what]) => what)).toEqual(documented.map((file) => `the example in ${file}`));
  });
});

function linesOf(file: string): string[] {
  return readFileSync(join(root, "test/types", file), "utf8").split("\n");
}

/** The examples in the comments of a file, with what they have at hand. */
function examplesOf(file: string): [what: string, code: string][] {
  const examples = readFileSync(join(src, file), "utf8").matchAll(/^ \* @example\n((?: \* .*\n)+) \*\/$/gm);
  const scoped = (lines: string) => `${exampleScope}${lines.replace(/^ \* /gm, "")}}`;
  return [...examples].map(([, lines = ""]) => [`the example in ${file}`, scoped(lines)]);
}

const instantiationsMax = 555_000;

type Found = { readonly file: string; readonly line: number; readonly text: string };

/** One thread: what several check in common is counted for each. */
const words = ["--pretty", "false", "--singleThreaded", "--extendedDiagnostics"];
const fileOf = (index: number) => `accepted-${index}.ts`;

/** Compiles the promises and the snippets, each as a module of its own, all in one run. */
function compile(folder: string, snippets: readonly (readonly [what: string, code: string])[]) {
  const types = [join(root, "node_modules/bun-types")];
  const compilerOptions = { types, noUnusedLocals: false, noUnusedParameters: false };
  const include = [folder, join(src, "core/modules.d.ts")];
  const tsconfig = { extends: join(root, "tsconfig.json"), compilerOptions, include };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  for (const file of promises) {
    const text = linesOf(file).join("\n").replaceAll("@ts-expect-error", "").replaceAll('"../../src/', `"${src}/`);
    writeFileSync(join(folder, file), text);
  }
  for (const [index, [, code]] of snippets.entries()) writeFileSync(join(folder, fileOf(index)), code);
  const tsc = [process.execPath, join(root, "node_modules/typescript/bin/tsc"), "-p", folder, ...words];
  const printed = Bun.spawnSync(tsc, { cwd: folder }).stdout.toString().trim();
  const instantiations = Number(/^Instantiations: +(\d+)$/m.exec(printed)?.[1]);
  // An error begins with its file; lines that explain it further are indented.
  const errors = printed.split(/\n(?=\S)/).flatMap((text): Found[] => {
    const [, file = "", line, code] = /^(\S+)\((\d+),\d+\): error TS(\d+)/.exec(text) ?? [];
    return code === undefined ? [] : [{ file, line: Number(line), text }];
  });
  return { errors, instantiations };
}
