import { eq, sql } from "drizzle-orm";
import { Cut } from "../../core/cut.ts";
import {
  compareBytes,
  type Environment,
  isVariableName,
  type Remarks,
  variableValueBytesMax,
} from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { didYouMean } from "../../core/words/nearest.ts";
import { firstLines } from "../../core/words/text.ts";
import { type AdminContext, mayCompare, requireFreshToCompare } from "../../people/desk/context.ts";
import { Permit } from "../../people/desk/permit.ts";
import {
  type FoundProject,
  findProject,
  findToChange,
  type PlannedProject,
  placeOf,
} from "../../people/desk/projects.ts";
import { requireEnvironment, requireText } from "../../people/desk/validate.ts";
import { listingsAcross } from "../../people/editing/across.ts";
import { type Item, type OpenSet, openItems, openSet, requireSet, requireSets } from "../../people/editing/open.ts";
import { isRemarked, remarked, remarksIn, requireRemarks } from "../../people/editing/remarks.ts";
import { revealOf } from "../../people/editing/reveal.ts";
import { type NewItem, type PlannedSet, zeroValues } from "../../people/editing/write.ts";
import { type PlannedItems, planItems } from "../../people/editing/write-project.ts";
import { isCanary, isMachinesOnly, newCoin } from "../../seal/canary.ts";
import { may } from "../../serve/access/rights.ts";
import { firstMark, isMarked } from "../../store/expiry.ts";
import { dueAtOf, type VariableEntry, variables } from "./entry.ts";
import { nameWarnings, unseenInValues, valueWarnings } from "./env-file.ts";

/** A remark is empty for none. If it is left out, an earlier one stays. */
export type NewVariable = Remarks & {
  readonly name: string;
  /** If left out, the stored one stays, and only remarks and the day change, which machines do not see. */
  readonly value?: string | Uint8Array | undefined;
  /** The day to rotate it by, or null for none. If left out, an earlier day stays unless the value changes. */
  readonly rotateBy?: string | null | undefined;
  /** Whether it is a canary. If left out, it stays what it is. */
  readonly canary?: boolean | undefined;
  /** Whether no person reads it from now on, which takes a value. If left out, it stays what it is. */
  readonly machinesOnly?: true | undefined;
};

export type WriteOptions = {
  /** Whether the environment's other variables are deleted. */
  readonly prune?: boolean;
  /** Whether what would stay as it is, except for its time, is not written. Of values that a person may not compare, all are. */
  readonly onlyChanges?: boolean | undefined;
  /** Variables that are deleted. */
  readonly remove?: readonly string[];
  /** What the reader of a text warns of, line by line. Default: what there is to say about each name and value. */
  readonly warnings?: readonly string[];
};

/** What a write did, or would do. Names are in byte order. */
export type VariablesWrite = {
  readonly added: readonly string[];
  /** How many of those that are written existed before. */
  readonly updated: number;
  /** Those of them that get another value, or another note. */
  readonly changed: readonly string[];
  /** Those that have this value, day of rotation and note already. */
  readonly same: readonly string[];
  readonly deleted: readonly string[];
  /** What a person must be warned of. */
  readonly warnings: readonly string[];
};

/** What is written in one environment. */
export type EnvironmentWrite = WriteOptions & { readonly entries: readonly NewVariable[] };

/**
 * Writes variables of one environment: all of them, or on any failure none.
 * @param found - the project, if it was found already
 */
export async function planVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  entries: readonly NewVariable[],
  options: WriteOptions = {},
  found?: PlannedProject,
): Promise<PlannedItems<VariablesWrite>> {
  const { would, apply, ...plan } = await planEach(
    admin,
    where,
    new Map([[environment, { ...options, entries }]]),
    found,
  );
  const only = (written: WrittenByEnvironment) => [...written.values()][0] as VariablesWrite;
  return { ...plan, would: only(would), apply: async () => only(await apply()) };
}

/** What was written, by environment. */
type WrittenByEnvironment = ReadonlyMap<Environment, VariablesWrite>;

/**
 * Writes several environments, each with changes of its own: all of them, or on any failure none.
 * @param changes - by environment; each gets a new version, even if its changes are empty
 * @param found - the project, if it was found already
 */
