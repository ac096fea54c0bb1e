/** What `transcripts.test.ts` proves of the built program on both databases, sooner: most commands run in this process. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { testTranscript } from "../support/transcript.ts";

const folder = join(import.meta.dir, "transcripts");
for (const name of readdirSync(folder).sort()) testTranscript(join(folder, name), "here");

test("what was not played stays as it is when the rest is recorded", () => {
  const [folder, module] = [newFolder(), join(import.meta.dir, "../support")];
  const [text, suite] = [join(folder, "few.txt"), join(folder, "few.test.ts")];
  const said = (one: string) => `# Few\n\n## One\n\n$ echo 1\n${one}\n\n## Two\n\n$ echo 2\n2\n`;
  writeFileSync(text, said("old"));
  writeFileSync(suite, `(await import("${module}/transcript.ts")).testTranscript(${JSON.stringify(text)}, "here");`);
  const env = { PATH: process.env["PATH"] ?? "", TMPDIR: tmpdir(), TRANSCRIBE: "1" };
  Bun.spawnSync([process.execPath, "test", suite, "-t", "One"], { cwd: join(import.meta.dir, "../.."), env });
  expect(readFileSync(text, "utf8")).toBe(said("1"));
});
