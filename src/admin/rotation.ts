import { and, asc, eq, gt, inArray, lt, ne, type SQL, sql } from "drizzle-orm";
import type { Config } from "../config.ts";
import { Fault } from "../fault.ts";
import { type Environment, environments, itemsMax } from "../names.ts";
import { generationOf, open, seal } from "../seal/envelope.ts";
import { accountEntry, fileEntry, type ItemEntry, type ItemKind, variableEntry } from "../seal/item-set.ts";
import { type DataKey, newKey, type SystemKeyPurpose } from "../seal/keyring.ts";
import { accountPlace, filePlace, variablePlace } from "../seal/place.ts";
import { type Db, databaseErrorCode, type Tables } from "../store/database.ts";
import { type Desk, writing } from "./desk.ts";
import { purposes } from "./installation.ts";
import { type ItemChange, keepItemSet } from "./item-sets.ts";
import { type FoundProject, findProject, type LockedProject, newestDataKey } from "./projects.ts";
import { Refused } from "./refused.ts";
import { addRootKey, currentRootId, dropOlderRootKeys, lockKeyFile, openKeyring, rootKeyName } from "./root-keys.ts";
import { dataKeyOf, keepSet, type Resealed } from "./sets.ts";

/*
 * Rotation while servers run. Everything happens in transactions that are small and each leave the database whole: a
 * reader sees the state before one or after it, and whoever is killed between two of them is followed by a second run.
 * What is left to do is never noted anywhere: it is what the rows themselves still say.
 */

type Report = (done: number, total: number) => void;

/** What a rotation of roots came to. */
export type RootRotation = {
  /** The id of the root key that everything is under now. */
  readonly rootId: string;
  /** Of the root keys that nothing is under any more. */
  readonly olderRootIds: readonly string[];
  /** Rewrapped by this run. */
  readonly systemKeys: number;
  readonly dataKeys: number;
  /** What the root keys are called: a setting, or the generated file. */
  readonly source: string;
  /** Whether the older ones were dropped from the generated file. */
  readonly dropped: boolean;
};

/**
 * Rewraps the system keys and every data key under the first root key. No value is touched. Where the root key is the
 * generated one, a new one is made and put in front first, unless a rotation of it was begun already.
 *
 * @param finish - drop the older ones from the generated file afterwards
 * @throws Refused `conflict` where there is one root key and everything is under it, or data keys do not open;
 *   `invalid` where `finish` is asked for of root keys that are not ours to drop
 */
export async function rotateRoot(
  desk: Desk,
  config: Config,
  finish: boolean,
  report: Report = () => {},
): Promise<RootRotation> {
  const source = rootKeyName(config);
  if (config.rootKey.from !== "folder") {
    if (finish) throw new Refused("invalid", `The root keys come from ${source}: take the older one out there.`);
    return { ...(await rewrapAll(desk, source, report)), source, dropped: false };
  }
  const lock = lockKeyFile(config);
  try {
    // The desk's own keyring was opened before the lock was held.
    const opened = async () => ({ ...desk, keyring: await openKeyring(config, true, () => {}) });
    await requireKnownRoots(await opened(), source);
    if (!finish) addRootKey(config);
    const rewrapped = await rewrapAll(await opened(), source, report);
    if (finish) dropOlderRootKeys(config);
    return { ...rewrapped, source, dropped: finish };
  } finally {
    lock.release();
  }
}

async function rewrapAll(
  desk: Desk,
  source: string,
  report: Report,
): Promise<Omit<RootRotation, "source" | "dropped">> {
  const { rootId, rootIds } = desk.keyring;
  const left = await requireKnownRoots(desk, source);
  if (left === 0 && rootIds.length === 1) {
    throw new Refused(
      "conflict",
      `${source} holds one root key, ${rootId}, and everything is under it already: nothing was changed. A rotation needs a new one in front of it.`,
    );
  }
  const systemKeys = await rewrapSystemKeys(desk);
  let after = { projectId: "", generation: 0 };
  let dataKeys = 0;
  const broken: string[] = [];
  for (;;) {
    const batch = await inTurn(desk, (db) => rewrapDataKeys(desk, db, after));
    if (batch.last === undefined) break;
    after = batch.last;
    dataKeys += batch.moved;
    broken.push(...batch.broken);
    report(systemKeys + dataKeys, left);
  }
  if (broken.length > 0) {
    throw new Refused(
      "conflict",
      `Does not open, and stayed as it was: ${listed(broken)}. Keep the older root key; all else is under ${rootId} now.`,
    );
  }
  return { rootId, olderRootIds: rootIds.filter((id) => id !== rootId), systemKeys, dataKeys };
}