export async function planEach(
  admin: AdminContext,
  where: string,
  changes: ReadonlyMap<string, EnvironmentWrite>,
  found?: PlannedProject,
): Promise<PlannedItems<WrittenByEnvironment>> {
  const asked = new Map(
    [...changes].map(([place, { entries, ...options }]) => {
      return [requireEnvironment(place), { given: validateVariables(entries), options }] as const;
    }),
  );
  const isPruned = [...asked.values()].some(({ options }) => options.prune);
  const needed = isPruned ? (["write", "see"] as const) : "write";
  const project = found ?? (await findToChange(admin, where, needed, [...asked.keys()]));
  const sets = await requireSets(admin, project, variables, [...asked.keys()]);
  const plans = [...asked].map(([environment, { given, options }], at) => {
    const before = openItems({ project, descriptor: variables, environment }, sets[at] as (typeof sets)[number]);
    return planWrite(admin, before, given, options, project.now, mayCompare(admin, placeOf(project), environment));
  });
  return planItems(admin, project, variables, {
    changes: new Map(
      plans.flatMap(({ before, changes, same }) => {
        return changes.size === 0 && same.length > 0 ? [] : [[before, changes] as const];
      }),
    ),
    outcomeOf: (writes: Writes) =>
      new Map(plans.map((plan) => [plan.before.environment, writtenBy(where, plan, writes)])),
    looked: plans.map(({ before, changes }) => ({ set: before, names: [...changes.keys()] })),
  });
}

type Writes = ReadonlyMap<Environment, PlannedSet<VariableEntry>>;

/** What a write did, or would do. */
function writtenBy(where: string, { before: { environment }, changed, same, warnings }: WritePlan, writes: Writes) {
  const write = writes.get(environment) ?? { added: [], changed: [], deleted: [], total: 0, replaced: [] };
  const { added, changed: updated, deleted } = write;
  const names = { added: added.toSorted(compareBytes), updated: updated.length, changed, same, deleted };
  return { ...names, warnings: [...warnings, ...variables.warningsOf(where, environment, write)] };
}

/** What a write of several environments warns of, each once. */
export function warningsIn(written: ReadonlyMap<Environment, VariablesWrite>): readonly string[] {
  return [...new Set([...written.values()].flatMap(({ warnings }) => warnings))];
}

/** A write that is checked and not done. `changed`: those that get another value, or another note. */
type WritePlan = ReturnType<typeof planWrite>;

function planWrite(
  { rights, systemKeys: { listing } }: AdminContext,
  before: OpenSet<VariableEntry>,
  given: ReadonlyMap<string, CheckedVariable>,
  { prune = false, onlyChanges = false, remove = [], warnings }: WriteOptions,
  now: number,
  isCompared: boolean,
) {
  const changes = new Map<string, NewItem<VariableEntry> | null>();
  const maySee = may(rights, "see", placeOf(before.project), before.environment);
  const changed: string[] = [];
  const same: string[] = [];
  const canaries: string[] = [];
  for (const [key, { value, rotateBy: mark, canary, machinesOnly, ...remarks }] of given) {
    const old = before.items.get(key);
    if (value === undefined) {
      // Earlier versions, which a person may read, would have the same value.
      if (machinesOnly) throw new Refused("invalid", `${key} needs a new value to be for machines only.`);
      if (old === undefined) throw new Refused("not_found", `${key} is not in ${before.environment}: give it a value.`);
      const rotateBy = mark === undefined ? old.entry.rotateBy : (mark ?? undefined);
      changes.set(key, { ...old, entry: { ...old.entry, rotateBy, ...remarked(remarks, old.entry) } });
      changed.push(key);
      continue;
    }
    // Somebody who may not see values, or notes, must not learn whether a guess is the stored one.
    const isRead = isCompared && !machinesOnly && old?.isHidden === false;
    const isSame = isRead && storedValue(old) === value;
    const isNoted = isRemarked(remarks, maySee ? (old?.entry ?? {}) : undefined);
    if (old !== undefined && (!isSame || isNoted)) changed.push(key);
    const rotateBy = mark === undefined && isSame ? old.entry.rotateBy : mark;
    const was = isCanary(listing, old?.entry ?? {});
    const isEqual = isSame && !isNoted && (rotateBy ?? undefined) === old.entry.rotateBy && (canary ?? was) === was;
    if (isEqual) same.push(key);
    if (isEqual && onlyChanges) continue;
    if (was && canary === undefined) canaries.push(key);
    const coin = newCoin(listing, canary ?? was, machinesOnly ?? old?.isHidden);
    const said = { ...(rotateBy && { rotateBy }), ...remarked(remarks, old?.entry) };
    changes.set(key, variableItem({ key, updatedAt: now, ...said, coin }, value));
  }
  const unwanted = new Set(prune ? [...before.items.keys()].filter((name) => !given.has(name)) : remove);
  const both = [...unwanted].find((name) => given.has(name));
  if (both !== undefined) throw new Refused("invalid", `${both} is to be written and deleted at once.`);
  const pruned = [...before.items.keys()].filter((name) => unwanted.has(name));
  for (const name of pruned) changes.set(name, null);
  const entries = [...given.values()];
  const about = warnings ? [...warnings, ...unseenInValues(entries.filter(hasValue))] : entries.flatMap(warningsAbout);
  const stays = "is a canary and stays one. To make it an ordinary variable, delete it first.";
  const stay = maySee ? canaries.map((name) => `${name} ${stays}`) : [];
  const named = { changed: changed.sort(compareBytes), same: same.sort(compareBytes) };
  return { before, changes, ...named, warnings: [...about, ...stay] };
}

