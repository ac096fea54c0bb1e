import { attempt } from "../../core/attempt.ts";
import { exits, Problem } from "../../core/problem.ts";
import { counted } from "../../core/text.ts";
import type { AdminContext } from "../../desk/context.ts";
import { listNames, type NamedValue, renderDotenv } from "../../formats/dotenv.ts";
import { confirmChange, withAdmin } from "../../terminal/admin.ts";
import { answer } from "../../terminal/answer.ts";
import type { CommandContext } from "../../terminal/command.ts";
import { withEditor } from "../../terminal/editor.ts";
import { decodeText } from "../../terminal/input.ts";
import { readLine } from "../../terminal/terminal.ts";
import { environmentVerb, yesOption } from "../../terminal/verbs.ts";
import { type EnvFile, type IsLiteral, parseEnvFile } from "./env-file.ts";
import { revealVariables } from "./reveal.ts";
import { setVariables } from "./write.ts";

/** For a command that reads many variables at once. */
export const literalOption = [
  "--literal",
  "take text that another tool has encrypted, and references of other tools, as they are",
] as const;

export function editCommand(context: CommandContext) {
  return environmentVerb(
    "edit",
    "Edit the variables of an environment as dotenv text in $EDITOR. The audit records that you saw them.",
    "keyhole var edit acme/web staging",
    "EDITOR='code --wait' keyhole var edit web production",
  )
    .option(...literalOption)
    .option(...yesOption)
    .action(async (project, environment, { yes, literal = false }) => {
      const before = await withAdmin(context, (admin) =>
        revealVariables(admin, project, environment, (variables) => textOf(`${project}, ${environment}`, variables)),
      );
      const stored = new Map(before.variables.map(({ name, value }) => [name, value]));
      const isLiteral = (name: string, value: string) => literal || stored.get(name) === value;
      const written = await withEditor(context, `${environment}.env`, async (edit) => {
        const { variables, warnings } = await edited(context, edit, before.text, isLiteral);
        const { changed, removed } = changesIn(before.variables, variables);
        if (changed.length + removed.length === 0) return undefined;
        const done = await withAdmin(context, (admin) => {
          const options = { remove: removed, version: before.version, projectId: before.projectId };
          const write = (it: AdminContext) => setVariables(it, project, environment, changed, options);
          const gone = `${counted(removed.length, "variable")}: ${listNames(removed)}`;
          const deed = () => `change ${project}, ${environment}, and delete ${gone}`;
          return confirmChange(context, admin, yes || removed.length === 0, write, deed);
        });
        return { ...done, warnings: [...warnings, ...done.warnings] };
      });
      const document = { project, environment };
      if (written === undefined) {
        const nothing = { added: [], changed: [], deleted: [], warnings: [] };
        return answer(context, { ...document, ...nothing }, "Nothing was changed.");
      }
      const { updated: _, ...done } = written;
      for (const warning of done.warnings) context.say(warning);
      const counts = `${done.added.length} added, ${done.changed.length} changed, ${done.deleted.length} deleted`;
      await answer(context, { ...document, ...done }, `Wrote ${project}, ${environment}: ${counts}.`);
    });
}

/** What the person made of the text. If it does not parse, they may go on. @throws Problem that names each line */
async function edited(
  context: CommandContext,
  edit: (text: string) => Promise<Buffer>,
  before: string,
  isLiteral: IsLiteral,
): Promise<EnvFile> {
  for (let text = before; ; ) {
    text = decodeText(await edit(text), "The text");
    const parsed = parseEnvFile(text, isLiteral);
    if (parsed.problems.length === 0) return parsed;
    const problems = parsed.problems.join("\n");
    const { stdin, stderr } = context.terminal;
    const canAsk = stdin.isTTY && stderr.isTTY && !context.json;
    if (canAsk) context.say(problems);
    if (canAsk && !/^no?$/i.test((await readLine(context.terminal, "Edit it again? [Y/n] ")).trim())) continue;
    throw new Problem(exits.usage, "invalid", canAsk ? "Nothing was written." : `${problems}\nNothing was written.`);
  }
}

/** The variables with a new value, and the names that the person removed. */
function changesIn(before: readonly NamedValue[], after: readonly NamedValue[]) {
  const old = new Map(before.map(({ name, value }) => [name, value]));
  const names = new Set(after.map(({ name }) => name));
  const gone = before.filter(({ name }) => !names.has(name));
  return {
    changed: after.filter(({ name, value }) => old.get(name) !== value).map(({ name, value }) => ({ name, value })),
    removed: gone.filter(({ name, value }) => writtenAs(name, value) !== undefined).map(({ name }) => name),
  };
}

/** The text that a person edits. Variables that dotenv text cannot carry are named in it, and stay as they are. */
function textOf(where: string, variables: readonly NamedValue[]): string {
  const lines = variables.map(
    ({ name, value }) => writtenAs(name, value) ?? `# ${name} cannot be shown here, and stays.\n`,
  );
  return `# ${where}: save and close to write. A variable whose line you delete is deleted.\n\n${lines.join("")}`;
}

/** The assignment that an import reads back as exactly this value, in the plainest quotes that do so. */
function writtenAs(name: string, value: string): string | undefined {
  const plain = () => renderDotenv([{ name, value }]).text;
  const quoted = ["", "'", '"', "`"].map((quote) => () => `${name}=${quote}${value}${quote}\n`);
  for (const write of [plain, ...quoted]) {
    const text = attempt(write); // the renderer refuses some values
    if (text === undefined) continue;
    const { variables, problems } = parseEnvFile(text, () => true);
    const [first, second] = variables;
    const isRead = first?.name === name && first.value === value && second === undefined;
    if (isRead && problems.length === 0) return text;
  }
  return undefined;
}
