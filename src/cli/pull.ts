import { randomBytes } from "node:crypto";
import { openShared } from "../client/shared-file.ts";
import { fetchVariables, refuseMissing, refuseSteering } from "../client/variables.ts";
import type { NamedValue } from "../core/formats/dotenv.ts";
import { dataFormats, formats, renderForGithub, renderPulled } from "../core/formats/format.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { parseList } from "../core/words/lists.ts";
import { counted } from "../core/words/text.ts";
import { choice, input } from "../people/desk/inputs.ts";
import { atMachine, type Machine, receiptsOf, variablesInputs } from "./machine.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { answerFormatted } from "./terminal/formatted.ts";
import { unlessClosed, write } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

const fetch = processCommand({
  path: "pull",
  about: "Print the variables of an environment, or write them to a file: all of them or nothing.",
  examples: [
    "keyhole pull -p web -e production --out .env",
    'vars=$(keyhole pull -p web -e production --format shell) && eval "$vars"',
  ],
  inputs: {
    ...variablesInputs,
    format: choice("--format <format>", "the output format (default: env)", formats),
    out: input("--out <file>", "write to this file, with mode 0600 (with github: append to it instead of $GITHUB_ENV)"),
    asOutput: input(
      "--as-output <name>",
      "with github: append all as one JSON object to $GITHUB_OUTPUT, under this name",
    ),
    mask: input("--mask <list>", "with github: hide these in the log, even if short or a common word", parseList),
  },
  action: async (context, { format = context.json ? "json" : "env", out, asOutput, mask, allowName, ...options }) => {
    if (out === "") throw usageProblem("--out is empty.");
    if (asOutput !== undefined && format !== "github") throw usageProblem("--as-output goes with --format github.");
    if (mask !== undefined && format !== "github") throw usageProblem("--mask goes with --format github.");
    if (context.json && format === "github") {
      throw usageProblem("--json does not go with --format github, whose output is commands for the runner.");
    }
    await atMachine(context, options, async (machine) => {
      const githubFile = format === "github" ? githubFileOf(context, out, asOutput) : "";
      const variables = await fetchVariables(machine, options);
      if (!dataFormats.includes(format) && asOutput === undefined) refuseSteering(variables, allowName);
      if (format === "github") return toGithub(context, machine, variables, { path: githubFile, asOutput, mask });
      const text = renderPulled(format, variables, machine.say);
      const to = { out, kind: "pull", force: true, document: { ...machine.asked, ...receiptsOf(machine) } } as const;
      await answerFormatted(context, format, to, async () => ({ text, variables }));
    });
  },
});

export const pull: CommandGroup = { rows: [fetch] };

function githubFileOf(context: CommandContext, out: string | undefined, asOutput: string | undefined): string {
  if (asOutput !== undefined && !/^[A-Za-z_][A-Za-z0-9_-]{0,99}$/.test(asOutput)) {
    throw usageProblem("--as-output takes a name of letters, digits, _ and -.");
  }
  if (out === "-")
    throw usageProblem("--out - does not go with --format github: its stdout is commands for the runner.");
  const variable = asOutput === undefined ? "GITHUB_ENV" : "GITHUB_OUTPUT";
  const file = out ?? context.env[variable];
  if (file !== undefined && file !== "") return file;
  throw usageProblem(`${variable} is not set, as it is in a step of GitHub Actions: name a file with --out.`);
}

/** Prints every mask before it writes any value. Whatever can fail is done before the first mask. */
async function toGithub(
  context: CommandContext,
  machine: Machine,
  variables: readonly NamedValue[],
  { path, asOutput, mask }: Readonly<{ path: string; asOutput: string | undefined; mask: string[] | undefined }>,
): Promise<void> {
  refuseMissing(machine.asked, variables, { require: mask, allowEmpty: true });
  const onWindows = context.env["RUNNER_OS"] === "Windows";
  const { text, masks, unmasked } = renderForGithub(variables, onWindows, asOutput, mask, () =>
    randomBytes(16).toString("hex"),
  );
  using file = openShared(path);
  await write(context.terminal.stdout, masks).catch((error: unknown) => {
    unlessClosed(error);
    throw new Problem(exits.failed, "unmasked", "The masks could not be printed, so nothing was set.");
  });
  file.append(text);
  if (unmasked.length > 0) {
    const names = unmasked.join(", ");
    machine.say(`Not hidden in the log, being short or a common word: ${names}. To hide one, name it with --mask.`);
  }
  const all = `${counted(variables.length, "variable")} for the steps that follow`;
  machine.say(`Set ${asOutput === undefined ? all : `the output ${asOutput}`}.`);
}
