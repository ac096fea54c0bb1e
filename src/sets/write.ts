import { and, asc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { NamesWritten } from "../audit/entry.ts";
import { compareBytes, type Environment, type EnvironmentMask, environmentMask, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import type { AdminContext } from "../desk/context.ts";
import type { FoundProject, LockedProject } from "../desk/projects.ts";
import { currentRootId } from "../desk/root-keys.ts";
import { arrayOf } from "../desk/validate.ts";
import { insertRecord, isOfSet, nextVersion, resealedRecord } from "../desk/version-records.ts";
import { orUndefined } from "../seal/envelope.ts";
import { type DataKey, newKey } from "../seal/keyring.ts";
import { sealSet } from "../seal/set.ts";
import type { Db } from "../store/database.ts";
import { pruneVersions } from "./kept-versions.ts";
import { countsColumnOf, type Entry, type KindDescriptor, setBytesMax, setItemsMax } from "./kind.ts";
import { VerifiedSet } from "./verified-set.ts";

/*
 * The one writer of sets. A write opens the old version, applies its changes and seals the next one, with the project
 * locked. A set that is missing or does not verify is never taken for an empty one: it refuses every write. The version
 * that was replaced is kept as it was sealed.
 */

/** An item as it is stored. The value is null for files, whose contents are written separately. */
type Item<E extends Entry> = { readonly entry: E; readonly value: Uint8Array | null };

/** An item to write. The writer adds the version. */
export type NewItem<E extends Entry> = Omit<Item<E>, "entry"> & { readonly entry: Omit<E, "version"> };

/** What a write does to a set, by name; null deletes. */
export type SetChanges<E extends Entry> = ReadonlyMap<string, NewItem<E> | null>;

/** What a write did to a set. */
export type SetWrite<E extends Entry> = {
  readonly added: readonly string[];
  /** The entries that were replaced or deleted. */
  readonly replaced: readonly E[];
  readonly deleted: readonly E[];
  readonly version: number;
  /** How many items the set has now. */
  readonly total: number;
  /** Whether kept versions went. */
  readonly pruned: boolean;
};

/** What a write did, by environment. */
export type SetWrites<E extends Entry> = ReadonlyMap<Environment, SetWrite<E>>;

/** Makes a project's first data key and an empty set for each kind and environment. */
export async function createSets(
  admin: AdminContext,
  db: Db,
  project: FoundProject,
  kinds: readonly KindDescriptor<Entry>[],
  now: number,
): Promise<void> {
  const { dataKeys, sets } = admin.database.tables;
  const wrapped = admin.keyring.wrapDataKey(project.id, 1, newKey(), await currentRootId(admin.database, db));
  await db.insert(dataKeys).values({ projectId: project.id, generation: 1, ...wrapped, createdAt: now });
  const dataKey = admin.keyring.dataKey(project.id, 1, wrapped.rootId, wrapped.wrapped);
  const rows = kinds.flatMap((descriptor) =>
    environments.map((environment) => sealedRow(admin, project, descriptor, environment, 1, [], dataKey)),
  );
  await db.insert(sets).values(rows);
  const nothing = { added: [], changed: [], deleted: [] };
  for (const row of rows) await insertRecord(admin, db, row, now, nothing);
}

/**
 * A set as it is, verified.
 * @throws Refused `conflict` if it is missing or was changed by other means
 */
export async function openSet<E extends Entry>(
  admin: AdminContext,
  db: Db,
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
): Promise<VerifiedSet<E>> {
  const set = await findSet(admin, db, project, descriptor, environment);
  if (set !== undefined) return set;
  throw new Refused(
    "conflict",
    `The ${descriptor.kind} of ${project.organization.slug}/${project.slug} in ${environment} were deleted or changed by other means than Keyhole. Nothing was written. Restore a backup, or delete the project and create it again.`,
  );
}

/**
 * The same; undefined if it is missing or does not verify.
 * @param version - a kept version instead of the current one
 */
export async function findSet<E extends Entry>(
  admin: AdminContext,
  db: Db,
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  version?: number,
): Promise<VerifiedSet<E> | undefined> {
  const { sets, setVersions, dataKeys: d } = admin.database.tables;
  const s = version === undefined ? sets : setVersions;
  const ofVersion = version === undefined ? undefined : eq(s.version, version);
  const [row] = await db
    .select({ set: s, dataKey: { rootId: d.rootId, wrapped: d.wrapped } })
    .from(s)
    .leftJoin(d, and(eq(d.projectId, s.projectId), eq(d.generation, s.generation)))
    .where(and(isOfSet(s, project, descriptor, environment), ofVersion));
  if (row === undefined) return undefined;
  const owner = { id: project.id, organizationId: project.organization.id, slug: project.slug };
  const { set, dataKey } = row;
  const stored = {
    ...set,
    rowVersion: "",
    generation: set.generation ?? 0,
    listingBytes: set.listing?.length ?? 0,
    sealedBytes: set.sealed?.length ?? null,
    rootId: dataKey?.rootId ?? null,
    wrapped: dataKey?.wrapped ?? null,
  };
  return orUndefined(() => new VerifiedSet(setKeysOf(admin), owner, descriptor, stored));
}

/**
 * A kept version of a set, verified.
 * @throws Refused `not_found` if it is not kept; `conflict` if it was changed by other means than Keyhole
 */
export async function openVersion<E extends Entry>(
  admin: AdminContext,
  db: Db,
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  version: number,
): Promise<VerifiedSet<E>> {
  for await (const [kept, set] of keptVersions(admin, db, project, descriptor, environment, version)) {
    if (set === undefined) throw damagedVersion(project, descriptor, environment, kept);
    return set;
  }
  const { kind } = descriptor;
  throw new Refused(
    "not_found",
    `Version ${version} of the ${kind} of ${project.organization.slug}/${project.slug} in ${environment} is not kept: \`keyhole history\` lists those that are.`,
  );
}

/**
 * The kept versions of a set, oldest first: the number, and undefined for one that does not verify. They come one at a
 * time, since each may have 16 MiB.
 *
 * @param only - the number of the one that is wanted
 */
export async function* keptVersions<E extends Entry>(
  admin: AdminContext,
  db: Db,
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  only?: number,
): AsyncGenerator<readonly [version: number, set: VerifiedSet<E> | undefined]> {
  const { setVersions: v } = admin.database.tables;
  const rows = await db
    .select({ version: v.version })
    .from(v)
    .where(
      and(
        isOfSet(v, project, descriptor, environment),
        isNotNull(v.listing),
        only === undefined ? undefined : eq(v.version, only),
      ),
    )
    .orderBy(asc(v.version));
  for (const { version } of rows) {
    yield [version, await findSet(admin, db, project, descriptor, environment, version)];
  }
}

/**
 * The opened values of a set, by name. The caller may zero them.
 * @param isKept - whether it is a kept version
 * @throws Refused `conflict` if they do not open
 */
export function openValues<E extends Entry>(
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  set: VerifiedSet<E>,
  isKept = false,
): Map<string, Buffer> {
  const opened = orUndefined(() => set.open());
  if (opened === undefined) {
    if (isKept) throw damagedVersion(project, descriptor, set.environment, set.stored.version);
    throw doesNotOpen(project, descriptor, set.environment);
  }
  return new Map(set.names.map((name, index) => [name, opened.item(index)]));
}

function setKeysOf({ keyring, systemKeys }: AdminContext) {
  return { keyring, listingKey: systemKeys.listing };
}

/**
 * Writes sets of one kind, and brings the project's counts and times along.
 * @throws Refused `bound`; `conflict` as {@link openSet}
 */
export async function writeSets<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  changes: ReadonlyMap<Environment, SetChanges<E>>,
): Promise<SetWrites<E>> {
  const writes = new Map<Environment, SetWrite<E>>();
  for (const [environment, change] of changes) {
    writes.set(environment, await writeSet(admin, project, descriptor, environment, change));
  }
  await noteWrite(admin, project, descriptor, [...writes.keys()]);
  return writes;
}

async function writeSet<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  changes: SetChanges<E>,
): Promise<SetWrite<E>> {
  const { nameOf } = descriptor;
  const before = await openSet(admin, project.db, project, descriptor, environment);
  const values = descriptor.hasValues ? openValues(project, descriptor, before) : undefined;
  const version = await nextVersion(admin, project.db, project, { ...before.stored, ...descriptor });
  const items = new Map<string, Item<E>>(
    before.entries.map((entry) => [nameOf(entry), { entry, value: values?.get(nameOf(entry)) ?? null }]),
  );
  const [added, replaced, deleted]: [string[], E[], E[]] = [[], [], []];
  for (const [name, item] of changes) {
    const old = items.get(name);
    if (item === null) items.delete(name);
    else items.set(name, { ...item, entry: { ...item.entry, ...(values && { version }) } as E });
    if (old === undefined) added.push(...(item === null ? [] : [name]));
    else (item === null ? deleted : replaced).push(old.entry);
  }
  const written = { added, replaced, deleted };
  const names = namesWritten(descriptor, written);
  const pruned = await storeSet(admin, project, descriptor, environment, version, [...items.values()], names);
  for (const value of values?.values() ?? []) value.fill(0);
  return { ...written, version, pruned, total: items.size };
}

