import { Argument, type CommandUnknownOpts, type Option } from "@commander-js/extra-typings";
import { answer, type Surroundings, verb } from "./command.ts";

/*
 * The scripts know no commands. At each Tab they run this program with the words typed so far, as plain arguments, so
 * nothing on the line is expanded or run. (The scripts of @bomb.sh/tab 0.0.22 pass the line through `eval`.)
 */

/**
 * `keyhole completion …`
 * @param loadProgram - loads the whole tree of commands
 */
export function completionCommand(here: Surroundings, loadProgram: () => Promise<CommandUnknownOpts>) {
  return verb(
    "completion",
    "Print a script that lets a shell complete commands, options and their fixed values.",
    "source <(keyhole completion bash)",
    "keyhole completion zsh > ~/.zfunc/_keyhole",
    "keyhole completion fish > ~/.config/fish/completions/keyhole.fish",
  )
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .argument("[words...]", "what the script passes at each Tab: the words up to the cursor")
    .action(async (shell, words) => {
      if (words.length === 0) return answer(here, { shell, script: scripts[shell] }, "", scripts[shell]);
      const found = complete(await loadProgram(), words);
      await answer(here, found, "", found.map((one) => `${one.word}\t${one.description}\n`).join(""));
    });
}

/** A word that may stand at the cursor, and what it does; empty for a fixed value. */
export type Candidate = { readonly word: string; readonly description: string };

/**
 * What the last word may become. If any text is allowed there, none: the shells then offer file names.
 * @param words - the words after the program's name, the last of them still being typed
 */
export function complete(program: CommandUnknownOpts, words: readonly string[]): Candidate[] {
  let command = program;
  let option: Option | undefined;
  let operands = 0;
  for (const word of words.slice(0, -1)) {
    if (word === "--") return [];
    if (word === "=") continue; // bash makes three words of --option=value
    if (option !== undefined) option = undefined;
    else if (word.startsWith("-")) option = optionWithValue(command, word);
    else {
      const child = operands === 0 ? command.commands.find((one) => one.name() === word) : undefined;
      if (child === undefined) operands += 1;
      else command = child;
    }
  }
  const last = words.at(-1) ?? "";
  const typed = last === "=" ? "" : last;
  return candidates(command, option, operands, typed).filter(({ word }) => word.startsWith(typed));
}

function candidates(
  command: CommandUnknownOpts,
  option: Option | undefined,
  operands: number,
  typed: string,
): Candidate[] {
  if (option !== undefined) return valuesOf(option, typed);
  const [flag] = /^--[^=]+(?==)/.exec(typed) ?? [];
  if (flag !== undefined) return valuesOf(optionWithValue(command, flag), typed);
  if (typed.startsWith("-")) return optionsOf(command);
  return operandsOf(command, operands);
}

function optionWithValue(command: CommandUnknownOpts, flag: string): Option | undefined {
  return command.options.find((one) => (one.required || one.optional) && (one.long === flag || one.short === flag));
}

function optionsOf(command: CommandUnknownOpts): Candidate[] {
  const options = command.createHelp().visibleOptions(command);
  return options.map(({ long, short, description }) => ({ word: long ?? short ?? "", description }));
}

/** Keeps what comes before the value in its word: `--env=`, and the earlier members of a list. */
function valuesOf(option: Option | undefined, typed: string): Candidate[] {
  const before = option?.flags.endsWith("<list>") ? /^(?:--[^=]+=)?(?:.*,)?/s : /^(?:--[^=]+=)?/;
  const [kept = ""] = before.exec(typed) ?? [];
  return (option?.argChoices ?? []).map((choice) => ({ word: kept + choice, description: "" }));
}

function operandsOf(command: CommandUnknownOpts, count: number): Candidate[] {
  const commands = count > 0 ? [] : command.commands;
  return [
    ...commands.map((child) => ({ word: child.name(), description: child.description() })),
    ...(command.registeredArguments[count]?.argChoices ?? []).map((word) => ({ word, description: "" })),
  ];
}

const scripts = {
  bash: `# bash completion for keyhole. In ~/.bashrc: source <(keyhole completion bash)
_keyhole() {
  local IFS=$'\\n'
  COMPREPLY=($(keyhole completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
  COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}")
}
complete -o default -F _keyhole keyhole
`,
  zsh: `#compdef keyhole
# zsh completion for keyhole. Put it into a folder of $fpath as _keyhole, or: source <(keyhole completion zsh)
_keyhole() {
  local -a found=("\${(@f)$(keyhole completion zsh -- "\${(@)words[2,CURRENT]}" 2> /dev/null)}")
  found=("\${(@)found/$'\\t'/:}")
  if [[ -n "$found" ]]; then _describe keyhole found; else _files; fi
}
if [[ "\${funcstack[1]}" == _keyhole ]]; then _keyhole "$@"; else compdef _keyhole keyhole; fi
`,
  fish: `# fish completion for keyhole: ~/.config/fish/completions/keyhole.fish
function __keyhole
    set -l current (commandline -ct)
    set -l found (keyhole completion fish -- (commandline -opc)[2..] "$current" 2> /dev/null)
    if test -n "$found"
        printf '%s\\n' $found
    else
        __fish_complete_path "$current"
    end
end
complete -c keyhole -f -a '(__keyhole)'
`,
} as const;
