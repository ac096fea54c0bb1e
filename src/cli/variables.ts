import { randomBytes } from "node:crypto";
import { listNames, type NamedValue } from "../core/formats/dotenv.ts";
import { dataFormats, type Format, formats, renderForGithub, renderPulled } from "../core/formats/format.ts";
import { Problem } from "../core/problem.ts";
import { decodeText } from "../core/words/text.ts";
import { textOf } from "../kinds/variables/edit.ts";
import { nameWarnings } from "../kinds/variables/env-file.ts";
import { edited, literal, variableOperations } from "../kinds/variables/operations.ts";
import { revealVariables } from "../kinds/variables/reveal.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { choice, environment, force, out, project } from "../people/desk/inputs.ts";
import { done } from "../people/desk/outcome.ts";
import { applying, requireAsSeen } from "../people/desk/plan.ts";
import { withAdmin } from "./terminal/admin.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { withEditor } from "./terminal/editor.ts";
import { toProblem } from "./terminal/failure.ts";
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
  action: async (context, { project, environment, literal }, ask) => {
    const before = await withAdmin(context, (admin) =>
      revealVariables(admin, project, environment, (...shown) =>
        textOf(`${project}, ${environment}: save and close to write.`, ...shown),
      ),
    );
    const write = (text: string) => {
      const given = { project, environment, text, literal, base: undefined, saw: before.variables };
      const plan = (admin: AdminContext) => edited.plan(admin, given, { env: context.env, report: () => {} });
      return withAdmin(context, async (admin) => {
        const would = await plan(admin);
        const { added, changed, deleted } = would.names;
        if (added.length + changed.length + deleted.length === 0) {
          return done({ project, environment, added, changed, deleted }, "Nothing was changed.", []);
        }
        if (would.deed !== undefined) await requireAsSeen(would, before.seen);
        await ask(would);
        return applying(admin, plan, before.seen);
      });
    };
    const {
      document,
      sentence = "",
      warnings = [],
    } = await withEditor(context, `${environment}.env`, async (edit) => {
      for (let text = before.text; ; ) {
        text = decodeText(await edit(text), "The text");
        const outcome = await write(text).catch((error: unknown) => askAgain(context, error));
        if (outcome !== undefined) return outcome;
      }
    });
    for (const warning of warnings) context.say(warning);
    await answer(context, document, sentence);
  },
});

/**
 * Says why a text is refused, and asks whether to edit it again.
 * @throws the refusal if nobody can be asked; after a no, that nothing was written
 */
async function askAgain(context: CommandContext, error: unknown): Promise<void> {
  const { stdin, stderr } = context.terminal;
  const canAsk = stdin.isTTY && stderr.isTTY && !context.json;
  const { exitCode, code, message } = toProblem(error, context);
  if (!canAsk || !["invalid", "bound"].includes(code)) throw error;
  context.say(message.replace(/\nNothing was written\.$/, ""));
  if (!/^no?$/i.test((await readLine(context.terminal, "Edit it again? [Y/n] ")).trim())) return;
  throw new Problem(exitCode, code, "Nothing was written.");
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
