import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { commandFor, parseTests, progressLine, slowestFiles } from "../support/report.ts";

const folder = newFolder();

/** What `bun test` reports of these tests, which it runs in a checkout of their own. */
function reportOf(file: string, text: string): string {
  writeFileSync(join(folder, file), text);
  const report = join(folder, "report.xml");
  const reporter = ["--reporter=junit", `--reporter-outfile=${report}`];
  const silent = { cwd: folder, stdout: "ignore", stderr: "ignore" } as const;
  Bun.spawnSync([process.execPath, "test", ...reporter, `./${file}`], silent);
  return readFileSync(report, "utf8");
}

const nested = `import { describe, expect, test } from "bun:test";
  describe("a key, on SQLite", () => describe("with <one> & 'two'", () => {
    test("is (never) read", () => expect(1).toBe(2));
    test("is", () => {});
    test.skip("is skipped", () => {});
  }));
  test("is alone", () => {});`;

describe("the report of a run", () => {
  test("has every test, with its suites, and what became of it", () => {
    const suites = "a key, on SQLite with <one> & 'two'";
    expect(parseTests(reportOf("nested.test.ts", nested))).toEqual([
      { file: "nested.test.ts", name: `${suites} is (never) read`, outcome: "failed" },
      { file: "nested.test.ts", name: `${suites} is`, outcome: "passed" },
      { file: "nested.test.ts", name: `${suites} is skipped`, outcome: "skipped" },
      { file: "nested.test.ts", name: "is alone", outcome: "passed" },
    ]);
  });
  test("gives a command that runs one failed test, and no other", () => {
    const [failed] = parseTests(reportOf("again.test.ts", nested));
    const command = commandFor(failed as never, "bun/1.4.5", "7");
    expect(command).toStartWith("KEYHOLE_TEST_SEED=7 bun run test again.test.ts -t '");
    const own = command.replace("bun run test ", `${process.execPath} test ./`);
    const ran = Bun.spawnSync(["sh", "-c", own], { cwd: folder, stdout: "ignore", stderr: "pipe" });
    expect(ran.stderr.toString()).toMatch(/\n 0 pass\n 3 filtered out\n 1 fail\n/);
    expect(commandFor(failed as never, "npm/11.1 node/v20")).toStartWith("npx --yes --allow-scripts=bun bun@");
  });
  test("has the slowest file first", () => {
    const line = (name: string, time: string) =>
      `  <testsuite name="${name}" file="${name}" tests="1" time="${time}">\n`;
    const xml = `${line("a", "1.5")}    <testsuite name="in b" time="99">\n${line("b", "20.25")}`;
    expect(slowestFiles(xml).flat()).toEqual(["b", 20.25, "a", 1.5]);
  });
});

describe("a line of progress", () => {
  const notes = join(folder, "notes");
  test("counts nothing before the first file has begun", () => {
    expect(progressLine(notes, 210, 0, 15_000)).toBe("0 of 210 files in 15 s.");
  });
  test("says how many files have ended, and what runs for how long", () => {
    const lines = ["begins 0 /a b/test/unit/a.test.ts", "begins 1000 /a b/test/unit/b.test.ts"];
    writeFileSync(notes, [...lines, "ended 2000 /a b/test/unit/a.test.ts", ""].join("\n"));
    expect(progressLine(notes, 2, 500, 5000)).toBe("1 of 2 files in 5 s; now unit/b (4 s).");
  });
});
