import { shellWord } from "../../core/words/shell.ts";
import type { Inputs } from "./inputs.ts";
import type { Words } from "./operation.ts";

/**
 * The command line that runs an operation, for a shell.
 * @param words - its inputs in the order of the line, as people type them; true for an option without a value
 */
export function commandLine<I extends Inputs>(
  { path, inputs }: Pick<Words<I>, "path" | "inputs">,
  words: { readonly [K in keyof I]?: string | readonly string[] | true | undefined },
): string {
  const parts = Object.entries(words).flatMap(([name, word]) => {
    const [option = ""] = inputs[name]?.flags.split(" ") ?? [];
    if (word === undefined) return [];
    if (word === true) return option;
    const text = shellWord([word].flat().join(","));
    if (!option.startsWith("--")) return text;
    // A value that looks like an option is a part of the option's own word.
    return text.startsWith("'-") ? `${option}=${text}` : `${option} ${text}`;
  });
  return ["keyhole", path, ...parts].join(" ");
}
