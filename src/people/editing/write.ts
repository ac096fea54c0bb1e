import { and, eq, isNull, sql } from "drizzle-orm";
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { currentRootId } from "../../installation/root-keys.ts";
import type { NamesWritten } from "../../record/entry.ts";
import { type DataKey, newKey } from "../../seal/keyring.ts";
import { sealSet } from "../../seal/new-set.ts";
import {
  countsColumnOf,
  type Entry,
  type KindDescriptor,
  setBytesMax,
  setItemsMax,
  type Written,
} from "../../serve/sets/kind.ts";
import type { VerifiedSet } from "../../serve/sets/verified-set.ts";
import type { AdminContext } from "../desk/context.ts";
import { type FoundProject, type LockedProject, projectPath, uses } from "../desk/projects.ts";
import { arrayOf } from "../desk/validate.ts";
import { countsOf } from "./counts.ts";
import { pruneVersions } from "./kept-versions.ts";
import { type OpenSet, openItems, type SetOf } from "./open.ts";
import { StoredValue } from "./stored-value.ts";
import { insertRecord, isOfSet, nextVersion, resealedRecord } from "./version-records.ts";

/*
 * The one writer of sets. With the project locked, a write opens the current version once, decides about its changes,
 * and seals the next version here. The version that was replaced is kept as it was sealed.
 */

/** An item to write. The writer adds the version, unless it is the item that is there with the very same value. */
export type NewItem<E extends Entry> = {
  readonly entry: Omit<E, "version">;
  readonly value: StoredValue | Uint8Array | null;
};

/** What a write does to a set, by name; null deletes. */
export type SetChanges<E extends Entry = Entry> = ReadonlyMap<string, NewItem<E> | null>;

/** What a write does to a set. */
export type PlannedSet<E extends Entry = Entry> = NamesWritten &
  Written<E> & {
    readonly version: number;
    /**
     * Whether an undo can put its names back. It cannot if the version before is gone, if a value that people could read
     * became one for machines only, or if items were deleted where the project adds none.
     */
    readonly isUndoable: boolean;
  };

/** What a write did to a set. */
export type SetWrite<E extends Entry = Entry> = PlannedSet<E> & {
  /** Whether kept versions were removed. */
  readonly pruned: boolean;
};

/** What a write did, by environment. */
export type SetWrites<E extends Entry = Entry> = ReadonlyMap<Environment, SetWrite<E>>;

/** Makes a project's first data key and an empty set for each kind and environment. */
export async function createSets(
  admin: AdminContext,
  project: FoundProject,
  kinds: readonly KindDescriptor[],
  now: number,
): Promise<void> {
  const { dataKeys, sets } = admin.database.tables;
  const wrapped = admin.keyring.wrapDataKey(project.id, 1, newKey(), await currentRootId(admin.database));
  const { db } = admin.database;
  await db.insert(dataKeys).values({ projectId: project.id, generation: 1, ...wrapped, createdAt: now });
  const dataKey = admin.keyring.dataKey(project.id, 1, wrapped.rootId, wrapped.wrapped);
  const rows = kinds.flatMap((descriptor) =>
    environments.map((environment) => {
      const of = { project, descriptor, environment };
      return sealedRow(admin, of, 1, layOut(of, []), dataKey);
    }),
  );
  await db.insert(sets).values(rows);
  const nothing = { added: [], changed: [], deleted: [] };
  for (const row of rows) await insertRecord(admin, row, now, nothing);
}

/**
 * Finds out what {@link writeSets} would do. It seals and stores nothing.
 * @param changes - by opened set
 * @throws what refuses the write
 */
export function planSets<E extends Entry>(project: FoundProject, changes: ReadonlyMap<OpenSet<E>, SetChanges<E>>) {
  return new Map(
    [...changes].map(([before, change]) => {
      const { layout: _, ...planned } = planSet(project, before, change, before.version + 1);
      return [before.environment, planned as PlannedSet<E>];
    }),
  );
}

/**
 * Writes sets of one kind, and updates the project's counts and times.
 * @param changes - by opened set, whose values are zeroed afterwards
 */
export async function writeSets<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  changes: ReadonlyMap<OpenSet<E>, SetChanges<E>>,
): Promise<SetWrites<E>> {
  const writes = new Map<Environment, SetWrite<E>>();
  for (const [before, change] of changes) {
    writes.set(before.environment, (await writeSet(admin, project, before, change)) as SetWrite<E>);
  }
  await updateCounts(admin, project, descriptor, [...writes.keys()]);
  return writes;
}

