import { Argument, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { answer, type Surroundings, verb } from "./command.ts";

/** `keyhole completion …`: @param program - loads the whole tree, which the scripts are made from */
export function completionCommand(here: Surroundings, program: () => Promise<CommandUnknownOpts>) {
  return verb(
    "completion",
    "Print a script that lets a shell complete commands, options and their fixed values.",
    "source <(keyhole completion bash)",
    "keyhole completion zsh > ~/.zfunc/_keyhole",
    "keyhole completion fish > ~/.config/fish/completions/keyhole.fish",
  )
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .action(async (shell) => {
      const script = scripts[shell](placesOf(await program()));
      await answer(here, { shell, script }, "", script);
    });
}

/** What may stand somewhere on the command line: words, a comma-separated list of them, a local file, or anything. */
type Expected = { readonly kind: "words" | "list" | "file" | "anything"; readonly words: readonly string[] };
type Flag = { readonly names: readonly string[]; readonly description: string; readonly value: Expected | undefined };

/** A command as completion sees it: the words that lead to it, and what may follow. */
export type Place = {
  /** Such as `key create`; empty for the program itself. */
  readonly path: string;
  readonly commands: readonly { readonly name: string; readonly description: string }[];
  readonly flags: readonly Flag[];
  readonly operands: readonly Expected[];
};

/** Every command of a tree, the program itself first. */
export function placesOf(command: CommandUnknownOpts, path = ""): Place[] {
  const place = {
    path,
    commands: command.commands.map((child) => ({ name: child.name(), description: child.description() })),
    flags: [
      ...command.options
        .filter(({ hidden }) => !hidden)
        .map((option) => ({
          names: [option.long, option.short].filter((name) => name !== undefined),
          description: option.description,
          value: option.required || option.optional ? expected(option.flags, option.argChoices) : undefined,
        })),
      { names: ["--help", "-h"], description: "show this help", value: undefined },
    ],
    operands: command.registeredArguments.map((argument) => expected(`<${argument.name()}>`, argument.argChoices)),
  };
  const children = command.commands.flatMap((child) => placesOf(child, `${path} ${child.name()}`.trim()));
  return [place, ...children];
}

function expected(usage: string, choices: readonly string[] | undefined): Expected {
  if (choices !== undefined) return { kind: usage.endsWith("<list>") ? "list" : "words", words: choices };
  return { kind: /<(?:file|local)>$/.test(usage) ? "file" : "anything", words: [] };
}

const scripts = { bash, zsh, fish } as const;

// Each script walks the words before the cursor to find the place (as in "key create"), an option that still waits for
// its value, and how many operands there were. All it can say stands in it: nothing is run when Tab is pressed.

function bash(places: readonly Place[]): string {
  return `# bash completion for keyhole. In ~/.bashrc: source <(keyhole completion bash)
_keyhole() {
  local place= option= count=0 at word kind=none words= before cur="\${COMP_WORDS[COMP_CWORD]}"
  for ((at = 1; at < COMP_CWORD; at++)); do
    word="\${COMP_WORDS[at]}"
    # bash takes --option=value apart into three words.
    if [[ "$word" == "=" ]]; then continue; fi
    if [[ -n "$option" ]]; then option=; continue; fi
    case "$place|$word" in
${cases(waiting(places), 'option="$word"', 6)}
${cases(steps(places), `place="\${place:+$place }$word"; count=0`, 6)}
      *"|-"*) ;;
      *) ((count += 1)) ;;
    esac
  done
  [[ "$cur" == "=" ]] && cur=
  if [[ -n "$option" ]]; then
    case "$place|$option" in
${values(places, bashExpected, 6)}
    esac
  elif [[ "$cur" == -* ]]; then
    case "$place" in
${places.map((place) => `      ${quoted(place.path)}) kind=words words=${quoted(flagNames(place).join(" "))} ;;`).join("\n")}
    esac
  else
    case "$place|$count" in
${operands(places, bashExpected, 6)}
    esac
  fi
  # Without mapfile and compopt: bash 3.2, which macOS brings, has neither.
  case "$kind" in
    words) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
    list)
      [[ "$cur" == *,* ]] && before="\${cur%,*},"
      COMPREPLY=($(compgen -P "$before" -W "$words" -- "\${cur##*,}"))
      type compopt &> /dev/null && compopt -o nospace
      ;;
    file)
      local IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$cur"))
      type compopt &> /dev/null && compopt -o filenames
      ;;
  esac
}
complete -F _keyhole keyhole
`;
}

function bashExpected({ kind, words }: Expected): string {
  return `kind=${kind} words=${quoted(words.join(" "))}`;
}

