/** The table of test/sizes.ts, compared with the files. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { allTestFiles, exceptions, sizeOf, sizes, testFiles } from "../sizes.ts";
import { files as tookMs } from "../timings.json";

const root = join(import.meta.dir, "../..");

describe("the sizes of tests", () => {
  test("give each file exactly one, and `full` has them all", () => {
    const files = allTestFiles();
    expect(Object.keys(Object.groupBy(files, sizeOf)).sort()).toEqual(sizes.toSorted());
    expect(testFiles("full")).toEqual(files);
    expect(files).toContain("test/unit/sizes.test.ts");
  });
  test("name only files that exist, each with a reason", () => {
    for (const [file, [, reason]] of Object.entries(exceptions)) {
      expect([file, existsSync(join(root, file))]).toEqual([file, true]);
      expect(reason).not.toBe("");
    }
  });
  test("have the time of each file: `bun run test FILE --update-timings` takes it", () => {
    expect(Object.keys(tookMs).sort()).toEqual(allTestFiles().sort());
  });
  test("leave a file of more than 10 s to `full`, unless it is the only proof of a promise", () => {
    const times = tookMs as Readonly<Record<string, number>>;
    const slow = testFiles("usual").filter((file) => (times[file] ?? 0) > 10_000);
    const proves = (file: string) => exceptions[file]?.[1].startsWith("the only proof that ");
    expect(slow.filter((file) => !proves(file))).toEqual([]);
  });
  test("let no quick file start the built program or a browser, by any path of imports", () => {
    const heavy = ["keyhole", "build", "browser"].map((name) => join(root, `test/support/${name}.ts`));
    for (const file of testFiles("quick")) {
      expect([file, importedBy(join(root, file)).filter((one) => heavy.includes(one))]).toEqual([file, []]);
    }
  });
});

/** The files that this one imports, directly or not, types left out. */
function importedBy(first: string): string[] {
  const reached = new Set([first]);
  for (const file of reached) for (const next of importsOf(file)) reached.add(next);
  return [...reached];
}

const known = new Map<string, readonly string[]>();
function importsOf(file: string): readonly string[] {
  const read = known.get(file) ?? readImports(file);
  known.set(file, read);
  return read;
}

function readImports(file: string): string[] {
  const loader = /\.(tsx?)$/.exec(file)?.[1] as "ts" | "tsx" | undefined;
  if (loader === undefined) return [];
  const imports = new Bun.Transpiler({ loader }).scanImports(readFileSync(file));
  return imports.filter(({ path }) => path.startsWith(".")).map(({ path }) => join(file, "..", path));
}
