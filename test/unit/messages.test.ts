import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { faults } from "../../src/core/fault.ts";
import { exits } from "../../src/core/problem.ts";
import { failures } from "../../src/people/desk/failure.ts";

/* docs/messages.md has each code and exit status that somebody can meet. */

const root = join(import.meta.dir, "../..");
const headings = [...read("docs/messages.md").matchAll(/^### (.*)$/gm)].map(([, heading = ""]) => heading);

/** Codes in the source: those that a Problem is made with, and those of the npm client. */
const written = [...new Bun.Glob("src/**/*.{ts,tsx}").scanSync(root)].flatMap((file) =>
  [...read(file).matchAll(/new (?:Problem\(\s*[^,]+,|KeyholeError\()\s*"(\w+)"/g)].map(([, code = ""]) => code),
);
const ofClient = /^export type ClientErrorCode([^;]*);/m.exec(read("src/client/npm/error.ts"))?.[1] ?? "";
const ofAudit = /what: ("[^;]*);/.exec(read("src/record/flaw.ts"))?.[1] ?? "";

test("every code that a command or a client can end with stands on the page once", () => {
  const codes = new Set([...written, ...Object.keys(failures), ...namesIn(ofClient), "http_…"]);
  for (const what of namesIn(ofAudit)) codes.add(`audit_${what}`);
  for (const fault of Object.keys(faults)) codes.delete(fault);
  const [, others = ""] = read("docs/messages.md").split("## Other codes");
  const own = headings.flatMap((heading) => /^`(.*)`$/.exec(heading)?.[1] ?? []);
  own.push(...[...others.matchAll(/`(\w+)`/g)].map(([, code = ""]) => code));
  expect(codes.size).toBeGreaterThan(48);
  expect(own.toSorted()).toEqual([...codes].toSorted());
});

test("every code of the API has its heading, with its status, in their order", () => {
  const answers = Object.entries(faults).map(([code, [status]]) => `${status} \`${code}\``);
  expect(headings.filter((heading) => /^\d/.test(heading))).toEqual(answers);
});

test("every exit code has its heading", () => {
  const codes = [0, ...Object.values(exits), 125, 126, 127].map((code) => `Exit code ${code}`);
  expect(headings.filter((heading) => heading.startsWith("Exit"))).toEqual([...codes, "Exit code 128 and more"]);
});

function namesIn(type: string): string[] {
  return [...type.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);
}

function read(file: string): string {
  return readFileSync(join(root, file), "utf8");
}
