import { and, asc, eq, isNotNull, or } from "drizzle-orm";
import { compareBytes, type Environment, type Remarks } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { inWords } from "../../core/words/ago.ts";
import { listed } from "../../core/words/text.ts";
import { nameInPersonText } from "../../record/entry.ts";
import { orUndefined } from "../../seal/envelope.ts";
import { everyRight, may, type Right } from "../../serve/access/rights.ts";
import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";
import { VerifiedSet } from "../../serve/sets/verified-set.ts";
import type { AdminContext } from "../desk/context.ts";
import { nothingWritten } from "../desk/plan.ts";
import { type FoundProject, placeOf, projectPath, uses } from "../desk/projects.ts";
import { remarked } from "./remarks.ts";
import { StoredValue } from "./stored-value.ts";
import { isOfSet, type SetName, writtenSince } from "./version-records.ts";

/*
 * People's way to the sets: found, verified and opened. A set that is missing or does not verify is never treated as an
 * empty one.
 */

/** One set. */
export type SetOf<E extends Entry = Entry> = SetName & {
  readonly project: FoundProject;
  readonly descriptor: KindDescriptor<E>;
};

/** An item as it is stored. The value is null for files, whose contents are stored separately. */
export type Item<E extends Entry = Entry> = {
  readonly entry: E;
  readonly value: StoredValue | null;
  /** Whether no person may read its value. */
  readonly isHidden: boolean;
};

/** An opened set: its items by name. */
export type OpenSet<E extends Entry = Entry> = SetOf<E> & {
  readonly version: number;
  readonly items: ReadonlyMap<string, Item<E>>;
  /** Whether an entry that is to be written has the mark under which no person reads its value. */
  readonly isMachinesOnly: (entry: Entry) => boolean;
};

/** The current version of a set, verified. @throws Refused `conflict` if it is missing or was changed by other means */
export async function requireSet<E extends Entry>(admin: AdminContext, of: SetOf<E>): Promise<VerifiedSet<E>> {
  const set = await findSet(admin, of);
  if (set === undefined) throw unusable(of, wereChanged);
  return set;
}

/**
 * The verified sets of a kind, by default in every environment of the project's permit.
 * @throws Refused `conflict` as {@link requireSet}
 */
export async function requireSets<E extends Entry>(
  admin: AdminContext,
  project: SetOf<E>["project"],
  descriptor: KindDescriptor<E>,
  among: readonly Environment[] = project.permit.environments,
): Promise<readonly VerifiedSet<E>[]> {
  const sets = among.map((environment) => ({ project, descriptor, environment }));
  const rows = await findRows(admin, sets);
  return sets.map((of) => {
    const row = rows.find(({ set }) => set.environment === of.environment);
    const set = row && verify(admin, of, row);
    if (set === undefined) throw unusable(of, wereChanged);
    return set;
  });
}

/** The environments to show: those that the project uses, and others that have items. */
export function shownEnvironments(
  project: FoundProject,
  sets: readonly Pick<VerifiedSet, "environment" | "entries">[],
): Environment[] {
  const shown = sets.filter(({ environment, entries }) => uses(project, environment) || entries.length > 0);
  return shown.map(({ environment }) => environment);
}

/** The current version of a set, or a kept one; undefined if it is missing or does not verify. */
export async function findSet<E extends Entry>(admin: AdminContext, of: SetOf<E>, version?: number) {
  const row = await findRow(admin, of, version);
  return row && verify(admin, of, row);
}

/** The current version of a set, opened for a write. @throws Refused `conflict` if it does not verify or open */
export async function openSet<E extends Entry>(admin: AdminContext, of: SetOf<E>): Promise<OpenSet<E>> {
  return openItems(of, await requireSet(admin, of));
}

/**
 * Checks before a write of a set that is not the one somebody saw: nobody may have written these items since.
 * @param shown - the version that they saw
 * @param names - of the items that are written; the whole set if it is left out
 * @param what - what its version is called in `seen`
 * @throws Refused `conflict` if somebody wrote it since
 */