function warningsAbout({ name, value }: CheckedVariable): string[] {
  return value === undefined ? [] : [...nameSentences(name), ...valueWarnings(name, Buffer.from(value))];
}

function nameSentences(name: string): string[] {
  return nameWarnings(name).map((warning) => `${warning}.`);
}

/** Where variables are copied from, or to. */
export type Place = { readonly project: string; readonly environment: string };

/** What a copy did, or would do. Names are in byte order. */
export type VariablesCopy = Omit<VariablesWrite, "updated" | "deleted">;

/**
 * A copy of variables to another environment or project with their days of rotation and, as far as the person may see
 * them, their notes: all of them, or on any failure none. That their values left the source is on record there.
 * @param names - which ones; all by default
 */
export async function planCopy(admin: AdminContext, from: Place, to: Place, names?: readonly string[]) {
  const [source, target] = [requireEnvironment(from.environment), requireEnvironment(to.environment)];
  const origin = await findProject(admin, from.project, "reveal", [source]);
  const project = await findToChange(admin, to.project, ["reveal", "write"], [target]);
  requireFreshToCompare(admin, placeOf(origin), [source]);
  requireFreshToCompare(admin, placeOf(project), [target]);
  const isWithin = project.id === origin.id;
  if (isWithin && source === target) {
    const words = "The source and the target are the same environment: name another with --to-env or --to.";
    throw new Refused("invalid", words);
  }
  const opened = await openSet(admin, { project: origin, descriptor: variables, environment: source });
  const maySee = may(admin.rights, "see", placeOf(origin), source);
  const inSight = maySee ? opened.items.keys() : [];
  const chosen = chosenOf(opened, from, names, inSight);
  requireKeysToCopy(admin, origin, source, chosen);
  const given = validateVariables(chosen.map((item) => copied(admin, item, maySee)));
  const before = await openSet(admin, { project, descriptor: variables, environment: target });
  const write = planWrite(admin, before, given, { onlyChanges: true }, project.now, true);
  const isEqual = (name: string) => {
    const old = before.items.get(name)?.entry;
    const day = given.get(name)?.rotateBy;
    return old && (day === undefined || day === old.rotateBy) && !write.changed.includes(name);
  };
  // Which of the target's are canaries is for those who may see them.
  const equal = [...given.keys()].filter(isEqual).sort(compareBytes);
  const shown = may(admin.rights, "see", placeOf(project), target) ? write.same : equal;
  const { changes } = write;
  const writes = chosen.filter(({ entry }) => changes.has(entry.key));
  const isNothing = writes.length === 0;
  // About their values there is nothing new to say.
  const copying = { ...write, warnings: writes.flatMap(({ entry }) => nameSentences(entry.key)) };
  const planned = planItems(
    admin,
    project,
    variables,
    {
      changes: new Map(isNothing ? [] : [[before, changes]]),
      outcomeOf: (writes: Writes) => {
        const { added, changed, warnings } = writtenBy(to.project, copying, writes);
        return { added, changed, same: shown, warnings };
      },
      more: isNothing ? [] : [revealOf(admin, opened, writes)],
      looked: [
        // Both may be of one environment.
        { set: opened, ...(names && { names }), what: isWithin ? `version.${source}` : "source.version" },
        { set: before, names: [...changes.keys()] },
      ],
    },
    { permits: [origin.permit] },
  );
  if (!admin.isWithin) zeroValues(opened);
  return isWithin ? planned : { ...planned, seen: { ...planned.seen, source: origin.id } };
}

