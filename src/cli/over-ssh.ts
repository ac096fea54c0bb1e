import { spawn } from "node:child_process";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { contentBytesMax } from "../core/names.ts";
import { configProblem, exits, Problem, usageProblem } from "../core/problem.ts";
import { writeWhole } from "../core/whole-file.ts";
import { quoted } from "../core/words.ts";
import { pathOf, type Surroundings } from "../terminal/command.ts";
import { readLocal, readValue } from "../terminal/input.ts";
import { readHidden } from "../terminal/terminal.ts";
import { isPeoples } from "./door.ts";

/*
 * KEYHOLE_SSH: people's commands run on another host, behind its door. Local files and hidden prompts stay here: their
 * content travels on stdin. Keys, certificates and jump hosts are ssh's work.
 */

/** Whether a command is for the machine that it is typed on, whatever KEYHOLE_SSH says. @param path - such as `keyhole run` */
export function isLocal(path: string): boolean {
  return /^keyhole (?:run|pull|files|compose|mcp|manifest|serve|demo|health|explain|openapi|completion|version|door)(?: |$)/.test(
    path,
  );
}

/**
 * Runs a command of people on the host that KEYHOLE_SSH names.
 * @param words - the command line, without the program
 * @returns the exit code
 * @throws Problem if it is no command for the door, or a local file cannot be read or written
 */
export async function sendOverSsh(
  here: Surroundings,
  host: string,
  command: CommandUnknownOpts,
  words: readonly string[],
): Promise<number> {
  const path = pathOf(command);
  if (!/^[^\s-]\S*$/.test(host)) throw configProblem("KEYHOLE_SSH must be a host for ssh, such as keyhole@bastion.");
  if (!isPeoples(path)) throw usageProblem(`${path} does not run over SSH: run it on ${host}, without KEYHOLE_SSH.`);
  const { out } = command.opts() as { readonly out?: string };
  if (out !== undefined && here.json) throw usageProblem("Over SSH, give either --json or --out.");
  const sent = new Sent(command, words).without("out").without("force");
  const input = await inputOf(here, path, command, sent);
  const { stdin, stderr } = here.terminal;
  // Whoever approves a request reads it first, and then types the value.
  const asks = path === "keyhole request approve" || (hasOption(command, "yes") && command.opts()["yes"] !== true);
  const needsTerminal = asks && input === undefined && out === undefined && !here.json && stdin.isTTY && stderr.isTTY;
  const line = sent.words.map(quoted).join(" ");
  const ask = () => run(host, needsTerminal ? "-t" : "-T", line, input, out !== undefined);
  if (out === undefined) return (await ask()).code;
  // A file that cannot be written is refused before a key is made that nobody would have.
  let code = 0;
  const failed = new Error("the command failed: nothing is written");
  const fill = async (draft: string) => {
    const ran = await ask();
    code = ran.code;
    if (code !== 0) throw failed;
    await Bun.write(draft, ran.output);
  };
  await writeWhole("export", out, command.opts()["force"] === true, fill).catch((error: unknown) => {
    if (error !== failed) throw error;
  });
  return code;
}

/** What a command reads here and sends: a file, or what was typed. Undefined: whatever comes on stdin. */
async function inputOf(
  here: Surroundings,
  path: string,
  command: CommandUnknownOpts,
  sent: Sent,
): Promise<Uint8Array | undefined> {
  const options = command.opts() as Readonly<Record<string, string | undefined>>;
  const { stdin } = here.terminal;
  const file = sent.replaceFile(path);
  if (file !== undefined && file !== "-") return readLocal(here, file, inputBytesMax);
  if (path === "keyhole var set" && options["value"] === undefined && stdin.isTTY) {
    return readValue(here, String(command.args[2]), `--value "" stores an empty value`);
  }
  if (path === "keyhole account set" && stdin.isTTY) {
    return readHidden(here.terminal, `Values of ${command.args[1]} as a JSON object`);
  }
  return undefined;
}

/** The largest import; every other file is smaller. */
const inputBytesMax = Math.max(64 * 1024 * 1024, contentBytesMax);

/** The words of a command line with what is said of files taken out of them. */
class Sent {
  words: string[];
  readonly #command: CommandUnknownOpts;

  constructor(command: CommandUnknownOpts, words: readonly string[]) {
    this.words = [...words];
    this.#command = command;
  }

  /** Takes an option out, with its value. */
  without(name: string): this {
    const found = this.#walk().find(({ option }) => option === name);
    if (found !== undefined) this.words.splice(found.at, found.length);
    return this;
  }

  /** Puts `-` in place of the file that a command reads. @returns the file; undefined if it reads none */
  replaceFile(path: string): string | undefined {
    const isFile = (option: string | undefined) => fileOptions.includes(option ?? "");
    const given = this.#walk().find(({ option }) => isFile(option));
    if (given?.option !== undefined) {
      const word = this.words[given.at] as string;
      const file = word.includes("=") ? word.slice(word.indexOf("=") + 1) : this.words[given.at + 1];
      this.words.splice(given.at, given.length, `--${given.option}`, "-");
      return file;
    }
    const index = fileArguments[path];
    const operands = this.#walk().filter(({ option }) => option === undefined);
    const at = operands[path.split(" ").length - 1 + (index ?? Number.NaN)]?.at;
    if (at === undefined) return undefined;
    const file = this.words[at];
    this.words[at] = "-";
    return file;
  }

  /** Each option with its values, and each other word. */
  #walk(): { readonly at: number; readonly length: number; readonly option?: string }[] {
    const found: { at: number; length: number; option?: string }[] = [];
    for (let at = 0; at < this.words.length; ) {
      const word = this.words[at] as string;
      if (word === "--") {
        found.push(...this.words.slice(at + 1).map((_, index) => ({ at: at + 1 + index, length: 1 })));
        return found;
      }
      const option = /^--([^=]+)/.exec(word)?.[1];
      const known = this.#command.options.find(({ long }) => long === `--${option}`);
      const takesValue = known !== undefined && (known.required || known.optional) && !word.includes("=");
      let length = takesValue ? 2 : 1;
      while (known?.variadic && takesValue && !(this.words[at + length] ?? "-").startsWith("-")) length++;
      found.push({ at, length, ...(option !== undefined && { option }) });
      at += length;
    }
    return found;
  }
}

/** Options that name a file to read, and arguments that do, by command. */
const fileOptions = ["jwks-file", "file", "checkpoint"];
const fileArguments: Readonly<Record<string, number>> = { "keyhole var import": 2, "keyhole file put": 1 };

function hasOption(command: CommandUnknownOpts, name: string): boolean {
  return command.options.some(({ long }) => long === `--${name}`);
}

/** @param input - undefined: our own stdin @param isKept - whether the output is kept, and not shown */
async function run(
  host: string,
  terminal: "-t" | "-T",
  line: string,
  input: Uint8Array | undefined,
  isKept: boolean,
): Promise<{ readonly code: number; readonly output: Buffer }> {
  const program = spawn("ssh", [terminal, "--", host, line], {
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