export async function requireUnwritten(
  admin: AdminContext,
  { version, ...of }: SetOf & { readonly version: number },
  shown: number,
  names: Iterable<string> | undefined,
  what: string,
): Promise<void> {
  const unlessSeen = { [what]: version };
  // Somebody who may not see the names must not learn which of them are written.
  const isTold = may(admin.rights, "see", placeOf(of.project), of.environment);
  const since = names && isTold ? await writtenSince(admin, { ...of, version }, shown) : undefined;
  const where = setName(of);
  if (names === undefined || since === undefined) {
    const words = `${where.replace("the", "The")} are at version ${version} now, not ${shown}.`;
    throw new Refused("conflict", `${words}${nothingWritten}them again.`, names && { unlessSeen });
  }
  const written = new Set(names);
  const now = admin.now();
  const newest = new Map<string, string>();
  for (const { by, at, version, ...write } of since) {
    for (const [did, touched] of Object.entries(write)) {
      for (const name of touched.filter((one) => written.has(one) && !newest.has(one))) {
        newest.set(
          name,
          `${nameInPersonText(by)} ${did} ${name} ${inWords(at - now)}, in version ${version} of ${where}`,
        );
      }
    }
  }
  if (newest.size === 0) return;
  const words = `${listed([...newest.values()])}.${nothingWritten}it again.`;
  throw new Refused("conflict", words, { unlessSeen });
}

/**
 * A kept version of a set, opened.
 * @param hidden - names of items that no person may read in it, whatever it says of them
 * @throws Refused `not_found` if it is not kept; `conflict` if it was changed by other means than Keyhole
 */
export async function openVersion<E extends Entry>(
  admin: AdminContext,
  of: SetOf<E>,
  version: number,
  hidden?: ReadonlySet<string>,
): Promise<OpenSet<E>> {
  const row = await findRow(admin, of, version);
  if (row === undefined || row.set.listing === null) throw notKept(of, version);
  const set = verify(admin, of, row);
  if (set === undefined) throw damagedVersion(of, version);
  return openItems(of, set, { isKept: true, hidden });
}

/** The refusal of what needs a version that is not kept. */
export function notKept(of: SetOf, version: number): Refused {
  const words = `Version ${version} of ${setName(of)} is not kept: \`keyhole history\` lists those that are.`;
  return new Refused("not_found", words);
}

/**
 * An opened version of a set, kept or current; without a number, the current one. What is for machines only now was
 * perhaps the same before it got the mark, so no person reads it in a kept version either.
 * @throws Refused as {@link openVersion}
 */
export async function openSetAt<E extends Entry>(admin: AdminContext, of: SetOf<E>, version: number | undefined) {
  const current = await openSet(admin, of);
  if (version === undefined || version === current.version) return current;
  const hidden = [...current.items].flatMap(([name, { isHidden }]) => (isHidden ? [name] : []));
  return openVersion(admin, of, version, new Set(hidden));
}

/** The environment of the project's permit in which an item was written last; undefined if none has it. */
export async function lastChangedIn<E extends Entry>(
  admin: AdminContext,
  { project, descriptor }: Pick<SetOf<E>, "project" | "descriptor">,
  name: string,
): Promise<Environment | undefined> {
  const [last] = (await requireSets(admin, project, descriptor))
    .flatMap(({ environment, entries }) => entries.map((entry) => ({ environment, entry })))
    .filter(({ entry }) => descriptor.nameOf(entry) === name)
    .sort((a, b) => b.entry.updatedAt - a.entry.updatedAt);
  return last?.environment;
}

/** The kept versions of a set, oldest first, one at a time because each may have 16 MiB; undefined if damaged. */
export async function* keptVersions<E extends Entry>(
  admin: AdminContext,
  of: SetOf<E>,
): AsyncGenerator<readonly [version: number, set: VerifiedSet<E> | undefined]> {
  const { setVersions: v } = admin.database.tables;
  const rows = await admin.database.db
    .select({ version: v.version })
    .from(v)
    .where(and(isOfSet(v, of), isNotNull(v.listing)))
    .orderBy(asc(v.version));
  for (const { version } of rows) yield [version, await findSet(admin, of, version)];
}

/**
 * Opens a verified set: decrypts its values, if its kind has them there.
 * @param options - `isKept`: whether it is a kept version; `hidden`: names of items that no person may read, besides
 *   those with the mark; `withMachinesOnly`: whether those with the mark may be read, too
 * @throws Refused `conflict` if it does not open
 */
export function openItems<E extends Entry>(
  of: SetOf<E>,
  set: VerifiedSet<E>,
  { isKept = false, hidden, withMachinesOnly = false }: OpenOptions = {},
): OpenSet<E> {
  const { version } = set.stored;
  requirePermit(of, ["reveal", "write"]);
  const values = of.descriptor.hasValues ? orUndefined(() => set.open()) : undefined;
  if (of.descriptor.hasValues && values === undefined)
    throw isKept ? damagedVersion(of, version) : unusable(of, "do not open");
  const isMachinesOnly = (entry: Entry) => set.isMachinesOnly(entry);
  const items = set.entries.map((entry, index) => {
    const name = of.descriptor.nameOf(entry);
    const isHidden = !withMachinesOnly && (isMachinesOnly(entry) || hidden?.has(name) === true);
    const value = values && new StoredValue(values.item(index), isHidden ? name : undefined);
    return [name, { entry, value: value ?? null, isHidden }] as const;
  });
  return { ...of, version, items: new Map(items), isMachinesOnly };
}