/**
 * A key where it is copied to reads a value that is for machines only. So this takes the right to make a key for it
 * where it is.
 */
function requireKeysToCopy(
  admin: AdminContext,
  origin: FoundProject,
  source: Environment,
  chosen: readonly Item<VariableEntry>[],
): void {
  const hidden = chosen.flatMap(({ entry, isHidden }) => (isHidden ? [entry.key] : []));
  if (hidden.length === 0 || may(admin.rights, "keys", placeOf(origin), source)) return;
  const words = `These are for machines only: ${hidden.join(", ")}. To copy them takes the right \`keys\` in ${source}`;
  throw new Refused("forbidden", `${words}. Nothing was copied.`);
}

/** The variables to copy. @throws Refused `not_found` that names what is missing, and the nearest ones in sight */
function chosenOf(
  { items, environment }: OpenSet<VariableEntry>,
  from: Place,
  names: readonly string[] | undefined,
  seen: Iterable<string>,
) {
  const chosen = [...items.values()].filter(({ entry }) => names === undefined || names.includes(entry.key));
  const missing = (names ?? []).filter((name) => !items.has(name));
  if (missing.length > 0 || chosen.length === 0) {
    const what = missing.length > 0 ? `These are not in` : "There is nothing to copy in";
    const list = missing.length > 0 ? `: ${missing.join(", ")}` : "";
    throw new Refused("not_found", `${what} ${from.project}, ${environment}${list}.${didYouMean(missing, seen)}`);
  }
  return chosen;
}

/** A variable as a copy writes it: a copy of a canary is one, and a canary stays one whatever is copied over it. */
function copied({ systemKeys }: AdminContext, item: Item<VariableEntry>, maySee: boolean): NewVariable {
  const { key: name, rotateBy } = item.entry;
  const canary = isCanary(systemKeys.listing, item.entry) || undefined;
  const machinesOnly = item.isHidden || undefined;
  const value = valueIn(String(Buffer.from(item.value?.unseen() ?? [])));
  return { name, value, canary, machinesOnly, ...(rotateBy && { rotateBy }), ...(maySee && remarksIn(item.entry)) };
}

/** The value of a variable, for a person. @throws Refused `forbidden` if it is for machines only */
export function storedValue({ value }: Item<VariableEntry>): string {
  return valueIn(value?.shown() ?? "");
}

/** A value as {@link variableItem} wrote it. */
function valueIn(text: string): string {
  return (JSON.parse(text) as { readonly value: string }).value;
}

/** A variable as a set holds it. */
export function variableItem(entry: VariableEntry & { readonly coin: string }, value: string) {
  const { key, updatedAt } = entry;
  return { entry, value: Buffer.from(JSON.stringify({ key, value, updatedAt })) };
}

/** Names, times and notes in an environment, in byte order. */
export async function listVariables(admin: AdminContext, where: string, environment: string) {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where, "see", [target]);
  const { entries } = await requireSet(admin, { project, descriptor: variables, environment: target });
  return entries.map(({ key: name, updatedAt, rotateBy, coin, ...entry }) => {
    const canary = isCanary(admin.systemKeys.listing, { coin });
    const machinesOnly = isMachinesOnly(admin.systemKeys.listing, { coin });
    const marks = { ...(canary && { canary }), ...(machinesOnly && { machinesOnly }) };
    return { name, updatedAt, ...(rotateBy && { rotateBy }), ...marks, ...remarksIn(entry) };
  });
}

