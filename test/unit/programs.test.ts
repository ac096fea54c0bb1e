/** How tests find programs, and what a run says if one is missing. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { missingLines } from "../support/programs.ts";

const root = join(import.meta.dir, "../..");

test("nothing but the helper looks for a program", () => {
  const files = ["bench", "test"].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => /\.m?[jt]s$/.test(file))
      .map((file) => join(folder, file)),
  );
  const looking = files.filter((file) => readFileSync(join(root, file), "utf8").includes("Bun.wh" + "ich"));
  expect(looking).toEqual(["test/support/programs.ts"]);
});

test("the end of a run says which suites were left out, and what to install for them", () => {
  const notes = [
    { programs: ["valkey-server|redis-server"], what: "buckets in a store" },
    { programs: ["pwsh"], what: "PowerShell" },
    { programs: ["openssl", "nginx"], what: "TLS by nginx" },
    { programs: ["openssl"], what: "TLS by nginx" },
    ...["a", "b", "c"].map((what) => ({ programs: ["openssl"], what })),
  ];
  expect(missingLines([])).toEqual([]);
  expect(missingLines(notes)).toEqual([
    ...["Not tested, because these programs are not installed:", "  nginx: TLS by nginx"],
    ...["  openssl: TLS by nginx; a; b; and 1 more", "  pwsh: PowerShell"],
    ...["  valkey-server or redis-server: buckets in a store", "On Debian: apt-get install nginx openssl redis-server"],
  ]);
});

test("a suite whose program is missing is skipped and named, by plain bun test too", async () => {
  const folder = newFolder();
  const helper = JSON.stringify(join(root, "test/support/programs.ts"));
  const suite = 'withPrograms(["no-such-program"], "a suite", () => test("a test", () => process.exit(9)));';
  const imports = `import { test } from "bun:test";\nimport { withPrograms } from ${helper};\n`;
  writeFileSync(join(folder, "one.test.ts"), `${imports}${suite}\n`);
  const options = { cwd: folder, env: { PATH: "", HOME: folder }, stdout: "ignore", stderr: "pipe" } as const;
  const ran = Bun.spawn([process.execPath, "test", "--preload", join(root, "test/support/preload.ts")], options);
  expect(await ran.stderr.text()).toContain("\n  no-such-program: a suite\n");
  expect(await ran.exited).toBe(0);
});
