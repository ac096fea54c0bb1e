/** What a terminal asks before what cannot be undone. Where nobody can be asked: transcripts/confirmations.txt. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { editingAlone } from "../support/editing.ts";
import { binary, type OnTerminal, startOnTerminal } from "../support/keyhole.ts";
import { siteOf } from "../support/server.ts";

const site = siteOf("sqlite", { staging: { KEPT: "1", CHANGED: "old", GONE: "1" } });

/** Answers a question on a terminal, after what comes before it. */
async function asked(args: readonly string[], question: string, keys: string, before?: [shown: string, keys: string]) {
  const terminal = site.onTerminal(args, 500);
  if (before !== undefined) {
    await terminal.shows(before[0]);
    terminal.type(before[1]);
  }
  return terminal.answer(`This will ${question}. Go on? [y/N]`, keys);
}

test.each([
  ["y\r", 0],
  ["yes\r", 0],
  ["\r", 1],
  ["n\r", 1],
  ["yess\r", 1],
  ["\x04", 1],
  ["\x03", 130],
])("a project is deleted only if the answer is yes, which %j ends with %d", async (keys, expected) => {
  await site.here(["project", "create", "acme/doomed"]); // it may be left from the row before
  const question = "delete project acme/doomed with 0 variables, 0 accounts and 0 files, for good";
  const { exitCode, screen } = await asked(["project", "delete", "acme/doomed"], question, keys);
  expect(exitCode).toBe(expected);
  const slugs = ((await site.json(["project", "list"])) as { slug: string }[]).map(({ slug }) => slug);
  expect(slugs.includes("doomed")).toBe(expected !== 0);
  if (expected === 0) expect(screen).toContain("Deleted project acme/doomed");
  else expect(screen).toMatch(/\r\nkeyhole: (Nothing was changed|Interrupted: nothing was written)\.\r\n$/);
});

test.each([
  ["n\r", 1],
  ["\x03", 130],
  ["yes\r", 0],
])("an import deletes variables only if the answer is yes, which %j ends with %d", async (keys, expected) => {
  writeFileSync(join(site.folder, "new.env"), "KEPT=1\nCHANGED=new\nADDED=1\n");
  const question = "import 3 variables into web, staging, and delete 1 that the file does not have: GONE";
  const { exitCode, screen } = await asked(["var", "import", "web", "staging", "new.env", "--prune"], question, keys);
  expect(exitCode).toBe(expected);
  const listed = (await site.json(["var", "list", "web", "staging"])) as { key: string }[];
  const names = expected === 0 ? ["ADDED", "CHANGED", "KEPT"] : ["CHANGED", "GONE", "KEPT"];
  expect(listed.map(({ key }) => key)).toEqual(names);
  if (expected === 0) expect(screen).toContain("Imported 2 variables: 1 created, 1 updated, 1 deleted, 1 as before.");
});

/** Edits on a terminal. @param editor - a script in the folder of the site */
function edited(editor: string, use: (screen: OnTerminal) => OnTerminal["ended"]): OnTerminal["ended"] {
  const env = { ...site.env, EDITOR: `sh ${editor}` };
  return editingAlone(() => use(startOnTerminal([binary, "var", "edit", "web", "staging"], 80, site.folder, env)));
}

test.each([
  ["does not parse", "PARSED", "WRONG"],
  ["has a value that is too long", "SHORT", "WRONG=$(head -c 70000 /dev/zero | tr '\\0' x)"],
])("a text of var edit that %s can be edited again", async (_, name, line) => {
  const script = `if grep -q ^WRONG "$1"; then sed -i /^WRONG/d "$1"; echo ${name}=2 >> "$1"; else echo "${line}" >> "$1"; fi\n`;
  writeFileSync(join(site.folder, "twice.sh"), script);
  const ended = edited("twice.sh", (screen) => screen.answer("Edit it again? [Y/n]", "\r"));
  expect(await ended).toMatchObject({ exitCode: 0 });
  expect((await site.here(["var", "get", "web", "staging", name])).stdout).toBe("2");
});

test.each([
  ["changed", "s/HIDDEN=old/HIDDEN=mine/"],
  ["deleted", "/^HIDDEN/d"],
])("var edit refuses and keeps a text with a line %s whose variable became one for machines only", async (_, edit) => {
  await site.here(["var", "delete", "web", "staging", "HIDDEN"]);
  await site.json(["var", "set", "web", "staging", "HIDDEN", "--value", "old"]);
  // The editor is not given Keyhole's settings.
  const settings = Object.entries(site.env).map(([name, value]) => `export ${name}='${value}'\n`);
  const mark = `"${binary}" var set web staging HIDDEN --machines-only --value newer`;
  writeFileSync(join(site.folder, "hides.sh"), `${settings.join("")}sed -i ${edit} "$1" && ${mark}\n`);
  const { exitCode, screen: said } = await edited("hides.sh", ({ ended }) => ended);
  expect([exitCode, said.replace(/\s+/g, " ")]).toEqual([1, expect.stringContaining("Your text is kept in")]);
});
