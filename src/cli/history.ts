import { Argument } from "@commander-js/extra-typings";
import type { NamesWritten } from "../audit/entry.ts";
import { counted, formatTime } from "../core/text.ts";
import { type AdminContext, rehearse } from "../desk/context.ts";
import type { Columns } from "../desk/outcome.ts";
import { everyKind } from "../kinds/kind.ts";
import { listHistory, planRollback, purgeHistory, rollBack, type VersionRecord } from "../people/history.ts";
import { listed } from "../people/rotation.ts";
import { confirmChange, withAdmin } from "../terminal/admin.ts";
import { answer, answerList } from "../terminal/answer.ts";
import type { CommandContext } from "../terminal/command.ts";
import { parseCount } from "../terminal/options.ts";

import { environmentVerb, wideOption, yesOption } from "../terminal/verbs.ts";

const kinds = everyKind.map(({ kind }) => kind);

/** `keyhole history …` and `keyhole history purge …` */
export function historyCommand(context: CommandContext) {
  return environmentVerb(
    "history",
    "List the versions of an environment, newest first: who wrote them, and what changed.",
    "keyhole history acme/web production",
    "keyhole history acme/web production files",
  )
    .addArgument(new Argument("[kind]", "of what").choices(kinds).default(kinds[0] as (typeof kinds)[number]))
    .option(...wideOption)
    .action(async (project, environment, kind, { wide }) => {
      const { versions, kept, warnings, bytesMax } = await withAdmin(context, async (admin) => {
        const found = await listHistory(admin, project, environment, kind);
        return { ...found, bytesMax: admin.historyBytesMax };
      });
      for (const warning of warnings) context.say(`WARNING: ${warning}`);
      const columns: Columns<VersionRecord> = {
        VERSION: (one) => one.version,
        WRITTEN: (one) => formatTime(one.at),
        CHANGES: (one) => changesOf(one, wide),
        ACTOR: (one) => one.actor.name,
      };
      const none = `There is no history of the ${kind} of ${project} in ${environment}.`;
      await answerList(context, versions, columns, none, wide);
      if (context.json || versions.length === 0) return;
      if (!wide && versions.some((one) => changesOf(one) !== changesOf(one, true))) {
        context.say("--wide names everything that changed.");
      }
      const taken = `${counted(kept.versions, "earlier version")}, ${mebibytes(kept.bytes)} of at most ${mebibytes(bytesMax)}`;
      const setting = context.person === undefined ? " (KEYHOLE_HISTORY_MIB)" : "";
      context.say(`Kept: ${taken}${setting}, and always the last two.`);
    })
    .addCommand(purgeVerb(context));
}

function purgeVerb(context: CommandContext) {
  return environmentVerb(
    "purge",
    "Remove all earlier versions, for a value that must not be kept. This cannot be undone.",
    "keyhole history purge acme/web production variables",
  )
    .addArgument(new Argument("<kind>", "of what").choices(kinds))
    .option(...yesOption)
    .action(async (project, environment, kind, { yes }) => {
      const what = `the ${kind} of ${project} in ${environment}`;
      const purge = (admin: AdminContext) => purgeHistory(admin, project, environment, kind);
      const deed = () => `remove all earlier versions of ${what}, for good`;
      const { removed, warnings } = await withAdmin(context, (admin) =>
        confirmChange(context, admin, yes, purge, deed),
      );
      for (const warning of warnings) context.say(`WARNING: ${warning}`);
      const words = `Removed ${counted(removed, "earlier version")} of ${what}. Older backups still have them.`;
      await answer(context, { project, environment, kind, removed, warnings }, words);
    });
}

function mebibytes(bytes: number): string {
  return `${Math.ceil((bytes * 10) / 1024 / 1024) / 10} MiB`;
}

export function rollbackCommand(context: CommandContext) {
  return environmentVerb(
    "rollback",
    "Write an earlier version of an environment as its new version. Earlier versions stay.",
    "keyhole rollback acme/web production variables --to 3",
  )
    .addArgument(new Argument("<kind>", "of what").choices(kinds))
    .requiredOption("--to <version>", "required: the version, which `keyhole history` lists", parseCount)
    .option("--wide", "name everything that changes")
    .option("--dry-run", "say what it would add, change and delete, and write nothing")
    .option(...yesOption)
    .action(async (project, environment, kind, { to, wide, dryRun, yes }) => {
      const what = `the ${kind} of ${project} in ${environment}`;
      const done = await withAdmin(context, async (admin) => {
        const plan = await planRollback(admin, project, environment, kind, to);
        const more = wide || changesOf(plan) === changesOf(plan, true) ? "" : " (--wide names them)";
        const changes = changesOf(plan, wide, ["add", "change", "delete"]) + more;
        const change = (it: AdminContext) => rollBack(it, project, environment, kind, plan);
        const deed = `roll ${what} back from version ${plan.from} to ${to}: ${changes}`;
        const written = dryRun ? rehearse(admin, change) : confirmChange(context, admin, yes, change, () => deed);
        return { ...plan, ...(await written), deed };
      });
      const { version, warnings, deed, projectId: _, ...shown } = done;
      for (const warning of warnings) context.say(warning);
      const document = { project, environment, kind, ...shown };
      if (dryRun) return answer(context, { ...document, warnings }, `Nothing was written. It would ${deed}.`);
      const words = `Rolled ${what} back to version ${to}: ${changesOf(done, wide)}. This is version ${version}.`;
      await answer(context, { ...document, version, warnings }, words);
    });
}

/** Such as `added A, B; deleted C`. @param wide - whether to name all of many */
function changesOf(
  { added, changed, deleted }: NamesWritten,
  wide = false,
  [add, change, remove] = ["added", "changed", "deleted"],
): string {
  const parts = [[add, added] as const, [change, changed] as const, [remove, deleted] as const];
  const told = parts
    .filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb} ${wide ? names.join(", ") : listed(names)}`);
  return told.join("; ") || "no changes";
}
