import type { CommandUnknownOpts, Option } from "@commander-js/extra-typings";
import { atMost } from "../core/deadline.ts";
import { isEnvironment } from "../core/names.ts";
import { readConfig } from "../core/settings/settings.ts";
import { visible } from "../core/visible.ts";
import { everyKind } from "../kinds/kind.ts";
import { choice, repeated } from "../people/desk/inputs.ts";
import type { Named, NamesAsked } from "../people/keys/names-in-use.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand, rowOf } from "./terminal/draw.ts";
import type { CommandContext } from "./terminal/verb.ts";

/*
 * At each Tab, the scripts run this program with the words typed so far as plain arguments, so nothing is expanded. The
 * shell puts the output on the command line, so it must hold no word that a shell would act on.
 */

/** @param loadProgram - loads the whole tree of commands */
export function completionOf(loadProgram: (context: CommandContext) => Promise<CommandUnknownOpts>): CommandGroup {
  const print = processCommand({
    path: "completion",
    about:
      "Print a script that lets a shell complete commands, options, their fixed values and names from the database.",
    examples: [
      "source <(keyhole completion bash)",
      "keyhole completion zsh > ~/.zfunc/_keyhole",
      "keyhole completion fish > ~/.config/fish/completions/keyhole.fish",
    ],
    inputs: {
      shell: choice("<shell>", "the shell", ["bash", "zsh", "fish"]),
      words: repeated("[words...]", "what the script passes at each Tab: the words up to the cursor"),
    },
    action: async (context, { shell, words }) => {
      if (words === undefined) return answer(context, { shell, script: scripts[shell] }, "", scripts[shell]);
      const program = await loadProgram(context);
      const found = await complete(program, words, (asked, typed) => findNames(context, asked, typed));
      const shownWith = ({ name }: Named) => (shell !== "bash" && name !== undefined ? `\t${visible(name)}` : "");
      await answer(context, found, "", found.map((one) => `${one.word}${shownWith(one)}\n`).join(""));
    },
  });
  return { rows: [print] };
}

/** The candidates for the last word. If any text is allowed there, there are none, and the shells offer file names. */
export async function complete(
  program: CommandUnknownOpts,
  words: readonly string[],
  find: (asked: NamesAsked, typed: string) => Promise<readonly Named[]>,
): Promise<Named[]> {
  const typed = words.at(-1) ?? "";
  let command = program;
  let option: Option | undefined;
  const operands: string[] = [];
  for (const word of words.slice(0, -1)) {
    if (word === "--") return [];
    const child = command.commands.find((one) => one.name() === word);
    if (option !== undefined) option = undefined;
    else if (word.startsWith("-"))
      option = command.options.find(({ required, long, short }) => required && (long === word || short === word));
    else if (child !== undefined) command = child;
    else operands.push(word);
  }
  const fixed = option === undefined ? fixedWords(command, operands.length, typed) : (option.argChoices ?? []);
  const asked = option === undefined && typed.startsWith("-") ? undefined : namesAsked(command, option, operands);
  const names = asked === undefined ? [] : shortened(await find(asked, typed), asked, option, typed);
  return [...fixed.map((word) => ({ word })), ...names.filter(({ word }) => inert.test(word))].filter(({ word }) =>
    word.startsWith(typed),
  );
}

/** A word that is plain text to every shell, and not an option of this program. */
const inert = /^[A-Za-z0-9_][A-Za-z0-9_./+-]*$/;

function fixedWords(command: CommandUnknownOpts, operandCount: number, typed: string): string[] {
  const options = command.createHelp().visibleOptions(command);
  if (typed.startsWith("-")) return options.map(({ long }) => long ?? "");
  const commands = command.commands.map((child) => child.name());
  return [...commands, ...(command.registeredArguments[operandCount]?.argChoices ?? [])];
}

/** Which names complete an argument or an option: its input says so. */
function namesAsked(
  command: CommandUnknownOpts,
  option: Option | undefined,
  operands: readonly string[],
): NamesAsked | undefined {
  const inputs = Object.values(rowOf(command)?.inputs ?? {});
  const named = inputs.filter(({ flags }) => /^[<[]/.test(flags));
  const input = option === undefined ? named[operands.length] : inputs.find(({ flags }) => flags === option.flags);
  const { completes } = input ?? {};
  if (completes !== "items") return completes && { of: completes };
  const noun = command.parent?.name();
  const kind = everyKind.find((one) => one.command === noun)?.kind;
  const [project, second] = operands;
  if (kind === undefined || project === undefined) return undefined;
  return { of: kind, project, environment: second !== undefined && isEnvironment(second) ? second : undefined };
}

/** Removes the organization from names of projects if a command does not need it. */
function shortened(names: readonly Named[], asked: NamesAsked, option: Option | undefined, typed: string): Named[] {
  if (asked.of !== "projects") return [...names];
  const organizations = new Set(names.map(({ word }) => word.split("/")[0]));
  const isShort = option?.flags.endsWith("<list>") || (organizations.size === 1 && !typed.includes("/"));
  return names.map(({ word, ...rest }) => ({ word: isShort ? word.slice(word.indexOf("/") + 1) : word, ...rest }));
}

/** The names in the database. Empty if it does not answer within a second, or fails. */
async function findNames(context: CommandContext, asked: NamesAsked, typed: string): Promise<readonly Named[]> {
  try {
    const { namesInUse } = await import("../people/keys/names-in-use.ts");
    const found = namesInUse(readConfig(context.env, false), asked, typed);
    return (await atMost(waitMsMax, found)) ?? [];
  } catch {
    return [];
  }
}

const waitMsMax = 1000;

const scripts = {
  bash: `# bash completion for keyhole. In ~/.bashrc: source <(keyhole completion bash)
_keyhole() {
  local IFS=$'\\n'
  # No word on offer has a character on which the expansion acts.
  COMPREPLY=($(keyhole completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
}
complete -o default -F _keyhole keyhole
`,
  zsh: `#compdef keyhole
# zsh completion for keyhole. Put it into a folder of $fpath as _keyhole, or: source <(keyhole completion zsh)
_keyhole() {
  local found="$(keyhole completion zsh -- "\${(@)words[2,CURRENT]}" 2> /dev/null)"
  local -a offered=("\${(@f)found}")
  local -a shown=("\${(@)offered/$'\\t'/  -- }")
  offered=("\${(@)offered%%$'\\t'*}")
  if [[ -n "$found" ]]; then compadd -l -d shown -a offered; else _files; fi
}
if [[ "\${funcstack[1]}" == _keyhole ]]; then
  _keyhole "$@"
else
  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit -i }
  compdef _keyhole keyhole
fi
`,
  fish: `# fish completion for keyhole: ~/.config/fish/completions/keyhole.fish
complete -c keyhole -a '(keyhole completion fish -- (commandline -opc)[2..] "$(commandline -ct)" 2> /dev/null)'
`,
} as const;
