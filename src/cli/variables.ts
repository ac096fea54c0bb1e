import { randomBytes } from "node:crypto";
import { listNames, type NamedValue } from "../core/formats/dotenv.ts";
import { dataFormats, type Format, formats, renderForGithub, renderPulled } from "../core/formats/format.ts";
import { exits, Problem } from "../core/problem.ts";
import { counted, decodeText } from "../core/words/text.ts";
import { changesIn, textOf } from "../kinds/variables/edit.ts";
import { type EnvFile, type IsLiteral, nameWarnings, parseEnvFile } from "../kinds/variables/env-file.ts";
import { literal, variableOperations, wroteSentence } from "../kinds/variables/operations.ts";
import { revealVariables } from "../kinds/variables/reveal.ts";
import { planVariables } from "../kinds/variables/write.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { choice, environment, force, out, project } from "../people/desk/inputs.ts";
import { applying, requireAsSeen } from "../people/desk/plan.ts";
import { withAdmin } from "./terminal/admin.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { withEditor } from "./terminal/editor.ts";
import { answerFormatted } from "./terminal/formatted.ts";
import { readLine } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

/* The commands of variables that do more with the process than to run an operation: one opens an editor, one renders. */

const edit = processCommand({
  path: "var edit",
  about: "Edit the variables of an environment as dotenv text in $EDITOR. The audit records that you saw them.",
  examples: ["keyhole var edit acme/web staging", "EDITOR='code --wait' keyhole var edit web production"],
  right: "operator",
  asks: "needs --yes",
  inputs: { project, environment, literal },
  action: async (context, { project, environment, literal = false }, ask) => {
    const before = await withAdmin(context, (admin) =>
      revealVariables(admin, project, environment, (...shown) =>
        textOf(`${project}, ${environment}: save and close to write.`, ...shown),
      ),
    );
    const stored = new Map(before.variables.map(({ name, value }) => [name, value]));
    const isLiteral = (name: string, value: string) => literal || stored.get(name) === value;
    const written = await withEditor(context, `${environment}.env`, async (edit) => {
      const { variables, warnings } = await edited(context, edit, before.text, isLiteral);
      const { changed, removed } = changesIn(before.variables, variables);
      if (changed.length + removed.length === 0) return undefined;
      const { seen } = before;
      const plan = (admin: AdminContext) =>
        planVariables(admin, project, environment, changed, { remove: removed, warnings });
      return withAdmin(context, async (admin) => {
        if (removed.length > 0) {
          await requireAsSeen(await plan(admin), seen);
          const gone = `${counted(removed.length, "variable")}: ${listNames(removed)}`;
          await ask({ deed: `change ${project}, ${environment}, and delete ${gone}` });
        }
        return applying(admin, plan, seen);
      });
    });
    const {
      updated: _,
      same: __,
      ...done
    } = written ?? { updated: 0, same: [], added: [], changed: [], deleted: [], warnings: [] };
    for (const warning of done.warnings) context.say(warning);
    const sentence = written === undefined ? "Nothing was changed." : wroteSentence(project, environment, written);
    await answer(context, { project, environment, ...done }, sentence);
  },
});

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

const exportAll = processCommand({
  path: "var export",
  about:
    "Print all variables of an environment with their values, or write them to a file. The audit records that you did.",
  examples: [
    "keyhole var export acme/web production --out production.env",
    "keyhole var export acme/web staging --format yaml | sops encrypt --filename-override x.yaml",
  ],
  right: "reveal",
  inputs: {
    project,
    environment,
    format: choice("--format <format>", "the format (default: env)", formats),
    out,
    force,
  },
  action: async (context, { project, environment, format = context.json ? "json" : "env", out, force = false }) => {
    const to = { out, kind: "export", force, document: { project, environment } } as const;
    await answerFormatted(context, format, to, async () => {
      const revealed = await withAdmin(context, (admin) =>
        revealVariables(admin, project, environment, (variables) => textIn(context, format, variables)),
      );
      // Names that may do harm, or be refused, when a machine loads the text.
      const loaded = dataFormats.includes(format) ? [] : revealed.variables;
      for (const warning of loaded.flatMap(({ name }) => nameWarnings(name))) context.say(`${warning}.`);
      const { hidden } = revealed;
      if (hidden.length > 0) context.say(`Left out, for machines only: ${listNames(hidden)}.`);
      return revealed;
    });
  },
});

function textIn(context: CommandContext, format: Format, variables: readonly NamedValue[]): string {
  if (format !== "github") return renderPulled(format, variables, context.say);
  return renderForGithub(variables, false, undefined, undefined, () => randomBytes(16).toString("hex")).text;
}

const { about = "", rows } = variableOperations;

export const variableCommands: CommandGroup = { about, rows: [...rows, edit, exportAll] };