/** Which names a write touched, as the audit and the history say it. */
export function namesWritten<E extends Entry>(
  { nameOf }: KindDescriptor<E>,
  { added, replaced, deleted }: Pick<SetWrite<E>, "added" | "replaced" | "deleted">,
): NamesWritten {
  return { added, changed: replaced.map(nameOf), deleted: deleted.map(nameOf) };
}

/**
 * Seals a version again as it is, under the project's newest data key and its slug in `project`. It keeps its number,
 * since nobody wrote anything.
 *
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
  const old = { ...project, slug: before.project.slug };
  const values = descriptor.hasValues ? openValues(old, descriptor, before, isKept) : undefined;
  const items = before.entries.map((entry) => ({ entry, value: values?.get(descriptor.nameOf(entry)) ?? null }));
  const row = sealedRow(admin, project, descriptor, environment, stored.version, items, project.dataKey);
  const record = await resealedRecord(admin, project.db, project, descriptor, before, row.listingMac);
  const ofVersion = and(isOfSet(v, project, descriptor, environment), eq(v.version, stored.version));
  if (isKept) {
    await project.db
      .update(v)
      .set({ ...row, ...record })
      .where(ofVersion);
  } else {
    await project.db
      .update(s)
      .set(row)
      .where(isOfSet(s, project, descriptor, environment));
    // If SQL put the set back, the record is that of the kept version, which is sealed again by itself.
    if (record !== undefined)
      await project.db
        .update(v)
        .set(record)
        .where(and(ofVersion, isNull(v.listing)));
  }
  for (const value of values?.values() ?? []) value.fill(0);
}

/**
 * Stores the next version, and keeps the one before it.
 * @returns whether older versions were removed
 * @throws Refused `bound`
 */
