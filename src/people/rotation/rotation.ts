import { and, asc, eq, gt, inArray, isNotNull, lt, ne, sql } from "drizzle-orm";
import { Fault } from "../../core/fault.ts";
import { environments, itemsMax } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { listed } from "../../core/words/text.ts";
import { currentRootId, openKeyring, removeKeyDrafts, rootKeyName } from "../../installation/root-keys.ts";
import { purposes } from "../../installation/system-keys.ts";
import { everyKind } from "../../kinds/kind.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { findVerifiers } from "../../record/notary/signers.ts";
import { orUndefined } from "../../seal/envelope.ts";
import { type DataKey, newKey, type SystemKeyPurpose } from "../../seal/keyring.ts";
import type { ContentEntry, Entry } from "../../serve/sets/kind.ts";
import { databaseErrorCode, type Tables } from "../../store/database.ts";
import { type Change, recordChanges } from "../desk/changes.ts";
import { type AdminContext, within } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import {
  everyProject,
  type FoundProject,
  findProject,
  type LockedProject,
  lockProject,
  projectPath,
} from "../desk/projects.ts";
import { findListed, openContent, sealContent } from "../editing/contents.ts";
import { findSet } from "../editing/open.ts";
import { resealSet } from "../editing/write.ts";
import { addRootKey, dropOlderRootKeys, lockKeyFile } from "./root-keys.ts";

/*
 * Rotation while servers run, in small transactions that each leave the database whole. The next run finishes one that
 * was killed: the rows themselves say what is left to do.
 */

type Progress = (done: number, total: number) => void;

export type RootRotation = Awaited<ReturnType<typeof rotateRoot>>;

/** How a rotation of the generated root key ends. */
export type Finish = {
  /** The root keys that somebody saw go, as {@link planFinish} says. Default: whatever they are. */
  readonly older?: string;
  /** Whether the older root keys are not kept beside the new one. */
  readonly deletesOld: boolean;
};

/**
 * Rewraps the system keys and every data key under the first root key. No value is touched. If the root key is the
 * generated one, a new one is made and put in front of it first, unless an earlier run has done that.
 *
 * @param finish - drops the older ones from the generated file afterwards
 * @returns the id of the root key that everything is under now, and of those that nothing is under any more; how many keys
 *   this run rewrapped; what the root keys are called, a setting or the generated file; whether the older ones were dropped
 *   from that, and the files that keep them beside it
 * @throws Refused `conflict` if there is one root key and everything is under it, or if data keys do not open;
 *   `invalid` if `finish` is asked for and the root keys are not in the generated file
 */
export async function rotateRoot(
  admin: AdminContext,
  config: Config,
  finish: Finish | false,
  report: Progress = () => {},
) {
  Permit.operator(admin);
  const source = rootKeyName(config);
  if (config.rootKey.from !== "folder") {
    if (finish) throw notGenerated(source);
    return { ...(await rewrapAll(admin, source, report)), source, dropped: false, kept: [] };
  }
  using _ = lockKeyFile(config);
  // The admin's own keyring was opened before the lock was held.
  const opened = async () => ({ ...admin, keyring: await openKeyring(config, true, () => {}) });
  removeKeyDrafts(config);
  const before = await opened();
  if (finish) {
    const older = await olderRoots(before, source);
    if ((finish.older ?? older.join(", ")) !== older.join(", ")) {
      throw new Refused("conflict", "The older root key is another one than was shown. Nothing was changed.");
    }
  } else {
    await requireKnownRoots(before, source);
    addRootKey(config);
  }
  const rewrapped = await rewrapAll(await opened(), source, report);
  const kept = finish ? dropOlderRootKeys(config, !finish.deletesOld) : [];
  return { ...rewrapped, source, dropped: finish !== false, kept };
}

/**
 * The root keys that a rotation drops in the end.
 * @throws as {@link rotateRoot}, but changes nothing
 */
export async function planFinish(admin: AdminContext, config: Config): Promise<readonly string[]> {
  Permit.operator(admin);
  const source = rootKeyName(config);
  if (config.rootKey.from !== "folder") throw notGenerated(source);
  using _ = lockKeyFile(config);
  return olderRoots({ ...admin, keyring: await openKeyring(config, true, () => {}) }, source);
}

function notGenerated(source: string): Refused {
  return new Refused("invalid", `The root keys come from ${source}: take the older one out there.`);
}

async function olderRoots(admin: AdminContext, source: string): Promise<readonly string[]> {
  if ((await requireKnownRoots(admin, source)) === 0) requireOlder(admin, source);
  await requireOpening(admin);
  return admin.keyring.rootIds.slice(1);
}

