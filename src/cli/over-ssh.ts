import { spawn } from "node:child_process";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { modesTo } from "../core/modes.ts";
import { configProblem, exits, Problem, usageProblem } from "../core/problem.ts";
import { withoutSettings } from "../core/settings/inherited.ts";
import { requireFree, writeWhole } from "../core/whole-file.ts";
import { quoted } from "../core/words/shell.ts";
import { fileOf, type Input, type ReadWords } from "../people/desk/inputs.ts";
import { isPeoples } from "./door.ts";
import { requireReader } from "./terminal/answer.ts";
import { optionsGiven, pathOf } from "./terminal/command.ts";
import { type Row, rowOf } from "./terminal/draw.ts";
import { readSource } from "./terminal/input.ts";
import type { CommandContext } from "./terminal/verb.ts";

/*
 * KEYHOLE_SSH: people's commands run on another host, behind its door. Local files and hidden prompts stay here: their
 * content travels on stdin. Keys, certificates and jump hosts are ssh's work.
 */

/** Whether a command runs where it is typed, whatever KEYHOLE_SSH says: it needs no installation. */
export function isLocal(command: CommandUnknownOpts): boolean {
  const row = rowOf(command);
  return row?.right === undefined || (row.right === "anybody" && "action" in row);
}

/** Runs a command of people on the host that KEYHOLE_SSH names. @returns the exit code */
export async function sendOverSsh(context: CommandContext, host: string, command: CommandUnknownOpts): Promise<number> {
  const path = pathOf(command);
  if (!/^[^\s-]\S*$/.test(host)) throw configProblem("KEYHOLE_SSH must be a host for ssh, such as keyhole@bastion.");
  if (!isPeoples(command)) throw usageProblem(`${path} does not run over SSH: run it on ${host}, without KEYHOLE_SSH.`);
  const row = rowOf(command) as Row;
  const given = command.opts() as {
    readonly out?: string;
    readonly force?: true;
    readonly yes?: true;
    readonly dryRun?: true;
  };
  const { force, yes, dryRun } = given;
  const out = dryRun ? undefined : fileOf(given.out);
  if (out !== undefined && !("force" in row.inputs)) requireFree(out);
  if (out !== undefined && context.json) throw usageProblem("Over SSH, give either --json or --out.");
  const { words, input } = await sentBy(context, row, command);
  const { stdin, stderr } = context.terminal;
  const asks = (row.asks !== undefined && !yes && !dryRun) || row.showsFirst;
  const needsTerminal =
    asks && input === undefined && out === undefined && !context.json && stdin.isTTY && stderr.isTTY;
  const line = words.map(quoted).join(" ");
  const env = withoutSettings(context.env);
  const ask = () => run(env, host, needsTerminal ? "-t" : "-T", line, input, out !== undefined);
  if (out === undefined && !dryRun) requireReader(context.terminal.stdout, row);
  if (out === undefined) return (await ask()).code;
  // A file that cannot be written is refused before a key is made that nobody would have.
  let code: number | undefined;
  const failed = new Error("the command failed: nothing is written");
  const fill = async (draft: string) => {
    const ran = await ask();
    code = ran.code;
    if (code !== 0) throw failed;
    await Bun.write(draft, ran.output);
  };
  await writeWhole("export", out, force === true, fill, modesTo(context.say)).catch((error: unknown) => {
    if (error === failed) return;
    if (code !== 0 || !(error instanceof Problem)) throw error;
    const lost = `What ${host} printed is lost: if that was a new key, revoke it.`;
    throw new Problem(error.exitCode, error.code, `${error.message} ${lost}`, { cause: error });
  });
  if (code === 0) context.say(`Wrote it to ${out}.`);
  return code ?? exits.failed;
}

/** The words to send, and the input that is read here: a file, or what is typed. Undefined: our own stdin. */
async function sentBy(context: CommandContext, row: Row, command: CommandUnknownOpts) {
  const inputs = Object.entries(row.inputs).map(([name, input]) => ({ name, ...input }));
  const named = inputs.filter(({ flags }) => /^[<[]/.test(flags));
  let source: ReadWords | undefined;
  let path = "-";
  const sent = (input: Input | undefined, word: string) => {
    if (input?.source === undefined || input.source.isText) return word;
    [source, path] = [input.source, word];
    return "-";
  };
  const operands = command.args.map((word, at) => sent(named[at], word));
  const given = optionsGiven(command);
  const options = given.flatMap(({ name, value }) => {
    if (name === "out") return ["--out=-"]; // the file is here
    if (name === "json" || name === "force") return [];
    const input = inputs.find(({ flags }) => nameOf(flags) === name);
    return [value === undefined ? `--${name}` : `--${name}=${sent(input, value)}`];
  });
  const isTyped = (input: Input) =>
    input.source?.prompt !== undefined &&
    !given.some(({ name }) => name === nameOf(input.flags) || name === input.source?.madeBy);
  const typed = row.showsFirst || !context.terminal.stdin.isTTY ? undefined : inputs.find(isTyped)?.source;
  const read = typed ?? (path === "-" ? undefined : source);
  const words = [...row.path.split(" "), ...(context.json ? ["--json"] : []), ...options, "--", ...operands];
  if (read === undefined) return { words, input: undefined };
  const known = Object.fromEntries(named.map(({ name }, at) => [name, command.args[at]]));
  const bytesMax = Math.min(read.bytesMax, inputBytesMax);
  return { words, input: await readSource(context, { ...read, bytesMax }, known, path) };
}

/** The name of an option, as it is typed. */
function nameOf(flags: string): string | undefined {
  return /--([\w-]+)/.exec(flags)?.[1];
}

/** For a log with checkpoints; every other file is smaller. */
const inputBytesMax = 64 * 1024 * 1024;

/** @param input - undefined: our own stdin @param isKept - whether the output is kept, and not shown */
async function run(
  env: Readonly<Record<string, string>>,
  host: string,
  terminal: "-t" | "-T",
  line: string,
  input: Uint8Array | undefined,
  isKept: boolean,
): Promise<{ readonly code: number; readonly output: Buffer }> {
  const program = spawn("ssh", [terminal, "--", host, line], {
    env,
    stdio: [input === undefined ? "inherit" : "pipe", isKept ? "pipe" : "inherit", "inherit"],
  });
  const chunks: Uint8Array[] = [];
  program.stdout?.on("data", (chunk: Uint8Array) => chunks.push(chunk));
  program.stdin?.on("error", () => {}); // the other side may refuse before it has read everything
  program.stdin?.end(input);
  const code = await new Promise<number>((resolve, reject) => {
    program.on("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "ENOENT" ? "there is no program ssh" : (error.code ?? "no reason given");
      reject(new Problem(exits.unavailable, "unavailable", `ssh could not be started: ${why}.`, { cause: error }));
    });
    program.on("close", (exit, signal) => resolve(exit ?? (signal === "SIGINT" ? 130 : exits.failed)));
  });
  if (code !== 255) return { code, output: Buffer.concat(chunks) };
  throw new Problem(exits.unavailable, "unavailable", `ssh did not reach ${host}, or it refused you: see above.`);
}