/**
 * @returns how many keys are not under the first root key
 * @throws Refused `conflict` where one is under a root key that is not among those configured
 */
async function requireKnownRoots(desk: Desk, source: string): Promise<number> {
  const { systemKeys: s, dataKeys: d } = desk.database.tables;
  const count = sql<number>`count(*)`.mapWith(Number);
  let left = 0;
  for (const table of [s, d]) {
    const rows = await desk.database.db.select({ rootId: table.rootId, count }).from(table).groupBy(table.rootId);
    for (const row of rows) {
      if (!desk.keyring.rootIds.includes(row.rootId)) {
        throw new Refused(
          "conflict",
          `${row.count} keys are under the root key ${row.rootId}, which ${source} does not hold: put it behind the others. Nothing was changed.`,
        );
      }
      if (row.rootId !== desk.keyring.rootId) left += row.count;
    }
  }
  return left;
}

/** Moves the system keys, all at once: from then on new data keys go under this root key, see {@link currentRootId}. */
function rewrapSystemKeys(desk: Desk): Promise<number> {
  const { systemKeys: s } = desk.database.tables;
  return inTurn(desk, async (db) => {
    const query = db.select().from(s).where(ne(s.rootId, desk.keyring.rootId)).orderBy(asc(s.purpose));
    const rows = await (desk.database.dialect === "postgres" ? query.for("update") : query);
    for (const row of rows) {
      const purpose = purposes.find((one) => one === row.purpose) as SystemKeyPurpose;
      const rewrapped = desk.keyring.rewrapSystemKey(purpose, row.rootId, row.wrapped);
      await db.update(s).set(rewrapped).where(eq(s.purpose, purpose));
    }
    return rows.length;
  });
}

type DataKeyPlace = { readonly projectId: string; readonly generation: number };

async function rewrapDataKeys(desk: Desk, db: Db, after: DataKeyPlace) {
  const { dataKeys: d } = desk.database.tables;
  const { keyring } = desk;
  if ((await currentRootId(desk.database, db)) !== keyring.rootId) {
    throw new Refused("conflict", "Another rotation, to another root key, has begun meanwhile: run this one again.");
  }
  const rows = await db
    .select()
    .from(d)
    .where(
      and(
        ne(d.rootId, keyring.rootId),
        sql`(${d.projectId}, ${d.generation}) > (${after.projectId}, ${after.generation})`,
      ),
    )
    .orderBy(asc(d.projectId), asc(d.generation))
    .limit(rewrappedAtOnce);
  // Before any key of it: triggers write to the project's environments then, which its other writers have locked before.
  for (const projectId of new Set(rows.map((row) => row.projectId))) await desk.database.lockProject(db, projectId);
  let moved = 0;
  const broken: string[] = [];
  for (const { projectId, generation, rootId, wrapped } of rows) {
    const rewrapped = attempt(() => keyring.rewrapDataKey(projectId, generation, rootId, wrapped));
    if (rewrapped === undefined) {
      broken.push(`data key ${generation} of project ${projectId}`);
      continue;
    }
    // Where a run beside this one was first, or the key is gone since, there is nothing to change.
    const changed = await db
      .update(d)
      .set(rewrapped)
      .where(and(eq(d.projectId, projectId), eq(d.generation, generation), eq(d.rootId, rootId)))
      .returning({ generation: d.generation });
    moved += changed.length;
  }
  return { moved, broken, last: rows.at(-1) };
}