async function rewrapAll(admin: AdminContext, source: string, report: Progress) {
  const { rootId, rootIds } = admin.keyring;
  const left = await requireKnownRoots(admin, source);
  if (left === 0) requireOlder(admin, source);
  const systemKeys = await rewrapSystemKeys(admin);
  const { dataKeys: d } = admin.database.tables;
  const due = await admin.database.db.selectDistinct({ id: d.projectId }).from(d).where(ne(d.rootId, rootId));
  let dataKeys = 0;
  const broken: string[] = [];
  for (let from = 0; from < due.length; from += rewrappedAtOnce) {
    const projectIds = due.slice(from, from + rewrappedAtOnce).map(({ id }) => id);
    const batch = await inTurn(admin, (admin) => rewrapDataKeys(admin, projectIds));
    dataKeys += batch.moved;
    broken.push(...batch.broken);
    report(systemKeys + dataKeys, left);
  }
  if (broken.length > 0) {
    const words = `Does not open, and stayed as it was: ${listed(broken)}. Keep the older root key; all else is under ${rootId} now.`;
    throw new Refused("conflict", words);
  }
  return { rootId, olderRootIds: rootIds.filter((id) => id !== rootId), systemKeys, dataKeys };
}

/** @throws Refused `conflict` if a data key that is due does not open: {@link rewrapAll} would refuse in the end */
async function requireOpening({ database, keyring }: AdminContext): Promise<void> {
  const { dataKeys: d } = database.tables;
  const due = await database.db.select().from(d).where(ne(d.rootId, keyring.rootId));
  const broken = due
    .filter((key) => {
      const { projectId, generation, rootId, wrapped } = key;
      return orUndefined(() => keyring.rewrapDataKey(projectId, generation, rootId, wrapped)) === undefined;
    })
    .map(({ projectId, generation }) => `data key ${generation} of project ${projectId}`);
  if (broken.length === 0) return;
  const words = `Does not open: ${listed(broken)}. Keep the older root key. Nothing was changed.`;
  throw new Refused("conflict", words);
}

/** @throws Refused `conflict` if there is no older root key and everything is under the first */
function requireOlder({ keyring: { rootId, rootIds } }: AdminContext, source: string): void {
  if (rootIds.length > 1) return;
  const words = `${source} holds one root key, ${rootId}, and everything is under it already: nothing was changed. A rotation needs a new one in front of it.`;
  throw new Refused("conflict", words);
}

/**
 * @returns how many keys are not under the first root key
 * @throws Refused `conflict` if one is under a root key that is not configured, or one of the notary's is damaged
 */
async function requireKnownRoots(admin: AdminContext, source: string): Promise<number> {
  const { systemKeys: s, dataKeys: d, auditSigners: a } = admin.database.tables;
  const count = sql<number>`count(*)`.mapWith(Number);
  let left = 0;
  for (const table of [s, d, a]) {
    const rows = await admin.database.db.select({ rootId: table.rootId, count }).from(table).groupBy(table.rootId);
    for (const row of rows) {
      if (!admin.keyring.rootIds.includes(row.rootId)) {
        const words = `${row.count} keys are under the root key ${row.rootId}, which ${source} does not hold: put it behind the others. Nothing was changed.`;
        throw new Refused("conflict", words);
      }
      if (row.rootId !== admin.keyring.rootId) left += row.count;
    }
  }
  const { flaws } = await findVerifiers(admin.database, admin.keyring, admin.systemKeys.audit);
  if (flaws[0] !== undefined) throw new Refused("conflict", `${flaws[0].sentence} Nothing was changed.`);
  return left;
}

/**
 * Moves the system keys and the notary's, all at once. From then on, new data keys go under this root key: see
 * {@link currentRootId}.
 */
function rewrapSystemKeys(admin: AdminContext): Promise<number> {
  const { systemKeys: s, auditSigners: a } = admin.database.tables;
  return inTurn(admin, async (admin) => {
    const { db } = admin.database;
    const query = db.select().from(s).where(ne(s.rootId, admin.keyring.rootId)).orderBy(asc(s.purpose));
    const rows = await admin.database.locked(query);
    for (const row of rows) {
      const purpose = purposes.find((one) => one === row.purpose) as SystemKeyPurpose;
      const rewrapped = admin.keyring.rewrapSystemKey(purpose, row.rootId, row.wrapped);
      await db.update(s).set(rewrapped).where(eq(s.purpose, purpose));
    }
    const signers = await db.select().from(a).where(ne(a.rootId, admin.keyring.rootId));
    for (const { generation, rootId, wrapped } of signers) {
      const rewrapped = admin.keyring.rewrapSystemKey(`notary ${generation}`, rootId, wrapped);
      await db.update(a).set(rewrapped).where(eq(a.generation, generation));
    }
    const change: Change = { action: "root_key.rotate", organization: null, names: [admin.keyring.rootId] };
    const moved = rows.length + signers.length;
    await recordChanges(admin, moved > 0 ? [change] : []);
    return moved;
  });
}