async function writeSet(
  admin: AdminContext,
  project: LockedProject,
  before: OpenSet,
  changes: SetChanges,
): Promise<SetWrite> {
  const version = await nextVersion(admin, before, before.version);
  const { layout, ...planned } = planSet(project, before, changes, version);
  const { added, changed, deleted } = planned;
  const pruned = await storeSet(admin, project, before, version, layout, { added, changed, deleted });
  zeroValues(before);
  return { ...planned, pruned };
}

/**
 * @throws Refused `invalid` if the project does not use the environment, `bound` if it would hold too much, `conflict`
 *   for an item without the mark over one that is for machines only
 */
function planSet(
  project: FoundProject,
  before: OpenSet,
  changes: SetChanges,
  version: number,
): PlannedSet & { readonly layout: Layout } {
  const { hasValues } = before.descriptor;
  const items = new Map<string, NewItem<Entry>>(before.items);
  const [added, changed, deleted]: [string[], string[], string[]] = [[], [], []];
  const replaced: [Entry, Entry][] = [];
  let isUndoable = changes.size > 0 && version === before.version + 1;
  for (const [name, item] of changes) {
    const { entry: old, value, isHidden } = before.items.get(name) ?? {};
    if (isHidden && item !== null && !before.isMachinesOnly(item.entry)) {
      const words = `${JSON.stringify(name)} is for machines only, and its earlier value was not: delete it first.`;
      throw new Refused("conflict", `${words} Nothing was written.`);
    }
    const isWritten = hasValues && item?.value !== value;
    if (item === null) items.delete(name);
    else items.set(name, { ...item, entry: { ...item.entry, ...(isWritten && { version }) } });
    if (old !== undefined) (item === null ? deleted : changed).push(name);
    else if (item !== null) added.push(name);
    if (old === undefined || item === null) continue;
    replaced.push([old, item.entry]);
    // Only a deletion takes the mark away.
    if (!before.isMachinesOnly(old) && before.isMachinesOnly(item.entry)) isUndoable = false;
  }
  if (added.length > 0) requireUse(project, before.environment);
  // Its undo would add an item there.
  if (deleted.length > 0 && !uses(project, before.environment)) isUndoable = false;
  const layout = layOut(before, [...items.values()]);
  return { added, changed, deleted, version, total: items.size, replaced, isUndoable, layout };
}

export function zeroValues({ items }: Pick<OpenSet, "items">): void {
  for (const { value } of items.values()) value?.zero();
}

/** A new item in an environment that the project does not use is most likely a mistake. @throws Refused `invalid` */
function requireUse(project: FoundProject, environment: Environment): void {
  if (uses(project, environment)) return;
  const command = `keyhole project environments ${projectPath(project)} --env ${environments.filter((one) => one === environment || uses(project, one)).join(",")}`;
  throw new Refused("invalid", `${projectPath(project)} does not use ${environment}. To use it, run \`${command}\`.`);
}

/**
 * Seals a version again as it is, under the project's newest data key and its slug in `project`. It keeps its number,
 * because nothing in it changed.
 * @param isKept - whether it is a kept version, and not the current one
 * @throws Refused `conflict` if it does not open
 */
export async function resealSet<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  before: VerifiedSet<E>,
  isKept = false,
): Promise<void> {
  const { sets: s, setVersions: v } = admin.database.tables;
  const { environment, stored } = before;
  const { version } = stored;
  const of = { project, descriptor, environment };
  const opened = openItems({ ...of, project: { ...project, slug: before.project.slug } }, before, { isKept });
  const row = sealedRow(admin, of, version, layOut(of, [...opened.items.values()]), project.dataKey);
  const record = await resealedRecord(admin, of, stored, row.listingMac);
  const ofVersion = and(isOfSet(v, of), eq(v.version, version));
  if (isKept) {
    const resealed = { ...row, ...record };
    await admin.database.db.update(v).set(resealed).where(ofVersion);
  } else {
    await admin.database.db.update(s).set(row).where(isOfSet(s, of));
    // If SQL put the set back, the record belongs to the kept version, which is resealed by itself.
    const isUnkept = and(ofVersion, isNull(v.listing));
    if (record !== undefined) await admin.database.db.update(v).set(record).where(isUnkept);
  }
  zeroValues(opened);
}

/**
 * Stores the next version, and keeps the one before it.
 * @returns whether older versions were removed
 */