/** What a rotation of data keys came to. */
export type DataRotation = {
  /** Projects whose items are under their newest data key now, by this run. */
  readonly projects: number;
  /** Of these, how many an earlier run had begun. */
  readonly resumed: number;
  readonly variables: number;
  readonly accounts: number;
  readonly files: number;
  /** Data keys of older generations that nothing used any more. */
  readonly deletedKeys: number;
  /** Items that do not open, in words: they stayed as they were, and with them the older data keys of their project. */
  readonly broken: readonly string[];
};

/**
 * Gives a project a data key of a new generation, or each project where none is named, seals everything in it anew and
 * deletes the older data keys. New writes use the new one at once.
 *
 * Where an earlier run was interrupted, this one finishes it and begins no new generation: a project with more than one
 * data key is in the middle of a rotation. Projects that the interrupted run had finished already are known by the
 * moment it began, which all its data keys carry.
 *
 * @param atOnceBytes - after how many sealed bytes a transaction ends
 * @throws Refused `not_found`, `ambiguous`, `invalid`
 */
export async function rotateData(
  desk: Desk,
  where: string | undefined,
  report: Report = () => {},
  atOnceBytes: number = atOnceBytesUsually,
): Promise<DataRotation> {
  const targets = where === undefined ? await everyProject(desk) : [await findProject(desk, where)];
  const { unfinished, due } = await judged(desk, targets, where === undefined);
  const begunAt = desk.now();
  for (let from = 0; from < due.length; from += begunAtOnce) {
    await inTurn(desk, async (db) => {
      for (const one of due.slice(from, from + begunAtOnce)) await beginGeneration(desk, db, one, begunAt);
    });
  }
  const tally = { variables: 0, accounts: 0, files: 0, deletedKeys: 0 };
  const broken: string[] = [];
  const total = await countStale(desk, where === undefined ? undefined : targets[0]?.id);
  const projects = [...unfinished, ...due.map(({ project }) => project)];
  for (const project of projects) {
    let at: Cursor | undefined = { step: 0, after: "" };
    while (at !== undefined) {
      const from: Cursor = at;
      const part = await inTurn(desk, (db) => resealPart(desk, db, project, from, atOnceBytes)).catch(
        unopened(project),
      );
      tally.variables += part.variables;
      tally.accounts += part.accounts;
      tally.files += part.files;
      tally.deletedKeys += part.deletedKeys;
      broken.push(...part.broken);
      at = part.next;
      report(Math.min(tally.variables + tally.accounts + tally.files, total), total);
    }
  }
  return { projects: projects.length, resumed: unfinished.length, ...tally, broken: [...new Set(broken)] };
}

/** By id: who locks several projects does so in this order, and never waits for another in a circle. */
async function everyProject(desk: Desk): Promise<FoundProject[]> {
  const { projects: p, organizations: o } = desk.database.tables;
  const rows = await desk.database.db
    .select({ id: p.id, slug: p.slug, organization: o })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .orderBy(asc(p.id));
  return rows;
}

type Due = { readonly project: FoundProject; readonly generation: number };

/** Which of the projects are in the middle of a rotation, and which are to begin one. */
async function judged(
  desk: Desk,
  targets: readonly FoundProject[],
  all: boolean,
): Promise<{ unfinished: FoundProject[]; due: Due[] }> {
  const { dataKeys: d } = desk.database.tables;
  const rows = await desk.database.db
    .select({ projectId: d.projectId, generation: d.generation, createdAt: d.createdAt })
    .from(d)
    .where(
      all
        ? undefined
        : inArray(
            d.projectId,
            targets.map(({ id }) => id),
          ),
    )
    .orderBy(asc(d.projectId), asc(d.generation));
  const newest = new Map(rows.map((row) => [row.projectId, row]));
  const oldest = new Map(rows.map((row) => [row.projectId, row]).reverse() as [string, (typeof rows)[number]][]);
  const between = (id: string) => newest.get(id) !== oldest.get(id);
  const unfinished = targets.filter(({ id }) => between(id));
  const interruptedAt = new Set(unfinished.map(({ id }) => newest.get(id)?.createdAt));
  const due = targets.flatMap((project) => {
    const key = newest.get(project.id);
    if (key === undefined || between(project.id) || interruptedAt.has(key.createdAt)) return [];
    return [{ project, generation: key.generation }];
  });
  return { unfinished, due };
}

