import { excerpt } from "../../core/visible.ts";
import { parseCount } from "../../core/words/parse.ts";
import { counted, joined, listed } from "../../core/words/text.ts";
import { everyKind } from "../../kinds/kind.ts";
import { type NamesWritten, nameInPersonText } from "../../record/entry.ts";
import { choice, environment, flag, input, project, required, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, done, list } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { listHistory, planPurge, type VersionRecord } from "./history.ts";
import { planRollback, planUndo, type Writer } from "./rollback.ts";

const kinds = everyKind.map(({ kind }) => kind);
const kind = choice("<kind>", "of what", kinds);

const showAll = operation({
  path: "history",
  about: "List the versions of an environment, newest first: who wrote them, and what changed.",
  examples: [
    "keyhole history acme/web production",
    "keyhole history acme/web production files",
    "keyhole history acme/web production --name API_TOKEN",
  ],
  right: "see",
  inputs: {
    project,
    environment,
    kind: choice("[kind]", `of what (default: "${kinds[0]}")`, kinds),
    name: input("--name <name>", "only the versions that wrote this one"),
    wide,
  },
  run: async (admin, { project, environment, kind = kinds[0] as string, name, wide }) => {
    const set = { where: project, environment, kind };
    const { versions, earlier, kept, warnings } = await listHistory(admin, set, name);
    const columns: Columns<VersionRecord> = {
      VERSION: (one) => one.version,
      WRITTEN: ({ at }) => ({ at }),
      CHANGES: (one) => changesOf(one, wide),
      ACTOR: (one) => one.actor.name,
    };
    const what = `the ${kind} of ${project} in ${environment}`;
    const none = name === undefined ? `There is no history of ${what}.` : `No kept version of ${what} wrote ${name}.`;
    const found = list(versions, columns, none);
    const isCut = !wide && versions.some((one) => changesOf(one) !== changesOf(one, true));
    const bytesMax = mebibytes(admin.historyBytesMax);
    const taken = `${counted(kept.versions, "earlier version")}, ${mebibytes(kept.bytes)} of at most ${bytesMax}`;
    const setting = admin.rights === "operator" ? " (KEYHOLE_HISTORY_MIB)" : "";
    const sentence = [
      ...(isCut ? ["--wide names everything that changed."] : []),
      ...(earlier === undefined ? [] : [`Version ${earlier} has an earlier value. The version that wrote it is gone.`]),
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
  right: rightTo("history.purge"),
  asks: "needs --yes",
  inputs: { project, environment, kind },
  plan: async (admin, { project, environment, kind }) => {
    const { versions, seen, apply } = await planPurge(admin, { where: project, environment, kind });
    const document = { project, environment, kind };
    const those = `${counted(versions, "earlier version")} of ${setText(document)}`;
    return {
      deed: `remove ${those}, for good`,
      seen,
      document: { ...document, versions },
      apply: async () => {
        const { removed, warnings } = await apply();
        return done({ ...document, removed }, `Removed ${those}. Older backups still have them.`, warnings);
      },
    };
  },
});

/** A set in messages. */
function setText({ project, environment, kind }: { project: string; environment: string; kind: string }): string {
  return `the ${kind} of ${project} in ${environment}`;
}

const wideNames = flag("--wide", "name everything that changes");

export const rollback = operation({
  path: "rollback",
  about: "Write an earlier version of an environment as its new version. Earlier versions stay.",
  examples: [
    "keyhole rollback acme/web production variables --to 3",
    "keyhole rollback acme/web production variables --to 3 --name API_TOKEN",
  ],
  right: rightTo("variables.rollback"),
  asks: "needs --yes",
  inputs: {
    project,
    environment,
    kind,
    to: required(input("--to <version>", "the version, which `keyhole history` lists", parseCount)),
    name: input("--name <name>", "put only this one back, and keep the others as they are"),
    wide: wideNames,
  },
  plan: async (admin, { project, environment, kind, to, name, wide }) => {
    const { would, ...change } = await planRollback(admin, { where: project, environment, kind }, to, name);
    const { plan } = would;
    const what = setText({ project, environment, kind });
    const after = plan.between.length > 0 ? `That takes back ${writersOf(plan.between)}` : "";
    const one = name !== undefined && `${excerpt(name)}, of ${what}, back to what it was in version ${to}`;
    const act = one ? `put ${one}` : `roll ${what} back from version ${plan.from} to ${to}`;
    const deed = [one ? act : `${act}: ${plannedText(plan, wide)}`, after].filter(Boolean).join(". ");
    const did = one ? `Put ${one}` : `Rolled ${what} back to version ${to}: ${changesOf(plan, wide)}`;
    const document = { project, environment, kind, ...plan };
    const apply = async () => {
      const { version, warnings } = await change.apply();
      return done({ ...document, version }, `${did}. This is version ${version}.`, warnings);
    };
    return { ...change, deed, act, after, names: plan, document, apply };
  },
});

export const undoOne = operation({
  path: "undo",
  about: "Take back what one version changed. What somebody has written since stays as it is.",
  examples: ["keyhole undo acme/web production variables 7"],
  right: rightTo("variables.rollback"),
  asks: "needs --yes",
  inputs: {
    project,
    environment,
    kind,
    version: input("<version>", "the version, which `keyhole history` lists", parseCount),
    wide: wideNames,
  },
  plan: async (admin, { project, environment, kind, version, wide }) => {
    const { would, ...change } = await planUndo(admin, { where: project, environment, kind }, version);
    const { plan } = would;
    const what = `version ${version} of ${setText({ project, environment, kind })}`;
    const names = plan.left.map(({ name, version, by }) => `${name} (version ${version}, by ${nameInPersonText(by)})`);
    const left = wide ? names.join(", ") : listed(names);
    const after = names.length > 0 ? `Not undone, because written since: ${left}` : "";
    const act = `undo ${what}, by ${excerpt(nameInPersonText(plan.by))}`;
    const deed = [`${act}: ${plannedText(plan, wide)}`, after].filter(Boolean).join(". ");
    const { version: undone, ...rest } = plan;
    const document = { project, environment, kind, undone, ...rest };
    const apply = async () => {
      const { version, warnings } = await change.apply();
      const sentence = `Undid ${what}: ${changesOf(plan, wide)}. This is version ${version}.${after && ` ${after}.`}`;
      return done({ ...document, version }, sentence, warnings);
    };
    return { ...change, deed, act, after, names: plan, document, apply };
  },
});

function mebibytes(bytes: number): string {
  return `${Math.ceil((bytes * 10) / 1024 / 1024) / 10} MiB`;
}

/** Such as `add A, B; delete C`, and how to see all of many. */
function plannedText(plan: NamesWritten, wide: boolean | undefined): string {
  const more = wide || changesOf(plan) === changesOf(plan, true) ? "" : " (--wide names them)";
  return changesOf(plan, wide, ["add", "change", "delete"]) + more;
}

/** Such as `version 7 by ben, and versions 8 and 9 by ana`. */
function writersOf(writers: readonly Writer[]): string {
  const groups = [...Map.groupBy(writers, ({ by }) => by)].map(([by, versions]) => {
    const numbers = versions.map(({ version }) => String(version));
    const which = numbers.length > 10 ? listed(numbers) : joined(numbers);
    const who = by === null ? "somebody whose record was changed with SQL" : excerpt(nameInPersonText(by));
    return `version${numbers.length === 1 ? "" : "s"} ${which} by ${who}`;
  });
  return groups.length > 10 ? listed(groups) : groups.join(", and ");
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
export const undos: Operations = { rows: [undoOne] };
