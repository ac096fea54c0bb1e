/** What `KEYHOLE_SSH` sends. A script that notes its arguments and its input stands for ssh. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sendOverSsh } from "../../src/cli/over-ssh.ts";
import { frame } from "../../src/cli/terminal/command.ts";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";
import { buildProgram } from "../../src/main.ts";
import { contextOf } from "../support/context.ts";
import { newFolder } from "../support/folder.ts";

test.each([
  // the command, what is sent of it, and the input that is read on this side
  [["request", "approve", "0199a3c4"], "'request' 'approve' '--' '0199a3c4'", ""],
  // The value is asked for on the other side, after the request was shown.
  [["request", "approve", "0199a3c4", "--file", "-"], "'request' 'approve' '--file=-' '--' '0199a3c4'", ""],
  [["request", "approve", "0199a3c4", "--file", "F"], "'request' 'approve' '--file=-' '--' '0199a3c4'", "content"],
  [["var", "set", "web", "staging", "A", "--value", "x"], "'var' 'set' '--value=x' '--' 'web' 'staging' 'A'", ""],
  [
    ["file", "put", "web", "F", "--path", "a", "--env", "staging"],
    "'file' 'put' '--path=a' '--env=staging' '--' 'web' '-'",
    "content",
  ],
  [["key", "create", "--name", "a", "--out", "O"], "'key' 'create' '--name=a' '--out=-' '--'", ""],
  [["key", "create", "--name", "a", "--out", "-"], "'key' 'create' '--name=a' '--out=-' '--'", ""],
  [["var", "list", "web", "staging"], "'var' 'list' '--' 'web' 'staging'", ""],
] as const)("what a person's own machine sends: %j", async (words, sent, input) => {
  const folder = newFolder();
  writeFileSync(join(folder, "F"), "content");
  const script = `#!/bin/sh\nprintf %s "$4" > ${folder}/sent\ntimeout 1 cat > ${folder}/input || true\n`;
  writeFileSync(join(folder, "ssh"), script, { mode: 0o755 });
  const typed = words.map((word) => (/^[FO]$/.test(word) ? join(folder, word) : word));
  expect(await send(typed, folder)).toBe(0);
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  expect([read("sent"), read("input")]).toEqual([sent, input]);
});

test("a dry run writes no file, and a file that is there is refused before anything is sent", async () => {
  const folder = newFolder();
  const out = join(folder, "O");
  writeFileSync(join(folder, "ssh"), `#!/bin/sh\necho ran >> ${folder}/ran\n`, { mode: 0o755 });
  expect(await send(["key", "rotate", "0199a3c4", "--dry-run", "--out", out], folder)).toBe(0);
  expect([existsSync(out), existsSync(join(folder, "ran"))]).toEqual([false, true]);
  writeFileSync(out, "kept");
  const refused = send(["key", "rotate", "0199a3c4", "--out", out], folder);
  await expect(refused).rejects.toThrow(`${out} is there already, and --out replaces no file: name another.`);
  expect([readFileSync(out, "utf8"), readFileSync(join(folder, "ran"), "utf8")]).toEqual(["kept", "ran\n"]);
});

/** Sends a command from a terminal at which nobody types. */
async function send(words: readonly string[], folder: string): Promise<number> {
  const streams: unknown = { stdin: { isTTY: true }, stdout: {}, stderr: { isTTY: true } };
  const terminal = streams as CommandContext["terminal"];
  const context = contextOf({ env: { PATH: `${folder}:${process.env["PATH"]}` }, terminal });
  const program = await buildProgram(context, words[0]);
  let code = -1;
  const sent = new Error("sent");
  program.hook("preAction", async (_, command) => {
    code = await sendOverSsh(context, "keyhole@bastion", command);
    throw sent; // it does not run here, too
  });
  frame(program, () => {});
  await program.parseAsync([...words], { from: "user" }).catch((error: unknown) => {
    if (error !== sent) throw error;
  });
  return code;
}