/** Makes a project's next data key, unless another run was first or the project is gone. */
async function beginGeneration(desk: Desk, db: Db, { project, generation }: Due, begunAt: number): Promise<void> {
  const { dataKeys: d } = desk.database.tables;
  await desk.database.lockProject(db, project.id);
  const keys = await db.select({ generation: d.generation }).from(d).where(eq(d.projectId, project.id));
  if (keys.length !== 1 || keys[0]?.generation !== generation) return;
  const rootId = await currentRootId(desk.database, db);
  const next = generation + 1;
  const wrapped = desk.keyring.wrapDataKey(project.id, next, newKey(), rootId);
  await db.insert(d).values({ projectId: project.id, generation: next, ...wrapped, createdAt: begunAt });
}

/** Where in a project to go on: the kind of items, and the key of the last row that is done. */
type Cursor = { readonly step: number; readonly after: string };

/** What one transaction came to; `next` where more is to be done. */
type Part = Omit<DataRotation, "projects" | "resumed"> & { readonly next: Cursor | undefined };

/** What was done of one kind of items; `last`: the key of the last row, where more may follow. */
type Batch = {
  readonly resealed: number;
  readonly bytes: number;
  readonly broken: readonly string[];
  readonly last: string | undefined;
};

/** Seals some of a project anew in one transaction, and with the last of it deletes the data keys it was under. */
async function resealPart(desk: Desk, db: Db, project: FoundProject, from: Cursor, atOnceBytes: number): Promise<Part> {
  const locked = await lock(desk, db, project);
  const tally = { variables: 0, accounts: 0, files: 0 };
  if (!locked) return { ...tally, deletedKeys: 0, broken: [], next: undefined };
  const steps = [
    ...environments.map((environment) => ({
      kind: "variables" as const,
      reseal: (after: string) => resealVariables(desk, locked, environment, after, atOnceBytes),
    })),
    { kind: "accounts" as const, reseal: (after: string) => resealAccounts(desk, locked, after, atOnceBytes) },
    { kind: "files" as const, reseal: (after: string) => resealFiles(desk, locked, after, atOnceBytes) },
  ];
  const broken: string[] = [];
  let { after } = from;
  let bytes = 0;
  for (const [index, { kind, reseal }] of steps.entries()) {
    if (index < from.step) continue;
    const batch = await reseal(after);
    tally[kind] += batch.resealed;
    broken.push(...batch.broken);
    bytes += batch.bytes;
    after = "";
    const next = batch.last === undefined ? { step: index + 1, after } : { step: index, after: batch.last };
    if (next.step < steps.length && (batch.last !== undefined || bytes >= atOnceBytes)) {
      return { ...tally, deletedKeys: 0, broken, next };
    }
  }
  return { ...tally, deletedKeys: await deleteOlderKeys(desk, locked), broken, next: undefined };
}

/** What stands for a project whose data key does not open: all of it stays, and the others go on. */
function unopened(project: FoundProject): (error: unknown) => Part {
  return (error) => {
    if (!isDecryptionFailure(error)) throw error;
    const broken = [`the data key of ${placeOf(project)}`];
    return { variables: 0, accounts: 0, files: 0, deletedKeys: 0, broken, next: undefined };
  };
}

/** Keeps other writers of the project out until the transaction ends; undefined where it is gone. */
async function lock(desk: Desk, db: Db, project: FoundProject): Promise<LockedProject | undefined> {
  const { projectEnvironments: e } = desk.database.tables;
  await desk.database.lockProject(db, project.id);
  const states = await db.select().from(e).where(eq(e.projectId, project.id));
  if (states.length === 0) return undefined;
  const dataKey = await newestDataKey(desk, db, project);
  const revisions = new Map(states.map((row) => [row.environment, row.revision]));
  return { ...project, db, dataKey, now: desk.now(), revisions };
}