async function storeSet(
  admin: AdminContext,
  project: LockedProject,
  of: SetOf,
  version: number,
  layout: Layout,
  names: NamesWritten,
): Promise<boolean> {
  const { now } = project;
  const { db } = admin.database;
  const { sets: s, setVersions: v } = admin.database.tables;
  const row = sealedRow(admin, of, version, layout, project.dataKey);
  const [generation, listingMac] = [sql`${s.generation}`, sql`${s.listingMac}`];
  await db
    .update(v)
    .set({ generation, listingMac, listing: sql`${s.listing}`, sealed: sql`${s.sealed}` })
    .from(s)
    .where(and(isOfSet(s, of), isOfSet(v, of), eq(v.version, s.version)));
  await db.update(s).set(row).where(isOfSet(s, of));
  await insertRecord(admin, row, now, names);
  const current = { version, entries: layout.items.map(({ entry }) => entry) };
  return pruneVersions({ admin, set: of, current }, now);
}

/** What a set holds, in the order in which it is sealed. */
type Layout = {
  readonly items: readonly NewItem<Entry>[];
  readonly listing: string;
  /** Null for a kind whose contents are stored separately. */
  readonly values: readonly Uint8Array[] | null;
};

/** @throws Refused `bound` */
function layOut({ descriptor, environment }: SetOf, unsorted: readonly NewItem<Entry>[]): Layout {
  const { kind, nameOf, hasValues } = descriptor;
  const items = unsorted
    .map((item) => ({ item, name: Buffer.from(nameOf(item.entry)) }))
    .sort((a, b) => Buffer.compare(a.name, b.name))
    .map(({ item }) => item);
  const listing = JSON.stringify(items.map(({ entry }) => entry));
  const bytesOf = ({ value }: NewItem<Entry>) => (value instanceof StoredValue ? value.unseen() : value);
  const values = hasValues ? items.map((item) => bytesOf(item) ?? new Uint8Array()) : null;
  const bytes = values?.reduce((sum, value) => sum + value.length + 1, 0) ?? 0;
  const listed = Buffer.byteLength(listing);
  if (items.length > setItemsMax || bytes > setBytesMax || listed > setBytesMax) {
    const holds = `${items.length} ${kind} with ${bytes} bytes of values, and ${listed} of names and notes`;
    const words = `${environment} would hold ${holds}; at most ${setItemsMax} and ${setBytesMax} bytes of each are allowed.`;
    throw new Refused("bound", words);
  }
  return { items, listing, values };
}

function sealedRow(
  admin: AdminContext,
  { project, descriptor: { kind }, environment }: SetOf,
  version: number,
  { listing, values }: Layout,
  dataKey: DataKey,
) {
  const { id: projectId, slug, organization } = project;
  const identity = { organizationId: organization.id, projectId, slug, kind, environment, version };
  const sealed = sealSet(admin.systemKeys.listing, identity, listing, values && { items: values, dataKey });
  return { projectId, kind, environment, version, ...sealed };
}

/** Updates the project's counts of a kind, and the times of the environments that were written. */
async function updateCounts(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor,
  written: readonly Environment[],
): Promise<void> {
  const { projects: p } = admin.database.tables;
  const counts = countsOf(descriptor, await listings(admin, project, descriptor));
  const times = arrayOf(project.changedAt).map((time) => (Number.isSafeInteger(time) ? Number(time) : 0));
  const changedAt = environments.map((environment, index) =>
    Math.max(written.includes(environment) ? project.now : 0, times[index] ?? 0),
  );
  await admin.database.db
    .update(p)
    .set({ [countsColumnOf(descriptor)]: JSON.stringify(counts), changedAt: JSON.stringify(changedAt) })
    .where(eq(p.id, project.id));
}

/**
 * The listings of a kind as they are stored. They are not verified: damage in another environment must not stop this
 * write, and counts are not sealed either.
 */
async function listings(admin: AdminContext, { id }: LockedProject, { kind }: KindDescriptor) {
  const { sets: s } = admin.database.tables;
  const rows = await admin.database.db
    .select({ environment: s.environment, listing: s.listing })
    .from(s)
    .where(and(eq(s.projectId, id), eq(s.kind, kind)));
  return new Map(
    rows.map(({ environment, listing }) => [
      environment,
      arrayOf(listing).filter((entry): entry is Entry => typeof entry === "object" && entry !== null),
    ]),
  );
}