async function rewrapDataKeys(admin: AdminContext, projectIds: readonly string[]) {
  const { dataKeys: d } = admin.database.tables;
  const {
    keyring,
    database: { db },
  } = admin;
  if ((await currentRootId(admin.database)) !== keyring.rootId) {
    throw new Refused("conflict", "Another rotation, to another root key, has begun: run this one again.");
  }
  const due = and(ne(d.rootId, keyring.rootId), inArray(d.projectId, [...projectIds]));
  const rows = await db.select().from(d).where(due).orderBy(asc(d.projectId), asc(d.generation));
  let moved = 0;
  const broken: string[] = [];
  for (const { projectId, generation, rootId, wrapped } of rows) {
    const rewrapped = orUndefined(() => keyring.rewrapDataKey(projectId, generation, rootId, wrapped));
    if (rewrapped === undefined) {
      broken.push(`data key ${generation} of project ${projectId}`);
      continue;
    }
    // Changes nothing if a concurrent run was first, or if the key is gone.
    const changed = await db
      .update(d)
      .set(rewrapped)
      .where(and(eq(d.projectId, projectId), eq(d.generation, generation), eq(d.rootId, rootId)))
      .returning({ generation: d.generation });
    moved += changed.length;
  }
  return { moved, broken };
}

/**
 * Gives a project a data key of a new generation, or each project if none is named; reseals everything in it and
 * deletes the older data keys. New writes use the new one at once.
 *
 * If an earlier run was interrupted, this one finishes it and begins no new generation: a project with more than one
 * data key is in the middle of a rotation. Projects that the interrupted run had finished are recognized by the moment
 * it began, which all its data keys carry.
 */
export async function rotateData(admin: AdminContext, where: string | undefined, report: Progress = () => {}) {
  Permit.operator(admin);
  const targets = where === undefined ? await everyProject(admin) : [await findProject(admin, where, "write")];
  const { unfinished, due, lost } = await planRotation(admin, targets);
  const begunAt = admin.now();
  for (let from = 0; from < due.length; from += begunAtOnce) {
    await inTurn(admin, async (admin) => {
      const changes: Change[] = [];
      for (const one of due.slice(from, from + begunAtOnce)) {
        if (!(await beginGeneration(admin, one, begunAt))) continue;
        const { organization, ...project } = one.project;
        changes.push({ action: "data_key.rotate", organization, project, names: [] });
      }
      await recordChanges(admin, changes);
    });
  }
  const tally = { sets: 0, versions: 0, contents: 0, deletedKeys: 0 };
  const broken = lost.map((project) => `the data key of ${projectPath(project)}`);
  const projects = [...unfinished, ...due.map(({ project }) => project)];
  for (const [index, project] of projects.entries()) {
    for await (const part of resealProject(admin, project)) {
      for (const what of tallied) tally[what] += part[what] ?? 0;
      broken.push(...(part.broken ?? []));
    }
    report(index + 1, projects.length);
  }
  return { projects: projects.length, resumed: unfinished.length, ...tally, broken: [...new Set(broken)] };
}

/** Moves all of a project under its newest data key, one transaction after the other. */
async function* resealProject(admin: AdminContext, project: FoundProject): AsyncGenerator<StepResult> {
  for (const step of [resealSets, resealVersions, resealContents, deleteOlderKeys]) {
    let after: string | undefined = "";
    while (after !== undefined) {
      const from: string = after;
      const part = await inTurn(admin, (admin) => withLock(admin, project, from, step));
      yield part;
      after = part.after;
    }
  }
}

type Due = { readonly project: FoundProject; readonly generation: number };

