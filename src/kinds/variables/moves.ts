import { randomBytes } from "node:crypto";
import { Option } from "@commander-js/extra-typings";
import { environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { counted } from "../../core/text.ts";
import { rehearse } from "../../desk/context.ts";
import type { Columns } from "../../desk/outcome.ts";
import type { NamedValue } from "../../formats/dotenv.ts";
import { dataFormats, type Format, formats, renderForGithub, renderPulled } from "../../formats/format.ts";
import { withAdmin } from "../../terminal/admin.ts";
import { answer, answerList } from "../../terminal/answer.ts";
import type { CommandContext } from "../../terminal/command.ts";
import { answerFormatted } from "../../terminal/formatted.ts";
import { parseList } from "../../terminal/options.ts";
import { environmentVerb } from "../../terminal/verbs.ts";
import { nameWarnings } from "./env-file.ts";
import { revealVariables } from "./reveal.ts";
import { copyVariables, type Place } from "./write.ts";

export function copyCommand(context: CommandContext) {
  return environmentVerb(
    "copy",
    "Copy variables to another environment or project, with their days of rotation. Values are never shown.",
    "keyhole var copy acme/web staging --to-env production --dry-run",
    "keyhole var copy acme/web staging --to acme/api --keys SMTP_HOST,SMTP_PASSWORD",
  )
    .option("--to <project>", "the project to copy to (default: the same)")
    .addOption(new Option("--to-env <env>", "the environment to copy to (default: the same)").choices(environments))
    .option("--keys <names>", "only these variables, comma-separated (default: all)", parseList)
    .option("--dry-run", "say what it would add and change, and write nothing")
    .action(async (project, environment, { to, toEnv, keys, dryRun = false }) => {
      if (to === undefined && toEnv === undefined) throw usageProblem("var copy: name a target with --to-env or --to.");
      const target = { project: to ?? project, environment: toEnv ?? environment };
      const copied = await withAdmin(context, (admin) => {
        const copy = (it: typeof admin) => copyVariables(it, { project, environment }, target, keys);
        return dryRun ? rehearse(admin, copy) : copy(admin);
      });
      const { added, changed, same } = copied;
      const ofNames = [...added, ...changed].flatMap(nameWarnings).map((warning) => `${warning}.`);
      const warnings = [...ofNames, ...copied.warnings];
      for (const warning of warnings) context.say(warning);
      await answerChanges(context, target, { added, changed, same }, warnings, dryRun ? "WOULD BE" : "IS", "");
      if (context.json) return;
      const place = `${target.project}, ${target.environment}`;
      const counts = `${added.length} added, ${changed.length} changed, ${same.length} the same already`;
      if (dryRun) context.say(`Nothing was written. In ${place} there would be ${counts}.`);
      else context.say(`Copied ${counted(added.length + changed.length, "variable")} to ${place}: ${counts}.`);
    });
}

/** Ends a command that lists what happened to each variable, or would happen. `--json` has a list for each outcome. */
export async function answerChanges(
  context: CommandContext,
  target: Place,
  changes: Readonly<Record<string, readonly string[]>>,
  warnings: readonly string[],
  heading: "IS" | "WOULD BE",
  none: string,
): Promise<void> {
  if (context.json) return answer(context, { ...target, ...changes, warnings }, "");
  const items = Object.entries(changes).flatMap(([change, names]) =>
    names.map((name) => ({ name, change: change === "same" ? "the same already" : change })),
  );
  const columns: Columns<(typeof items)[number]> = { NAME: ({ name }) => name, [heading]: ({ change }) => change };
  await answerList(context, items, columns, none);
}

export function exportCommand(context: CommandContext) {
  return environmentVerb(
    "export",
    "Print all variables of an environment with their values, or write them to a file. The audit records that you did.",
    "keyhole var export acme/web production --out production.env",
    "keyhole var export acme/web staging --format yaml | sops encrypt --filename-override x.yaml",
  )
    .addOption(new Option("--format <format>", "the format (default: env)").choices(formats))
    .option("--out <file>", "write to this file, mode 0600, instead of stdout")
    .option("--force", "replace an existing file")
    .action(async (project, environment, { format = context.json ? "json" : "env", out, force = false }) => {
      if (out === "") throw usageProblem("--out is empty.");
      const to = { out, kind: "export", force, document: { project, environment } } as const;
      await answerFormatted(context, format, to, async () => {
        const revealed = await withAdmin(context, (admin) =>
          revealVariables(admin, project, environment, (variables) => textIn(context, format, variables)),
        );
        // Names that may do harm, or be refused, when a machine loads the text.
        const loaded = dataFormats.includes(format) ? [] : revealed.variables;
        for (const warning of loaded.flatMap(({ name }) => nameWarnings(name))) context.say(`${warning}.`);
        return revealed;
      });
    });
}

function textIn(context: CommandContext, format: Format, variables: readonly NamedValue[]): string {
  if (format !== "github") return renderPulled(format, variables, context.say);
  return renderForGithub(variables, false, undefined, undefined, () => randomBytes(16).toString("hex")).text;
}