/**
 * Variables, and with them the environment's set, which is then as current as it was. What a variable says and when it
 * was last changed stay.
 */
async function resealVariables(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  after: string,
  atOnceBytes: number,
): Promise<Batch> {
  const { variables: v, variableSets: s, projectEnvironments: e } = desk.database.tables;
  const { db, dataKey } = project;
  const of = keysOf(desk, project);
  const here = and(eq(v.projectId, project.id), eq(v.environment, environment));
  const { keys, bytes, last } = await nextKeys(project, v, v.name, eq(v.environment, environment), after, atOnceBytes);
  const rows =
    keys.length === 0
      ? []
      : await db
          .select()
          .from(v)
          .where(and(here, inArray(v.name, keys)));
  const values: (typeof rows)[number][] = [];
  const carried: Resealed[] = [];
  const broken: string[] = [];
  for (const row of rows) {
    const place = (version: number) =>
      variablePlace({ projectId: project.id, environment, variableId: row.id, version, name: row.name });
    const sealed = await resealed(of, "variable", place, row, dataKey);
    if (!sealed) {
      broken.push(`${row.name} of ${placeOf(project)} ${environment}`);
      continue;
    }
    values.push({ ...row, ...sealed });
    const [[, after], [, before]] = [{ ...row, ...sealed }, row].map((one) =>
      variableEntry(project.id, environment, one),
    ) as [ItemEntry, ItemEntry];
    carried.push({ name: row.name, before, after });
  }
  if (values.length > 0) {
    await db
      .insert(v)
      .values(values)
      .onConflictDoUpdate({ target: [v.projectId, v.environment, v.name], set: excludedSeal });
  }
  const [set] = await db
    .select({ stale: sql<number>`case when ${stale(s, dataKey)} then 1 else 0 end`.mapWith(Number) })
    .from(s)
    .where(and(eq(s.projectId, project.id), eq(s.environment, environment)));
  if (!set || values.length > 0 || set.stale) {
    const [state] = await db
      .select()
      .from(e)
      .where(and(eq(e.projectId, project.id), eq(e.environment, environment)));
    try {
      await keepSet(desk, project, environment, new Map(), state?.revision ?? 0, carried);
    } catch (error) {
      // It is gone, or did not open before either, and stays so: readers go on to be refused.
      if (!(error instanceof Refused)) throw error;
      broken.push(`the set of ${placeOf(project)} ${environment}`);
    }
  }
  return { resealed: values.length, bytes, broken, last };
}

async function resealAccounts(desk: Desk, project: LockedProject, after: string, atOnceBytes: number): Promise<Batch> {
  const { accounts: a } = desk.database.tables;
  const { db, dataKey } = project;
  const of = keysOf(desk, project);
  const { keys, bytes, last } = await nextKeys(project, a, a.name, undefined, after, atOnceBytes);
  const here = and(eq(a.projectId, project.id), inArray(a.name, keys));
  const rows = keys.length === 0 ? [] : await db.select().from(a).where(here);
  const values: (typeof rows)[number][] = [];
  const changes: ItemChange[] = [];
  const broken: string[] = [];
  for (const row of rows) {
    const { id: accountId, environments, name } = row;
    const place = (version: number) => accountPlace({ projectId: project.id, accountId, version, environments, name });
    const sealed = await resealed(of, "account", place, row, dataKey);
    if (!sealed) {
      broken.push(`the account ${name} of ${placeOf(project)}`);
      continue;
    }
    values.push({ ...row, ...sealed });
    const [entry, [, found]] = [accountEntry(project.id, { ...row, ...sealed }), accountEntry(project.id, row)];
    changes.push({ entry, environments, before: environments, found });
  }
  if (values.length > 0) {
    await db
      .insert(a)
      .values(values)
      .onConflictDoUpdate({ target: [a.projectId, a.name], set: excludedSeal });
  }
  broken.push(...(await resealItemSets(desk, project, "accounts", changes)));
  return { resealed: values.length, bytes, broken, last };
}

