import { spawn } from "node:child_process";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { withoutSettings } from "../core/inherited.ts";
import { configProblem, exits, Problem, usageProblem } from "../core/problem.ts";
import { writeWhole } from "../core/whole-file.ts";
import { quoted } from "../core/words.ts";
import { type CommandContext, optionsGiven, pathOf } from "../terminal/command.ts";
import { readLocal, readValue } from "../terminal/input.ts";
import { readHidden, requireOpen } from "../terminal/terminal.ts";
import { isPeoples } from "./door.ts";

/*
 * KEYHOLE_SSH: people's commands run on another host, behind its door. Local files and hidden prompts stay here: their
 * content travels on stdin. Keys, certificates and jump hosts are ssh's work.
 */

/** Whether a command runs where it is typed, whatever KEYHOLE_SSH says. @param path - such as `keyhole run` */
export function isLocal(path: string): boolean {
  return local.has(path.split(" ")[1] ?? "");
}

const local: ReadonlySet<string> = new Set([
  ...["run", "pull", "files", "compose", "mcp", "manifest", "serve", "demo", "health", "explain", "openapi"],
  ...["completion", "version", "door"],
]);

/** Runs a command of people on the host that KEYHOLE_SSH names. @returns the exit code */
export async function sendOverSsh(context: CommandContext, host: string, command: CommandUnknownOpts): Promise<number> {
  const path = pathOf(command);
  if (!/^[^\s-]\S*$/.test(host)) throw configProblem("KEYHOLE_SSH must be a host for ssh, such as keyhole@bastion.");
  if (!isPeoples(path)) throw usageProblem(`${path} does not run over SSH: run it on ${host}, without KEYHOLE_SSH.`);
  const { out, force, yes } = command.opts() as { readonly out?: string; readonly force?: true; readonly yes?: true };
  if (out !== undefined && context.json) throw usageProblem("Over SSH, give either --json or --out.");
  const { words, file } = sentBy(context, path, command);
  const input = await inputOf(context, path, command, file);
  const { stdin, stderr } = context.terminal;
  // A person who approves a request reads it first, and then types the value.
  const mayAsk = command.options.some(({ long }) => long === "--yes") && !yes;
  const asks = mayAsk || path === "keyhole request approve";
  const needsTerminal =
    asks && input === undefined && out === undefined && !context.json && stdin.isTTY && stderr.isTTY;
  const line = words.map(quoted).join(" ");
  const env = withoutSettings(context.env);
  const ask = () => run(env, host, needsTerminal ? "-t" : "-T", line, input, out !== undefined);
  if (out === undefined) {
    requireOpen(context.terminal.stdout); // before a key is made that nobody would have
    return (await ask()).code;
  }
  // A file that cannot be written is refused before a key is made that nobody would have.
  let code = 0;
  const failed = new Error("the command failed: nothing is written");
  const fill = async (draft: string) => {
    const ran = await ask();
    code = ran.code;
    if (code !== 0) throw failed;
    await Bun.write(draft, ran.output);
  };
  await writeWhole("export", out, force === true, fill).catch((error: unknown) => {
    if (error !== failed) throw error;
  });
  return code;
}

/** The words to send, and the file that the command reads: `-` is sent in its place, and nothing of a file to write. */
function sentBy({ json }: CommandContext, path: string, command: CommandUnknownOpts) {
  const operands = [...command.args];
  const index = fileArguments[path];
  let file = index === undefined ? undefined : operands.splice(index, 1, "-")[0];
  const options = optionsGiven(command).flatMap(({ name, value }) => {
    if (["json", "out", "force"].includes(name)) return [];
    if (value === undefined) return [`--${name}`];
    if (!fileOptions.includes(name)) return [`--${name}=${value}`];
    file = value;
    return [`--${name}=-`];
  });
  const words = [...path.split(" ").slice(1), ...(json ? ["--json"] : []), ...options, "--", ...operands];
  return { words, file };
}

/** The options and arguments that name a file to read, by command. */
const fileOptions = ["jwks-file", "file", "checkpoint"];
const fileArguments: Readonly<Record<string, number>> = { "keyhole var import": 2, "keyhole file put": 1 };

/** The input that is read here and sent: a file, or a typed text. Undefined: stdin. */
async function inputOf(
  context: CommandContext,
  path: string,
  command: CommandUnknownOpts,
  file: string | undefined,
): Promise<Uint8Array | undefined> {
  const { stdin } = context.terminal;
  if (file !== undefined && file !== "-") return readLocal(context, file, inputBytesMax);
  if (path === "keyhole var set" && command.opts()["value"] === undefined && stdin.isTTY) {
    return readValue(context, String(command.args[2]), `--value "" stores an empty value`);
  }
  if (path === "keyhole account set" && stdin.isTTY) {
    return readHidden(context.terminal, `Values of ${command.args[1]} as a JSON object`);
  }
  return undefined;
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
