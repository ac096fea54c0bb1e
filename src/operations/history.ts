import type { NamesWritten } from "../audit/entry.ts";
import { parseCount } from "../core/parse.ts";
import { counted, formatTime } from "../core/text.ts";
import { choice, environment, flag, input, ofForm, project, required, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, done, list } from "../desk/outcome.ts";
import { findProject } from "../desk/projects.ts";
import { everyKind } from "../kinds/kind.ts";
import {
  listHistory,
  planRollback,
  purgeHistory,
  type Rollback,
  rollBack,
  type VersionRecord,
} from "../people/history.ts";
import { listed } from "../people/rotation.ts";

const kinds = everyKind.map(({ kind }) => kind);
const kind = choice("<kind>", "of what", kinds);

const showAll = operation({
  path: "history",
  about: "List the versions of an environment, newest first: who wrote them, and what changed.",
  examples: ["keyhole history acme/web production", "keyhole history acme/web production files"],
  right: "see",
  inputs: { project, environment, kind: choice("[kind]", `of what (default: "${kinds[0]}")`, kinds), wide },
  run: async (admin, { project, environment, kind = kinds[0] as string, wide }) => {
    const { versions, kept, warnings } = await listHistory(admin, project, environment, kind);
    const columns: Columns<VersionRecord> = {
      VERSION: (one) => one.version,
      WRITTEN: (one) => formatTime(one.at),
      CHANGES: (one) => changesOf(one, wide),
      ACTOR: (one) => one.actor.name,
    };
    const found = list(versions, columns, `There is no history of the ${kind} of ${project} in ${environment}.`);
    const isCut = !wide && versions.some((one) => changesOf(one) !== changesOf(one, true));
    const bytesMax = mebibytes(admin.historyBytesMax);
    const taken = `${counted(kept.versions, "earlier version")}, ${mebibytes(kept.bytes)} of at most ${bytesMax}`;
    const setting = admin.rights === "operator" ? " (KEYHOLE_HISTORY_MIB)" : "";
    const sentence = [
      ...(isCut ? ["--wide names everything that changed."] : []),
      `Kept: ${taken}${setting}, and always the last two.`,
    ];
    return {
      ...found,
      ...(versions.length > 0 && { sentence: sentence.join("\n") }),
      warnings: warnings.map((warning) => `WARNING: ${warning}`),
    };
  },
});

const purge = operation({
  path: "history purge",
  about: "Remove all earlier versions, for a value that must not be kept. This cannot be undone.",
  examples: ["keyhole history purge acme/web production variables"],
  right: "operator",
  asks: "needs --yes",
  inputs: { project, environment, kind },
  run: async (admin, { project, environment, kind }, { agree }) => {
    const what = `the ${kind} of ${project} in ${environment}`;
    await findProject(admin, project, "write", [environment]);
    await agree(`remove all earlier versions of ${what}, for good`);
    const { removed, warnings } = await purgeHistory(admin, project, environment, kind);
    const sentence = `Removed ${counted(removed, "earlier version")} of ${what}. Older backups still have them.`;
    return done({ project, environment, kind, removed }, sentence, warnings);
  },
});

export const rollback = operation({
  path: "rollback",
  about: "Write an earlier version of an environment as its new version. Earlier versions stay.",
  examples: ["keyhole rollback acme/web production variables --to 3"],
  right: "write",
  asks: "needs --yes",
  inputs: {
    project,
    environment,
    kind,
    to: required(input("--to <version>", "the version, which `keyhole history` lists", parseCount)),
    wide: flag("--wide", "name everything that changes"),
    dryRun: flag("--dry-run", "say what it would add, change and delete, and write nothing"),
    seen: ofForm<Pick<Rollback, "from" | "projectId">>(),
  },
  run: async (admin, { project, environment, kind, to, wide, dryRun, seen }, { agree }) => {
    const what = `the ${kind} of ${project} in ${environment}`;
    const plan = await planRollback(admin, project, environment, kind, to);
    const more = wide || changesOf(plan) === changesOf(plan, true) ? "" : " (--wide names them)";
    const changes = changesOf(plan, wide, ["add", "change", "delete"]) + more;
    const deed = `roll ${what} back from version ${plan.from} to ${to}: ${changes}`;
    const { projectId: _, ...named } = plan;
    const document = { project, environment, kind, ...named };
    if (dryRun) return done(document, `Nothing was written. It would ${deed}.`, []);
    await agree(deed);
    const { version, warnings } = await rollBack(admin, project, environment, kind, { ...plan, ...seen });
    const sentence = `Rolled ${what} back to version ${to}: ${changesOf(plan, wide)}. This is version ${version}.`;
    return done({ ...document, version }, sentence, warnings);
  },
});

function mebibytes(bytes: number): string {
  return `${Math.ceil((bytes * 10) / 1024 / 1024) / 10} MiB`;
}

/** Such as `added A, B; deleted C`. @param wide - whether to name all of many */
function changesOf(
  { added, changed, deleted }: NamesWritten,
  wide: boolean | undefined = false,
  [add, change, remove] = ["added", "changed", "deleted"],
): string {
  const parts = [[add, added] as const, [change, changed] as const, [remove, deleted] as const];
  const told = parts
    .filter(([, names]) => names.length > 0)
    .map(([verb, names]) => `${verb} ${wide ? names.join(", ") : listed(names)}`);
  return told.join("; ") || "no changes";
}

export const history: Operations = { rows: [showAll, purge] };
export const rollbacks: Operations = { rows: [rollback] };