/** Which of the projects are in the middle of a rotation, which are to begin one, and which have no data key. */
async function planRotation(admin: AdminContext, targets: readonly FoundProject[]) {
  const { dataKeys: d } = admin.database.tables;
  const rows = await admin.database.db
    .select({ projectId: d.projectId, generation: d.generation, createdAt: d.createdAt })
    .from(d)
    .where(targets.length === 1 ? eq(d.projectId, targets[0]?.id ?? "") : undefined)
    .orderBy(asc(d.projectId), asc(d.generation));
  const keys = Map.groupBy(rows, ({ projectId }) => projectId);
  const unfinished = targets.filter(({ id }) => keys.get(id)?.length !== 1);
  const interruptedAt = new Set(unfinished.map(({ id }) => keys.get(id)?.at(-1)?.createdAt));
  const due = targets.flatMap((project): Due[] => {
    const [key, ...more] = keys.get(project.id) ?? [];
    if (key === undefined || more.length > 0 || interruptedAt.has(key.createdAt)) return [];
    return [{ project, generation: key.generation }];
  });
  return { unfinished, due, lost: targets.filter(({ id }) => !keys.has(id)) };
}

/** Makes a project's next data key. @returns false if another run was first or the project is gone */
async function beginGeneration(admin: AdminContext, { project, generation }: Due, begunAt: number) {
  const { dataKeys: d } = admin.database.tables;
  const { db } = admin.database;
  await admin.database.lockProject(db, project.id);
  const keys = await db.select({ generation: d.generation }).from(d).where(eq(d.projectId, project.id));
  if (keys.length !== 1 || keys[0]?.generation !== generation) return false;
  const rootId = await currentRootId(admin.database);
  const next = generation + 1;
  const wrapped = admin.keyring.wrapDataKey(project.id, next, newKey(), rootId);
  await db.insert(d).values({ projectId: project.id, generation: next, ...wrapped, createdAt: begunAt });
  return true;
}

const tallied = ["sets", "versions", "contents", "deletedKeys"] as const;

/** The result of one transaction; `after` is where the next one continues, if there is more to do. */
type StepResult = { readonly [what in (typeof tallied)[number]]?: number } & {
  readonly broken?: readonly string[];
  readonly after?: string;
};

/** Runs a step with the project locked. A project whose data key does not open stays as it is. */
async function withLock(
  admin: AdminContext,
  project: FoundProject,
  after: string,
  step: (admin: AdminContext, project: LockedProject, after: string) => Promise<StepResult>,
): Promise<StepResult> {
  try {
    const locked = await lockProject(admin, project);
    return locked === undefined ? {} : await step(admin, locked, after);
  } catch (error) {
    if (!(error instanceof Fault && error.code === "decryption_failed")) throw error;
    return { broken: [`the data key of ${projectPath(project)}`] };
  }
}

/** Reseals the next set that is under an older data key. What its items say and when they changed stays. */
async function resealSets(admin: AdminContext, project: LockedProject, after: string): Promise<StepResult> {
  const withValues = everyKind.filter(({ hasValues }) => hasValues);
  const due = withValues.flatMap((descriptor) =>
    environments.map((environment) => ({ descriptor, environment, id: `${descriptor.kind} in ${environment}` })),
  );
  const next = due[due.findIndex(({ id }) => id === after) + 1];
  if (next === undefined) return {};
  const { descriptor, environment, id } = next;
  const set = await findSet(admin, { project, descriptor, environment });
  const isCurrent = set?.stored.generation === project.dataKey.generation;
  const opens = () => orUndefined(() => set?.open().all.fill(0)) !== undefined;
  const isWhole = set !== undefined && (isCurrent ? opens() : await reseal(admin, project, descriptor, set));
  if (!isWhole) return { broken: [`the ${id} of ${projectPath(project)}`], after: id };
  return { ...(!isCurrent && { sets: 1 }), after: id };
}

/** As {@link resealSet}. @returns whether it opened */
function reseal(...version: Parameters<typeof resealSet<Entry>>) {
  const done = resealSet(...version).then(() => true);
  return unlessRefused(done, ["conflict"], () => false);
}

/** Reseals some kept versions that are under an older data key. */
async function resealVersions(admin: AdminContext, project: LockedProject, after: string): Promise<StepResult> {
  const { setVersions: v } = admin.database.tables;
  const [kind = "", environment = "", version = 0] = after.split(" ");
  const rows = await admin.database.db
    .select({
      kind: v.kind,
      environment: v.environment,
      version: v.version,
      bytes: sql`length(${v.sealed})`.mapWith(Number),
    })
    .from(v)
    .where(
      and(
        eq(v.projectId, project.id),
        sql`(${v.kind}, ${v.environment}, ${v.version}) > (${kind}, ${environment}, ${Number(version)})`,
        isNotNull(v.sealed),
        isUnderOther(v, project.dataKey),
      ),
    )
    .orderBy(asc(v.kind), asc(v.environment), asc(v.version))
    .limit(itemsMax);
  const broken: string[] = [];
  let [versions, bytes, last] = [0, 0, ""];
  for (const row of rows) {
    const descriptor = descriptorOf(row.kind);
    const set = await findSet(admin, { project, descriptor, environment: row.environment }, row.version);
    if (set !== undefined && (await reseal(admin, project, descriptor, set, true))) versions += 1;
    else broken.push(`version ${row.version} of the ${row.kind} in ${row.environment} of ${projectPath(project)}`);
    last = `${row.kind} ${row.environment} ${row.version}`;
    bytes += row.bytes;
    if (bytes >= atOnceBytes) break;
  }
  return { versions, broken, ...(last !== "" && { after: last }) };
}