async function storeSet<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  version: number,
  items: readonly Item<E>[],
  names: NamesWritten,
): Promise<boolean> {
  const { db, now } = project;
  const { sets: s, setVersions: v } = admin.database.tables;
  const [ofSet, ofVersions] = [s, v].map((table) => isOfSet(table, project, descriptor, environment));
  const row = sealedRow(admin, project, descriptor, environment, version, items, project.dataKey);
  const [generation, listingMac] = [sql`${s.generation}`, sql`${s.listingMac}`];
  await db
    .update(v)
    .set({ generation, listingMac, listing: sql`${s.listing}`, sealed: sql`${s.sealed}` })
    .from(s)
    .where(and(ofSet, ofVersions, eq(v.version, s.version)));
  await db.update(s).set(row).where(ofSet);
  await insertRecord(admin, db, row, now, names);
  const set = { project, descriptor: descriptor as unknown as KindDescriptor<Entry>, environment };
  return pruneVersions(admin, db, set, { version, entries: items.map(({ entry }) => entry) }, now);
}

function sealedRow<E extends Entry>(
  admin: AdminContext,
  project: FoundProject,
  descriptor: KindDescriptor<E>,
  environment: Environment,
  version: number,
  items: readonly Item<E>[],
  dataKey: DataKey,
) {
  const { kind, nameOf, hasValues } = descriptor;
  const sorted = items
    .map((item) => ({ item, name: Buffer.from(nameOf(item.entry)) }))
    .sort((a, b) => Buffer.compare(a.name, b.name))
    .map(({ item }) => item);
  const listing = JSON.stringify(sorted.map(({ entry }) => entry));
  const values = hasValues ? sorted.map(({ value }) => value ?? new Uint8Array()) : null;
  const bytes = values?.reduce((sum, value) => sum + value.length + 1, 0) ?? 0;
  if (items.length > setItemsMax || bytes > setBytesMax || Buffer.byteLength(listing) > setBytesMax) {
    const holds = `${items.length} ${kind} with ${bytes} bytes of values`;
    throw new Refused(
      "bound",
      `${environment} would hold ${holds}; at most ${setItemsMax} and ${setBytesMax} bytes are allowed.`,
    );
  }
  const { id: projectId, slug, organization } = project;
  const identity = { organizationId: organization.id, projectId, slug, kind, environment, version };
  const sealed = sealSet(admin.systemKeys.listing, identity, listing, values && { items: values, dataKey });
  return { projectId, kind, environment, version, ...sealed };
}