/** A variable that is marked for rotation. */
type DueVariable = {
  /** Slugs. */
  readonly organization: string;
  readonly project: string;
  readonly environment: Environment;
  readonly name: string;
  readonly rotateBy: string;
  /** The end of that day, in epoch milliseconds. */
  readonly dueAt: number;
  readonly status: "due" | "overdue";
};

/** The variables in sight that are overdue or due within this time. @throws Refused `conflict` if a set is damaged */
export async function listDueVariables(admin: AdminContext, withinMs: number): Promise<readonly DueVariable[]> {
  const { due, damage } = await findDueVariables(admin, withinMs);
  if (damage[0] !== undefined) throw new Refused("conflict", damage[0]);
  const [all] = due.with("never");
  return all;
}

/**
 * The same, the first ones first, and sentences for damaged sets: the first of them and how many more.
 * @param projectsMax - looks at this many projects at most: those whose days come first
 */
export async function findDueVariables(admin: AdminContext, withinMs: number, projectsMax = Number.POSITIVE_INFINITY) {
  const { sets: s, projects: p } = admin.database.tables;
  const rows = await admin.database.db
    .select({
      id: p.id,
      organizationId: p.organizationId,
      environment: s.environment,
      first: firstMark(admin.database, s.listing),
      bytes: sql`octet_length(${s.listing})`.mapWith(Number),
    })
    .from(s)
    .innerJoin(p, eq(p.id, s.projectId))
    .where(isMarked(admin.database));
  const marked = [...Map.groupBy(rows, ({ id }) => id)].flatMap(([id, sets]) => {
    const permit = Permit.find(admin, ["see"], { organizationId: sets[0]?.organizationId ?? "", projectId: id });
    const seen = sets.filter(({ environment }) => permit?.environments.includes(environment));
    if (permit === undefined || seen.length === 0) return [];
    const first = Math.min(...seen.map(({ first }) => (first && dueAtOf(first)) || 0));
    return [{ id, permit, first, bytes: seen.reduce((sum, { bytes }) => sum + bytes, 0) }];
  });
  marked.sort((a, b) => a.first - b.first);
  const now = admin.now();
  const found: DueVariable[] = [];
  const damages: string[] = [];
  for await (const { project, listings, damage } of listingsAcross(admin, marked.slice(0, projectsMax), [variables])) {
    damages.push(...damage);
    for (const { environment, text } of listings) {
      const place = { organization: project.organization.slug, project: project.slug, environment };
      for (const { key: name, rotateBy } of JSON.parse(text) as VariableEntry[]) {
        if (rotateBy === undefined) continue;
        const dueAt = dueAtOf(rotateBy);
        const status = dueAt <= now ? "overdue" : "due";
        if (dueAt <= now + withinMs) found.push({ ...place, name, rotateBy, dueAt, status });
      }
    }
  }
  found.sort((a, b) => a.dueAt - b.dueAt);
  const isWhole = marked.slice(projectsMax).every(({ first }) => first > now + withinMs);
  return { due: new Cut(found, isWhole), damage: firstLines(damages) };
}

/** A variable whose name and value may be stored. */
type CheckedVariable = NewVariable & { readonly value: string | undefined };

function hasValue(one: CheckedVariable): one is CheckedVariable & { readonly value: string } {
  return one.value !== undefined;
}

/** Values, marks and notes by name, all checked before anything is written. */
export function validateVariables(entries: readonly NewVariable[]) {
  const values = new Map<string, CheckedVariable>();
  for (const entry of entries) {
    const { name, value } = entry;
    if (!isVariableName(name)) {
      const words = `${JSON.stringify(name)} is not a variable name: a letter or _ first, then letters, digits and _, at most 255, and neither _ nor __proto__.`;
      throw new Refused("invalid", words);
    }
    if (values.has(name)) throw new Refused("invalid", `${name} is given twice.`);
    const text = value === undefined ? undefined : requireText(`The value of ${name}`, value);
    const bytes = Buffer.byteLength(text ?? "");
    if (bytes > variableValueBytesMax) {
      const words = `The value of ${name} has ${bytes} bytes; at most ${variableValueBytesMax} are allowed.`;
      throw new Refused("bound", words);
    }
    values.set(name, { ...entry, value: text, ...requireRemarks(name, entry) });
  }
  return values;
}
