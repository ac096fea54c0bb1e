import { writeFile } from "node:fs/promises";
import type { NamedValue } from "../../core/formats/dotenv.ts";
import type { Format } from "../../core/formats/format.ts";
import { modesTo } from "../../core/modes.ts";
import { exits, Problem } from "../../core/problem.ts";
import { jsonLine, visible, visibleLines } from "../../core/visible.ts";
import { type WholeFile, writeWhole } from "../../core/whole-file.ts";
import { counted } from "../../core/words/text.ts";
import { fileOf } from "../../people/desk/inputs.ts";
import { answer } from "./answer.ts";
import { writeSecret } from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/** Where a text of variables goes. */
export type Destination = {
  /** A file, or `-` or undefined for stdout. */
  readonly out: string | undefined;
  /** What drafts of the file are called. */
  readonly kind: WholeFile;
  /** Whether a file that exists is replaced. */
  readonly force: boolean;
  /** What `--json` says besides. */
  readonly document: object;
};

/**
 * Ends a command that renders variables: the text is on stdout, or in a file of mode 0600.
 * @param make - is not called if the file cannot be written
 */
export async function answerFormatted(
  context: CommandContext,
  format: Format,
  { out: named, kind, force, document }: Destination,
  make: () => Promise<{ readonly text: string; readonly variables: readonly NamedValue[] }>,
): Promise<void> {
  const made = async () => {
    const { text, variables } = await make();
    // JSON has escapes for the characters on which a terminal acts.
    return { text: format === "json" ? visibleLines(text) : text, variables };
  };
  const out = fileOf(named);
  if (out !== undefined) {
    let names: string[] = [];
    const fill = async (draft: string) => {
      const { text, variables } = await made();
      names = variables.map(({ name }) => name).sort();
      await writeFile(draft, text);
    };
    await writeWhole(kind, out, force, fill, modesTo(context.say));
    return answer(
      context,
      { ...document, format, out, names },
      `Wrote ${counted(names.length, "variable")} to ${out}.`,
    );
  }
  const { text, variables } = await made();
  if (!context.json) refuseUnseen(context, variables, format);
  const isText = !context.json || format === "json";
  await writeSecret(context.terminal.stdout, isText ? text : jsonLine({ ...document, format, text }));
}

/** These formats show values raw, and a terminal acts on control characters. */
function refuseUnseen(context: CommandContext, variables: readonly NamedValue[], format: Format): void {
  if (!context.terminal.stdout.isTTY || !["env", "csv", "shell", "docker"].includes(format)) return;
  const steers = (value: string) => visible(value.replace(/[\n\t]/g, "")) !== value.replace(/[\n\t]/g, "");
  const names = variables.filter(({ value }) => steers(value)).map(({ name }) => name);
  if (names.length === 0) return;
  const words = `Not shown on a terminal, which could act on them: ${names.join(", ")}. Use --out, a pipe, or --format json.`;
  throw new Problem(exits.failed, "not_shown", words);
}
