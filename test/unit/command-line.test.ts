import { expect, test } from "bun:test";
import fc from "fast-check";
import { wordsOf } from "../../src/core/words/shell.ts";
import { commandLine } from "../../src/people/desk/command-line.ts";
import { create } from "../../src/people/keys/operations.ts";
import { makeProject } from "../../src/people/projects/operations.ts";

test("a command line has the words of the operation's row, and quotes only what a shell would read otherwise", () => {
  const own = { name: "it's ci", projects: ["web", "api"], allEnvironments: true, out: undefined } as const;
  const line = commandLine(create, own);
  expect(line).toBe(String.raw`keyhole key create --name 'it'\''s ci' --project web,api --all-environments`);
  expect(commandLine(makeProject, { project: "acme/web", name: "" })).toBe("keyhole project create acme/web --name ''");
  expect(commandLine(create, { name: "-x" })).toBe("keyhole key create --name='-x'");
});

test("a shell reads back each word, whatever is in it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (name) => {
      const [, , , ...words] = wordsOf(commandLine(create, { name })) ?? [];
      expect(words.join(" ").replace(/^--name[ =]/, "")).toBe(name);
    }),
  );
});