/** Updates the project's counts of a kind, and the times of the environments that were written. */
async function noteWrite<E extends Entry>(
  admin: AdminContext,
  project: LockedProject,
  descriptor: KindDescriptor<E>,
  written: readonly Environment[],
): Promise<void> {
  const { projects: p } = admin.database.tables;
  const counts = countsOf(descriptor, await listings(admin, project, descriptor));
  const times = arrayOf(project.changedAt).map((time) => (Number.isSafeInteger(time) ? Number(time) : 0));
  const changedAt = environments.map((environment, index) =>
    Math.max(written.includes(environment) ? project.now : 0, times[index] ?? 0),
  );
  await project.db
    .update(p)
    .set({ [countsColumnOf(descriptor)]: JSON.stringify(counts), changedAt: JSON.stringify(changedAt) })
    .where(eq(p.id, project.id));
}

/** How many items are in exactly the environments of mask 1 to 7. */
export function countsOf<E extends Entry>(
  { identityOf }: KindDescriptor<E>,
  entries: ReadonlyMap<Environment, readonly E[]>,
): number[] {
  const masks = new Map<string, EnvironmentMask>();
  for (const [environment, some] of entries) {
    for (const entry of some) {
      const identity = identityOf(entry);
      masks.set(identity, (masks.get(identity) ?? 0) | environmentMask(environment));
    }
  }
  const counts = [0, 0, 0, 0, 0, 0, 0];
  for (const mask of masks.values()) counts[mask - 1] = (counts[mask - 1] ?? 0) + 1;
  return counts;
}

/**
 * The listings of a kind as they are stored. They are not verified: another environment that was damaged must not stop
 * this write, and counts are not sealed either. What is no entry is not counted.
 */
async function listings<E extends Entry>(
  admin: AdminContext,
  { db, id }: LockedProject,
  { kind }: KindDescriptor<E>,
): Promise<Map<Environment, readonly E[]>> {
  const { sets: s } = admin.database.tables;
  const rows = await db
    .select({ environment: s.environment, listing: s.listing })
    .from(s)
    .where(and(eq(s.projectId, id), eq(s.kind, kind)));
  return new Map(
    rows.map(({ environment, listing }) => [
      environment,
      arrayOf(listing).filter((entry): entry is E => typeof entry === "object" && entry !== null),
    ]),
  );
}

/** The verified sets of a kind in every environment. @throws Refused `conflict` as {@link openSet} */
export async function openSets<E extends Entry>(
  admin: AdminContext,
  project: FoundProject & { readonly db?: Db },
  descriptor: KindDescriptor<E>,
): Promise<readonly VerifiedSet<E>[]> {
  const { db = admin.database.db } = project;
  const opened: VerifiedSet<E>[] = [];
  for (const environment of environments) opened.push(await openSet(admin, db, project, descriptor, environment));
  return opened;
}

/** The items of several sets, each once, in byte order of name, with the environments that have it and its last change. */
export function itemsOf<E extends Entry>(
  { identityOf, nameOf }: KindDescriptor<E>,
  sets: readonly VerifiedSet<E>[],
): readonly {
  readonly entry: E;
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
}[] {
  const found = new Map<string, { entry: E; environments: Environment[]; updatedAt: number }>();
  for (const { environment, entries } of sets) {
    for (const entry of entries) {
      const item = found.get(identityOf(entry)) ?? { entry, environments: [], updatedAt: 0 };
      item.environments.push(environment);
      item.updatedAt = Math.max(item.updatedAt, entry.updatedAt);
      found.set(identityOf(entry), item);
    }
  }
  return [...found.values()].sort((a, b) => compareBytes(nameOf(a.entry), nameOf(b.entry)));
}

function doesNotOpen(
  { organization, slug }: FoundProject,
  { kind }: { kind: string },
  environment: Environment,
): Refused {
  return new Refused(
    "conflict",
    `The ${kind} of ${organization.slug}/${slug} in ${environment} do not open. Nothing was written. Restore a backup, or delete the project and create it again.`,
  );
}

/** The refusal of whatever needs a kept version that was changed by other means than Keyhole. */
export function damagedVersion(
  { organization, slug }: FoundProject,
  { kind }: { kind: string },
  environment: Environment,
  version: number,
): Refused {
  const what = `${organization.slug}/${slug}`;
  return new Refused(
    "conflict",
    `Version ${version} of the ${kind} of ${what} in ${environment} was changed by other means than Keyhole. Nothing was written. \`keyhole history purge ${what} ${environment} ${kind}\` removes the kept versions.`,
  );
}