/**
 * Reseals some contents that are under an older data key, and deletes those that no listing names. If a listing is
 * damaged, what the others do not name stays as it is, since it may be the damaged one's.
 */
async function resealContents(admin: AdminContext, project: LockedProject, after: string): Promise<StepResult> {
  const { fileContents: c } = admin.database.tables;
  const { dataKey } = project;
  const { db } = admin.database;
  const { contents: listed, damaged } = await findListed(admin, project, everyKind);
  const rows = await db
    .select({ id: c.id, size: c.size })
    .from(c)
    .where(and(eq(c.projectId, project.id), gt(c.id, after), isUnderOther(c, dataKey)))
    .orderBy(asc(c.id))
    .limit(itemsMax);
  const broken = damaged.map((what) => `${what} of ${projectPath(project)}`);
  let contents = 0;
  let bytes = 0;
  for (const { id, size } of rows) {
    const found = listed.get(id);
    bytes += size;
    if (found === undefined && damaged.length === 0) await db.delete(c).where(eq(c.id, id));
    else if (found !== undefined && (await resealContent(admin, project, found.entry))) contents += 1;
    else if (found !== undefined) broken.push(`${found.what} of ${projectPath(project)}`);
    if (bytes >= atOnceBytes) return { contents, broken, after: id };
  }
  return { contents, broken, ...(rows.length === itemsMax && { after: rows.at(-1)?.id ?? "" }) };
}

/** @returns whether it opened */
async function resealContent(admin: AdminContext, project: LockedProject, entry: ContentEntry): Promise<boolean> {
  const { fileContents: c } = admin.database.tables;
  const opened = await openContent(admin, project.id, entry);
  if (opened === undefined) return false;
  const sealed = sealContent(project, entry, opened);
  opened.fill(0);
  await admin.database.db.update(c).set(sealed).where(eq(c.id, entry.id));
  return true;
}

/** Deletes the data keys before the newest, unless something is still under one of them. */
async function deleteOlderKeys(admin: AdminContext, project: LockedProject): Promise<StepResult> {
  const { sets, setVersions, fileContents, dataKeys: d } = admin.database.tables;
  const { dataKey } = project;
  const { db } = admin.database;
  for (const table of [sets, setVersions, fileContents]) {
    const old = and(eq(table.projectId, project.id), isNotNull(table.sealed), isUnderOther(table, dataKey));
    const [found] = await db.select({ one: sql`1` }).from(table).where(old).limit(1);
    if (found) return {};
  }
  const deleted = await db
    .delete(d)
    .where(and(eq(d.projectId, project.id), lt(d.generation, dataKey.generation)))
    .returning({ generation: d.generation });
  return { deletedKeys: deleted.length };
}

/** Whether a row is under another data key, by its column or by its envelope: SQL may have made them differ. */
function isUnderOther(table: Tables["sets"] | Tables["setVersions"] | Tables["fileContents"], { generation }: DataKey) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(generation);
  return sql`(${table.generation} <> ${generation} or substr(${table.sealed}, 3, 4) <> ${bytes})`;
}

/**
 * One write transaction, retried if it lost a race for a lock: `work` must change nothing but the database. The
 * embedded database has one writer at a time, so the server's journal then gets as long a turn as the transaction took.
 */
async function inTurn<T>(admin: AdminContext, work: (admin: AdminContext) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    let heldFromMs = performance.now();
    try {
      const result = await within(admin, (admin) => {
        heldFromMs = performance.now();
        return work(admin);
      });
      if (admin.database.dialect === "sqlite") await Bun.sleep(Math.max(1, performance.now() - heldFromMs));
      return result;
    } catch (error) {
      if (attempt === attemptsMax || !/^(?:SQLITE_BUSY|40001$|40P01$)/.test(databaseErrorCode(error))) throw error;
    }
  }
}

const attemptsMax = 5;
const rewrappedAtOnce = 100;
const begunAtOnce = 50;
/** Some 30 ms of work, during which the embedded database can write no audit entry. */
const atOnceBytes = 4 * 1024 * 1024;