function zsh(places: readonly Place[]): string {
  return `#compdef keyhole
# zsh completion for keyhole. Put it into a folder of $fpath as _keyhole, or: source <(keyhole completion zsh)
_keyhole() {
  local place= option= word
  integer at count=0
  local -a found
  for ((at = 2; at < CURRENT; at++)); do
    word="\${words[at]}"
    if [[ -n "$option" ]]; then option=; continue; fi
    case "$place|$word" in
${cases(waiting(places), 'option="$word"', 6)}
${cases(steps(places), `place="\${place:+$place }$word"; count=0`, 6)}
      *"|-"*) ;;
      *) ((count += 1)) ;;
    esac
  done
  if [[ -n "$option" ]]; then
    case "$place|$option" in
${values(places, zshExpected, 6)}
    esac
  elif [[ "$PREFIX" == -* ]]; then
    case "$place" in
${places
  .map((place) => {
    const described = place.flags.flatMap(({ names, description }) => names.map((name) => `${name}:${description}`));
    return `      ${quoted(place.path)}) found=(${described.map(zshDescribed).join(" ")}); _describe option found ;;`;
  })
  .join("\n")}
    esac
  else
    case "$place|$count" in
${places
  .filter((place) => place.commands.length > 0)
  .map((place) => {
    const described = place.commands.map(({ name, description }) => `${name}:${description}`);
    return `      ${quoted(`${place.path}|0`)}) found=(${described.map(zshDescribed).join(" ")}); _describe command found ;;`;
  })
  .join("\n")}
${operands(
  places.filter((place) => place.commands.length === 0),
  zshExpected,
  6,
)}
    esac
  fi
}
if [[ "\${funcstack[1]}" == _keyhole ]]; then _keyhole "$@"; else compdef _keyhole keyhole; fi
`;
}

function zshExpected({ kind, words }: Expected): string {
  if (kind === "file") return "_files";
  const add = `compadd -- ${words.join(" ")}`;
  return kind === "list" ? `compset -P '*,'; ${add.replace("compadd", "compadd -S ''")}` : add;
}

/** `name:description` in single quotes; a colon in either is escaped for _describe. */
function zshDescribed(text: string): string {
  const at = text.indexOf(":");
  return quoted(`${text.slice(0, at)}:${text.slice(at + 1).replaceAll(":", "\\:")}`);
}

function fish(places: readonly Place[]): string {
  const lines = places.flatMap((place) => [
    ...place.commands.map(
      ({ name, description }) => `complete -c keyhole -n ${at(place, 0)} -a ${name} -d ${fishQuoted(description)}`,
    ),
    ...place.flags.map(({ names, description, value }) => {
      const spelled = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
      return `complete -c keyhole -n ${at(place)} ${spelled.join(" ")}${fishValue(value)} -d ${fishQuoted(description)}`;
    }),
    ...place.operands.flatMap((operand, count) => {
      const value = fishOperand(operand);
      return value === "" ? [] : [`complete -c keyhole -n ${at(place, count)}${value}`];
    }),
  ]);
  return `# fish completion for keyhole: ~/.config/fish/completions/keyhole.fish
function __keyhole_at --description "whether the words before the cursor lead to a command, and to how many operands"
    set -l place ""
    set -l option ""
    set -l count 0
    for word in (commandline -opc)[2..]
        if test -n "$option"
            set option ""
            continue
        end
        switch "$place|$word"
            case ${waiting(places).map(fishQuoted).join(" ")}
                set option $word
            case ${steps(places).map(fishQuoted).join(" ")}
                set place (string trim "$place $word")
                set count 0
            case '*|-*'
            case '*'
                set count (math $count + 1)
        end
    end
    test "$place" = "$argv[1]"; and test -z "$argv[2]" -o "$count" = "$argv[2]"
end
complete -c keyhole -f
${lines.join("\n")}
`;
}

function at(place: Place, count?: number): string {
  return `"__keyhole_at '${place.path}'${count === undefined ? "" : ` ${count}`}"`;
}

function fishValue(value: Expected | undefined): string {
  if (value === undefined) return "";
  return value.kind === "file" ? " -r -F" : ` -x${fishOperand(value)}`;
}

function fishOperand({ kind, words }: Expected): string {
  if (kind === "file") return " -F";
  if (kind === "list") return ` -a ${fishQuoted(`(__fish_complete_list , "printf '%s\\n' ${words.join(" ")}")`)}`;
  return words.length === 0 ? "" : ` -a ${fishQuoted(words.join(" "))}`;
}

/** `place|option` of every option that takes a value. */
function waiting(places: readonly Place[]): string[] {
  return places.flatMap(({ path, flags }) =>
    flags.filter(({ value }) => value !== undefined).flatMap(({ names }) => names.map((name) => `${path}|${name}`)),
  );
}

/** `place|word` of every word that leads to a command. */
function steps(places: readonly Place[]): string[] {
  return places.flatMap(({ path, commands }) => commands.map(({ name }) => `${path}|${name}`));
}

function cases(patterns: readonly string[], body: string, indent: number): string {
  return `${" ".repeat(indent)}${patterns.map(quoted).join("|")}) ${body} ;;`;
}

function values(places: readonly Place[], say: (value: Expected) => string, indent: number): string {
  const lines = places.flatMap(({ path, flags }) =>
    flags.flatMap(({ names, value }) =>
      value === undefined || value.kind === "anything"
        ? []
        : [
            cases(
              names.map((name) => `${path}|${name}`),
              say(value),
              indent,
            ),
          ],
    ),
  );
  return lines.join("\n");
}

function operands(places: readonly Place[], say: (value: Expected) => string, indent: number): string {
  const lines = places.flatMap(({ path, commands, operands }) => {
    const first =
      commands.length > 0 ? [{ kind: "words", words: commands.map(({ name }) => name) } as const] : operands;
    return first.flatMap((value, count) =>
      value.kind === "anything" ? [] : [cases([`${path}|${count}`], say(value), indent)],
    );
  });
  return lines.join("\n");
}

function flagNames({ flags }: Place): string[] {
  return flags.flatMap(({ names }) => names);
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function fishQuoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
