import { Argument, type CommandUnknownOpts, type Option } from "@commander-js/extra-typings";
import { answer, type Surroundings, verb } from "./command.ts";

/* At each Tab the scripts run this program with the words typed so far, as plain arguments: nothing is expanded. */

/** `keyhole completion …`; `loadProgram` loads the whole tree of commands. */
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
      await answer(here, found, "", found.map((word) => `${word}\n`).join(""));
    });
}

/** What the last word may become. If any text is allowed there, nothing: the shells then offer file names. */
export function complete(program: CommandUnknownOpts, words: readonly string[]): string[] {
  const typed = words.at(-1) ?? "";
  let command = program;
  let option: Option | undefined;
  let operands = 0;
  for (const word of words.slice(0, -1)) {
    if (word === "--") return [];
    const child = command.commands.find((one) => one.name() === word);
    if (option !== undefined) option = undefined;
    else if (word.startsWith("-"))
      option = command.options.find(({ required, long, short }) => required && (long === word || short === word));
    else if (child !== undefined) command = child;
    else operands += 1;
  }
  const candidates = option === undefined ? candidatesOf(command, operands, typed) : (option.argChoices ?? []);
  return candidates.filter((word) => word.startsWith(typed));
}

function candidatesOf(command: CommandUnknownOpts, operands: number, typed: string): string[] {
  if (typed.startsWith("-"))
    return command
      .createHelp()
      .visibleOptions(command)
      .map(({ long }) => long ?? "");
  const commands = command.commands.map((child) => child.name());
  return [...commands, ...(command.registeredArguments[operands]?.argChoices ?? [])];
}

const scripts = {
  bash: `# bash completion for keyhole. In ~/.bashrc: source <(keyhole completion bash)
_keyhole() {
  local IFS=$'\\n'
  COMPREPLY=($(keyhole completion bash -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null))
}
complete -o default -F _keyhole keyhole
`,
  zsh: `#compdef keyhole
# zsh completion for keyhole. Put it into a folder of $fpath as _keyhole, or: source <(keyhole completion zsh)
_keyhole() {
  local found="$(keyhole completion zsh -- "\${(@)words[2,CURRENT]}" 2> /dev/null)"
  if [[ -n "$found" ]]; then compadd -- \${(f)found}; else _files; fi
}
if [[ "\${funcstack[1]}" == _keyhole ]]; then _keyhole "$@"; else compdef _keyhole keyhole; fi
`,
  fish: `# fish completion for keyhole: ~/.config/fish/completions/keyhole.fish
complete -c keyhole -a '(keyhole completion fish -- (commandline -opc)[2..] "$(commandline -ct)" 2> /dev/null)'
`,
} as const;
