import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { allTestFiles } from "../sizes.ts";

/** What lets chance or the speed of the machine decide a test, as far as its text shows it. */
const rules: Readonly<Record<string, RegExp>> = {
  // Wait with `eventually` for what is meant, take a `nextTurn` or strike at a `moment`.
  sleeps: /(?<![.\w])(?:Bun\.sleep(?:Sync)?|setTimeout|setInterval|AbortSignal\.timeout)\(/,
  // What is slow on this machine is not wrong. A benchmark holds a promise of speed.
  "has a bound of elapsed time":
    /expect\([^;\n]*(?:performance\.now|Date\.now|ranMs|\b\w+Ms\b|[tT]ook|elapsed)[^;\n]*\)\s*\.toBeLess/,
  // Random and encoded bytes hold it by chance. See `canary` in test/support/canary.ts.
  "looks for a short text": /\bnot\s*\.\s*(?:toContain|stringContaining)\(\s*(["'`])[\w+/=-]{1,5}\1/,
  // The run ends what hangs after 60 s, and nothing that is only slow.
  "has a time limit below that of the run": /(?:setDefaultTimeout\(|^ *\}, )[1-5]?\d_000\)|spawnSync\([^;]*\btimeout:/m,
  // Another program may have it: port 0, or freePort of test/support/port.ts.
  "listens on a fixed port": /\b(?:listen|serve)\(\s*(?:\{[^}]*\bport: )?[1-9]\d|"--port", "[1-9]/,
};

/** Tests of clocks and deadlines themselves, and of what no event tells. */
const exceptions = new Set([
  "test/blackbox/pooler.test.ts sleeps", // past a timeout of the server's own
  "test/property/fuzz.test.ts sleeps",
  "test/unit/deadline.test.ts sleeps",
]);

test("no test depends on chance or on the speed of the machine, as far as its text shows", () => {
  const root = join(import.meta.dir, "../..");
  const found = allTestFiles()
    .filter((file) => file !== "test/unit/tests.test.ts")
    .flatMap((file) => broken(readFileSync(join(root, file), "utf8")).map((rule) => `${file} ${rule}`));
  expect(found.toSorted()).toEqual([...exceptions].sort());
});

test.each([
  ["await Bun.sleep(20);", "sleeps"],
  ["Bun.sleepSync(20);", "sleeps"],
  ["await new Promise((resolve) => setTimeout(resolve, 20));", "sleeps"],
  ["fetch(url, { signal: AbortSignal.timeout(10) });", "sleeps"],
  ["expect(performance.now() - startedAt).toBeLessThan(5000);", "has a bound of elapsed time"],
  ["expect(tookMs).toBeLessThanOrEqual(500);", "has a bound of elapsed time"],
  ['expect(JSON.stringify(proof)).not.toContain("one");', "looks for a short text"],
  ["expect(ran).toEqual({ stdout: expect.not.stringContaining('kh_') });", "looks for a short text"],
  ...["setDefaultTimeout(30_000);", "}, 30_000);", "Bun.spawnSync(command, { timeout: 90_000 });"].map((text) => {
    return [text, "has a time limit below that of the run"];
  }),
  ["app.listen(4100);", "listens on a fixed port"],
  ['Bun.serve({ hostname: "127.0.0.1", port: 4100, fetch });', "listens on a fixed port"],
  ['site.keyhole(["serve", "--port", "4100"]);', "listens on a fixed port"],
])("%s %s", (text, rule) => expect(broken(text)).toEqual([rule]));

test.each([
  ...["// Bun.sleep(20) is not called.", "window.setTimeout(run, 20);"],
  ...["expect(performance.now() - startedAt).toBeGreaterThan(2000);", 'expect(html).not.toContain("<b>");'],
  ...['expect(text).not.toContain("KHCANARY");', 'Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });'],
])("%s is none of these", (text) => expect(broken(text)).toEqual([]));

function broken(text: string): string[] {
  const code = text.replace(/\/\*\*?\s[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
  return Object.keys(rules).filter((rule) => rules[rule]?.test(code));
}