async function resealFiles(desk: Desk, project: LockedProject, after: string, atOnceBytes: number): Promise<Batch> {
  const { files: f } = desk.database.tables;
  const { db, dataKey } = project;
  const of = keysOf(desk, project);
  const { keys, bytes, last } = await nextKeys(project, f, f.id, undefined, after, atOnceBytes);
  const changes: ItemChange[] = [];
  const broken: string[] = [];
  for (const id of keys) {
    const [row] = await db.select().from(f).where(eq(f.id, id));
    if (!row) continue;
    const place = (version: number) => filePlace({ ...row, projectId: project.id, fileId: id, version });
    const sealed = await resealed(of, "file", place, row, dataKey);
    if (!sealed) {
      broken.push(`the file ${row.path} of ${placeOf(project)}`);
      continue;
    }
    await db.update(f).set(sealed).where(eq(f.id, id));
    const { environments } = row;
    const [entry, [, found]] = [fileEntry(project.id, { ...row, ...sealed }), fileEntry(project.id, row)];
    changes.push({ entry, environments, before: environments, found });
  }
  broken.push(...(await resealItemSets(desk, project, "files", changes)));
  return { resealed: changes.length, bytes, broken, last };
}

/**
 * The sets of accounts or files, with what was sealed anew of them.
 * @returns those that do not open, in words: their readers were refused before, and go on to be
 */
async function resealItemSets(
  desk: Desk,
  project: LockedProject,
  kind: ItemKind,
  changes: readonly ItemChange[],
): Promise<string[]> {
  const { itemSets: s } = desk.database.tables;
  const rows = await project.db
    .select({ environment: s.environment })
    .from(s)
    .where(and(eq(s.projectId, project.id), eq(s.kind, kind), sql`not ${stale(s, project.dataKey)}`));
  const current = new Set(rows.map((row) => row.environment));
  const broken: string[] = [];
  for (const environment of environments) {
    if (changes.length === 0 && current.has(environment)) continue;
    try {
      await keepItemSet(desk, project, kind, environment, changes);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      broken.push(`the set of ${kind} of ${placeOf(project)} ${environment}`);
    }
  }
  return broken;
}

/** What changes of a row, or undefined where it does not open and so must stay as it is. */
async function resealed(
  of: (generation: number) => Promise<DataKey>,
  kind: "variable" | "account" | "file",
  place: (version: number) => Buffer,
  row: { readonly version: number; readonly sealed: Buffer },
  to: DataKey,
): Promise<{ version: number; generation: number; sealed: Buffer } | undefined> {
  let plaintext: Buffer;
  try {
    const from = await of(generationOf(row.sealed));
    plaintext = open(from.subkey(kind), place(row.version), row.sealed);
  } catch (error) {
    if (isDecryptionFailure(error)) return undefined;
    throw error;
  }
  const version = row.version + 1;
  const sealed = seal(to.subkey(kind), to.generation, place(version), plaintext);
  plaintext.fill(0);
  return { version, generation: to.generation, sealed };
}

/** Deletes the data keys before the newest, unless something is still under one of them. */
async function deleteOlderKeys(desk: Desk, project: LockedProject): Promise<number> {
  const { variables, variableSets, accounts, files, itemSets, dataKeys: d } = desk.database.tables;
  const { db, dataKey } = project;
  for (const table of [variables, variableSets, accounts, files, itemSets]) {
    const [left] = await db
      .select({ one: sql`1` })
      .from(table)
      .where(and(eq(table.projectId, project.id), stale(table, dataKey)))
      .limit(1);
    if (left) return 0;
  }
  const deleted = await db
    .delete(d)
    .where(and(eq(d.projectId, project.id), lt(d.generation, dataKey.generation)))
    .returning({ generation: d.generation });
  return deleted.length;
}