type OpenOptions = {
  readonly isKept?: boolean;
  readonly hidden?: ReadonlySet<string> | undefined;
  readonly withMachinesOnly?: boolean | undefined;
};

/**
 * The items of several sets, each once, in byte order of name: with its environments, its last change, and of each remark
 * the first one that there is. `machinesOnly`: no person reads its value in one of them.
 */
export function itemsOf<E extends Entry>({ identityOf, nameOf }: KindDescriptor<E>, sets: readonly VerifiedSet<E>[]) {
  const found = new Map<
    string,
    Remarks & { entry: E; environments: Environment[]; updatedAt: number; machinesOnly?: true }
  >();
  for (const set of sets) {
    const { environment } = set;
    for (const entry of set.entries) {
      const item = found.get(identityOf(entry)) ?? { entry, environments: [], updatedAt: 0 };
      item.environments.push(environment);
      item.updatedAt = Math.max(item.updatedAt, entry.updatedAt);
      Object.assign(item, remarked(item, entry), set.isMachinesOnly(entry) && { machinesOnly: true });
      found.set(identityOf(entry), item);
    }
  }
  return [...found.values()].sort((a, b) => compareBytes(nameOf(a.entry), nameOf(b.entry)));
}

/** The refusal if a kept version was changed by other means than Keyhole. */
export function damagedVersion(of: SetOf, version: number): Refused {
  const arguments_ = `${projectPath(of.project)} ${of.environment} ${of.descriptor.kind}`;
  const words = `Version ${version} of ${setName(of)} was changed by other means than Keyhole. Nothing was written. \`keyhole history purge ${arguments_}\` removes the kept versions.`;
  return new Refused("conflict", words);
}

/** A sentence about a set that is missing or does not verify. */
export function damageOf(of: SetOf): string {
  return `${setName(of).replace("the", "The")} ${wereChanged}.`;
}

const wereChanged = "were deleted or changed by other means than Keyhole";

function unusable(of: SetOf, why: string): Refused {
  const name = setName(of).replace("the", "The");
  const words = `${name} ${why}. Nothing was written. Restore a backup, or delete the project and create it again.`;
  return new Refused("conflict", words);
}

function setName({ project, descriptor, environment }: SetOf): string {
  return `the ${descriptor.kind} of ${projectPath(project)} in ${environment}`;
}

/** @throws Error if the permit does not cover this: a defect of this program */
function requirePermit({ project, environment }: SetOf, needed: readonly Right[]): void {
  if (needed.some((right) => project.permit.allows(right, environment))) return;
  throw new Error(`a set was opened where nobody asked for the right to ${needed.join(" or ")}`);
}

async function findRow(admin: AdminContext, of: SetOf, version?: number) {
  const [row] = await findRows(admin, [of], version);
  return row;
}

/** The rows of sets of one kind of a project. */
async function findRows(admin: AdminContext, of: readonly SetOf[], version?: number) {
  for (const one of of) requirePermit(one, everyRight);
  const { sets, setVersions, dataKeys: d } = admin.database.tables;
  const s = version === undefined ? sets : setVersions;
  const ofVersion = version === undefined ? undefined : eq(s.version, version);
  return admin.database.db
    .select({ set: s, dataKey: { rootId: d.rootId, wrapped: d.wrapped } })
    .from(s)
    .leftJoin(d, and(eq(d.projectId, s.projectId), eq(d.generation, s.generation)))
    .where(and(or(...of.map((one) => isOfSet(s, one))), ofVersion));
}

function verify<E extends Entry>(
  { keyring, systemKeys }: AdminContext,
  { project, descriptor }: SetOf<E>,
  { set, dataKey }: Awaited<ReturnType<typeof findRows>>[number],
): VerifiedSet<E> | undefined {
  const owner = { id: project.id, organizationId: project.organization.id, slug: project.slug };
  const stored = {
    ...set,
    rowVersion: "",
    generation: set.generation ?? 0,
    listingBytes: set.listing?.length ?? 0,
    sealedBytes: set.sealed?.length ?? null,
    rootId: dataKey?.rootId ?? null,
    wrapped: dataKey?.wrapped ?? null,
  };
  return orUndefined(() => new VerifiedSet({ keyring, listingKey: systemKeys.listing }, owner, descriptor, stored));
}
