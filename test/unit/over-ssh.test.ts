/** What `KEYHOLE_SSH` sends. A script that notes its arguments and its input stands for ssh. */
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { isPeoples, judgeCommand, sentWords } from "../../src/cli/door.ts";
import { isLocal, sendOverSsh } from "../../src/cli/over-ssh.ts";
import { frame, pathOf } from "../../src/cli/terminal/command.ts";
import { rowOf } from "../../src/cli/terminal/draw.ts";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";
import { attempt } from "../../src/core/attempt.ts";
import { buildProgram } from "../../src/main.ts";
import type { Input } from "../../src/people/desk/inputs.ts";
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

const verifier = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8";
/** Texts of which an input takes the first that fits. */
const fitting = ["unix", "x", "1", "20", "2999-01-31", "30d", "a=b", "spiffe://a.example/b", verifier, "2026-10"];
const folderOfPairs = newFolder();
const [local, written] = [join(folderOfPairs, "F"), join(folderOfPairs, "O")];
writeFileSync(local, "content");
const noting = `#!/bin/sh\nprintf %s "$4" > ${folderOfPairs}/sent\nif [ "$READS" ]; then cat > ${folderOfPairs}/input; fi\n`;
writeFileSync(join(folderOfPairs, "ssh"), noting, { mode: 0o755 });

/** An option or an argument with a text that it takes. */
function wordsFor(name: string, { flags, choices, parse, source }: Input): string[] {
  const option = /--[\w-]+/.exec(flags)?.[0];
  const takes = (text: string) => attempt(() => [parse?.(text, undefined)]) !== undefined;
  const text =
    name === "out" ? written : source && !source.isText ? local : (choices?.[0] ?? fitting.find(takes) ?? "none fits");
  if (option === undefined) return [text];
  return /[<[]/.test(flags) ? [option, text] : [option];
}

/** Flags that change where a command's input comes from, or where its outcome goes. */
const decisive = /^--(?:dry-run|json|out|force|yes|limit|file|jwks-file|checkpoint|value)$/;

/** Choices of a command's flags in which each meets each other one. */
function choicesOf(flags: readonly string[][]): string[][][] {
  const [some, others] = [
    flags.filter(([flag = ""]) => decisive.test(flag)),
    flags.filter(([one = ""]) => !decisive.test(one)),
  ];
  const pairs = some.flatMap((one, at) => [...some.slice(at + 1), ...others].map((other) => [one, other]));
  return [[], others, ...some.map((one) => [one]), ...pairs];
}

const nowhere = contextOf({});
const commandsIn = (command: CommandUnknownOpts): CommandUnknownOpts[] => [
  command,
  ...command.commands.flatMap(commandsIn),
];
const sentOver = commandsIn(await buildProgram(nowhere)).filter((one) => isPeoples(one) && !isLocal(one));

test.each(sentOver.map((command) => [pathOf(command).replace("keyhole ", ""), command] as const))(
  "%s: the door gets what was typed here, whichever of its flags meet, and only --out writes a file here",
  async (path, command) => {
    const row = rowOf(command);
    const inputs = Object.entries(row?.inputs ?? {}).filter(([, { flags }]) => flags !== "");
    const given = inputs.map(([name, input]) => ({ input, words: wordsFor(name, input) }));
    const base = given.filter(({ input }) => !input.flags.startsWith("-") || input.isRequired);
    const optional = given.filter((one) => !base.includes(one)).map(({ words }) => words);
    const drawn = command.options.map(({ long }) => long).filter((long) => /^--(?:dry-run|yes|json)$/.test(long ?? ""));
    for (const chosen of choicesOf([...optional, ...drawn.map((long) => [long as string])])) {
      const words = [...path.split(" "), ...base.flatMap((one) => one.words), ...chosen.flat()];
      const has = (flag: string) => words.includes(flag);
      rmSync(written, { force: true });
      const typed = await parsed(words, {}, async (one) => {
        const env = { PATH: `${folderOfPairs}:${process.env["PATH"]}`, ...(has(local) && { READS: "1" }) };
        const streams: unknown = { stdin: { isTTY: false }, stdout: {}, stderr: {} };
        const terminal = streams as CommandContext["terminal"];
        return sendOverSsh(contextOf({ env, terminal, json: has("--json") }), "keyhole@bastion", one);
      });
      const isBoth = has("--json") && has("--out") && !has("--dry-run");
      if (isBoth) {
        expect([words, typed.error]).toEqual([words, "Over SSH, give either --json or --out."]);
        continue;
      }
      expect([words, typed.error]).toEqual([words, undefined]);
      expect([words, existsSync(written)]).toEqual([words, has("--out") && !has("--dry-run")]);
      const line = readFileSync(join(folderOfPairs, "sent"), "utf8");
      const arrived = await parsed(sentWords(line), { person: "ana" }, async (one) => judgeCommand(one));
      const isHere = given.some(
        ({ input, words: [flag = ""] }) => input.isLocal && !/^--(?:out|force)$/.test(flag) && has(flag),
      );
      if (isHere) {
        expect([words, arrived.error]).toEqual([words, expect.stringContaining("is not for people over SSH")]);
        continue;
      }
      const { force: _, ...options } = typed.options as { readonly force?: true };
      const here = { ...typed, options, error: undefined };
      expect([words, plain(arrived)]).toEqual([words, plain(here)]);
    }
  },
);

/** As JSON has it, with `-` in place of the files here. */
function plain(found: object): unknown {
  const text = JSON.stringify(found, (_, value) => (value instanceof Map ? [...value] : value));
  return JSON.parse(text.replaceAll(local, "-").replaceAll(written, "-"));
}

/** What a command is given, and why `judge` refuses it. It does not run. */
async function parsed(
  words: readonly string[],
  context: Partial<CommandContext>,
  judge: (command: CommandUnknownOpts) => Promise<unknown>,
) {
  const program = await buildProgram(contextOf(context), words[0]);
  let found: { args: readonly unknown[]; options: object; error?: string } | undefined;
  const judged = new Error("judged");
  program.hook("preAction", async (_, command) => {
    const { args } = command;
    found = { args, options: command.opts() };
    await judge(command).catch((error: Error) => {
      found = { args, options: command.opts(), error: error.message };
    });
    throw judged;
  });
  frame(program, () => {});
  await program.parseAsync([...words], { from: "user" }).catch((error: unknown) => {
    if (error !== judged) throw error;
  });
  if (found === undefined) throw new Error(`${words.join(" ")} was not parsed`);
  return found;
}

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