/** How many items are under an older data key than their project's newest, before the first of them is sealed anew. */
async function countStale(desk: Desk, projectId: string | undefined): Promise<number> {
  const { variables, accounts, files, dataKeys: d } = desk.database.tables;
  const { db } = desk.database;
  let total = 0;
  for (const table of [variables, accounts, files]) {
    const newest = sql`(select max(${d.generation}) from ${d} where ${d.projectId} = ${table.projectId})`;
    const [row] = await db
      .select({ count: sql<number>`count(*)`.mapWith(Number) })
      .from(table)
      .where(and(lt(table.generation, newest), projectId === undefined ? undefined : eq(table.projectId, projectId)));
    total += row?.count ?? 0;
  }
  return total;
}

type Sealed = Tables["variables" | "variableSets" | "accounts" | "files" | "itemSets"];

/**
 * Whether a row is under another data key: by its column or by its envelope, which may differ where somebody wrote to
 * the row by other means. What either still names must not lose its key.
 */
function stale(table: Sealed, { generation }: DataKey): SQL {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(generation);
  return sql`(${table.generation} <> ${generation} or substr(${table.sealed}, 3, 4) <> ${bytes})`;
}

/** The keys of the next rows to seal anew, as many as one transaction should take. */
async function nextKeys(
  project: LockedProject,
  table: Tables["variables"] | Tables["accounts"] | Tables["files"],
  key: Tables["variables"]["name"] | Tables["accounts"]["name"] | Tables["files"]["id"],
  scope: SQL | undefined,
  after: string,
  atOnceBytes: number,
): Promise<{ keys: string[]; bytes: number; last: string | undefined }> {
  const rows = await project.db
    .select({ key: sql<string>`${key}`, bytes: sql<number>`length(${table.sealed})`.mapWith(Number) })
    .from(table)
    .where(and(eq(table.projectId, project.id), scope, gt(key, after), stale(table, project.dataKey)))
    .orderBy(asc(key))
    .limit(itemsMax);
  const keys: string[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (keys.length > 0 && bytes + row.bytes > atOnceBytes) break;
    bytes += row.bytes;
    keys.push(row.key);
  }
  const all = keys.length === rows.length && rows.length < itemsMax;
  return { keys, bytes, last: all ? undefined : keys.at(-1) };
}

/** A project's data keys by generation, each looked up once. */
function keysOf(desk: Desk, project: LockedProject): (generation: number) => Promise<DataKey> {
  const found = new Map<number, Promise<DataKey>>();
  return (generation) => {
    const key = found.get(generation) ?? dataKeyOf(desk, project, generation);
    found.set(generation, key);
    return key;
  };
}

/**
 * One write transaction, begun anew where it lost a race for a lock: `work` must change nothing but the database. On the
 * embedded database there is one writer at a time, and the server's journal asks for its turn by polling: after each
 * transaction it gets as long.
 */
async function inTurn<T>(desk: Desk, work: (db: Db) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let heldFromMs = performance.now();
    try {
      const result = await writing(desk, (db) => {
        heldFromMs = performance.now();
        return work(db);
      });
      if (desk.database.dialect === "sqlite") await Bun.sleep(Math.max(1, performance.now() - heldFromMs));
      return result;
    } catch (error) {
      if (attempt === attemptsMax || !/^(?:SQLITE_BUSY|40001$|40P01$)/.test(databaseErrorCode(error))) throw error;
    }
  }
}

const attemptsMax = 5;
const rewrappedAtOnce = 100;
const begunAtOnce = 50;
/** Some 30 ms of work: the embedded database has no other writer meanwhile, and no audit entry is written. */
const atOnceBytesUsually = 4 * 1024 * 1024;

const excludedSeal = {
  version: sql`excluded.version`,
  generation: sql`excluded.generation`,
  sealed: sql`excluded.sealed`,
};

function placeOf(project: FoundProject): string {
  return `${project.organization.slug}/${project.slug}`;
}

/** The first few, and how many more. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, 10).join(", ");
  return items.length > 10 ? `${shown} and ${items.length - 10} more` : shown;
}

function attempt<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (isDecryptionFailure(error)) return undefined;
    throw error;
  }
}

function isDecryptionFailure(error: unknown): boolean {
  return error instanceof Fault && error.code === "decryption_failed";
}
