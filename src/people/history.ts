import { and, desc, ne, sql } from "drizzle-orm";
import type { NamesWritten } from "../audit/entry.ts";
import type { Environment } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { type AdminContext, mayCompare, requireFreshToCompare, writing } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import {
  type FoundProject,
  findProject,
  type LockedProject,
  lockProject,
  noProject,
  otherProject,
  placeOf,
} from "../desk/projects.ts";
import { isOfSet, isRecordOf, isVerified, recordColumns, type SetName } from "../installation/version-records.ts";
import { descriptorOf, everyKind } from "../kinds/kind.ts";
import { deleteUnusedContents, namesContent, openContent } from "../sets/contents.ts";
import { keptSizes } from "../sets/kept-versions.ts";
import type { Entry, KindDescriptor } from "../sets/kind.ts";
import { damagedVersion, findSet, type Item, type OpenSet, openSet, openVersion } from "../sets/open.ts";
import type { VerifiedSet } from "../sets/verified-set.ts";
import { type NewItem, type SetChanges, type SetWrite, writeSets } from "../sets/write.ts";
import { requireProjectRoom, writingProject } from "../sets/write-project.ts";
import { contentOf } from "./comparison.ts";

/* The history of a set, version by version, and the way back. */

/** Who wrote a version, when, and which names it touched. */
export type VersionRecord = NamesWritten & {
  readonly version: number;
  readonly at: number;
  readonly actor: { readonly type: "person"; readonly name: string };
};

/**
 * The versions of a set, newest first, how many bytes the earlier ones take, and what a person must be warned of: what
 * SQL did to the set or to its history.
 */
export async function listHistory(admin: AdminContext, where: string, environment: Environment, kind: string) {
  const descriptor = descriptorOf(kind);
  const project = await findProject(admin, where, "see", [environment]);
  const of = { project, descriptor, environment };
  const current = await findSet(admin, of);
  const { records, unverified } = await readRecords(admin, of, current);
  const what = `the ${kind} of ${where} in ${environment}`;
  const warnings = unverified.map((version) => `Version ${version} is not listed: its record was changed with SQL.`);
  if (current === undefined)
    warnings.push(`${what[0]?.toUpperCase()}${what.slice(1)} were deleted or changed with SQL.`);
  const lost = records.filter(({ version, isKept }) => !isKept && version !== current?.stored.version);
  if (current !== undefined && lost.length > 0) {
    const gone = lost.map(({ version }) => version).join(", ");
    warnings.push(`Somebody put ${what} back to an earlier version with SQL. Lost by that: version ${gone}.`);
  }
  const newest = { version: current?.stored.version ?? Number.MAX_SAFE_INTEGER, entries: current?.entries ?? [] };
  const sizes = await keptSizes({ admin, db: admin.database.db, set: of, current: newest });
  const kept = { versions: sizes.length, bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0) };
  return { versions: records.map(({ isKept: _, ...record }) => record), kept, warnings };
}

/**
 * The records of a set's versions, newest first, and the numbers of those that Keyhole did not write, or that are not
 * of the content that has their number now.
 * @param current - the set, if it verifies
 */
export async function readRecords(admin: AdminContext, of: SetName, current: Pick<VerifiedSet, "stored"> | undefined) {
  const { setVersions: v } = admin.database.tables;
  const isKept = sql`${v.listing} is not null`.mapWith(Boolean);
  const rows = await admin.database.db
    .select({ ...recordColumns(admin), isKept })
    .from(v)
    .where(isOfSet(v, of))
    .orderBy(desc(v.version));
  const verified = rows.filter(
    (row) => isVerified(admin, row) && (row.version !== current?.stored.version || isRecordOf(row, current.stored)),
  );
  return {
    records: verified.map((row) => {
      const { added, changed, deleted } = JSON.parse(row.names) as NamesWritten;
      const actor = { type: "person", name: row.actor } as const;
      return { version: row.version, at: row.at, actor, added, changed, deleted, isKept: row.isKept };
    }),
    unverified: rows.filter((row) => !verified.includes(row)).map((row) => row.version),
  };
}

/** What a rollback does, by name. */
export type Rollback = NamesWritten & {
  /** The version that was current when this was found out. */
  readonly from: number;
  readonly to: number;
  /** Its project: another one may have taken the path since. */
  readonly projectId: string;
};

/**
 * Finds out what a rollback would do.
 * @throws Refused `invalid` if `to` is the current version, `not_found` if it is not kept, `conflict` if something does
 *   not open, `ambiguous`
 */
export async function planRollback(
  admin: AdminContext,
  where: string,
  environment: Environment,
  kind: string,
  to: number,
): Promise<Rollback> {
  const project = await findProject(admin, where, rollbackRights, [environment]);
  requireFreshToCompare(admin, placeOf(project), [environment]);
  const locked = { ...project, db: admin.database.db, now: admin.now() };
  return (await changesBack(admin, locked, descriptorOf(kind), environment, to)).plan;
}

/**
 * Writes an earlier version of a set as its next one. Items that both versions have in common stay as they are.
 *
 * @param plan - what {@link planRollback} found out
 * @returns the number of the new version, and what a person must be warned of
 * @throws Refused as {@link planRollback}; `conflict` if the set was written since; `bound` if the project would have
 *   too many files
 */
export async function rollBack(
  admin: AdminContext,
  where: string,
  environment: Environment,
  kind: string,
  { from, to, projectId }: Rollback,
): Promise<{ readonly version: number; readonly warnings: readonly string[] }> {
  const descriptor = descriptorOf(kind);
  const work = async (project: LockedProject) => {
    const { before, plan, changes } = await changesBack(admin, project, descriptor, environment, to);
    if (plan.projectId !== projectId) throw otherProject(project);
    if (plan.from !== from) {
      const words = `Somebody wrote the ${kind} in between. Nothing was changed: look again at what would change.`;
      throw new Refused("conflict", words);
    }
    const writes = await writeSets(admin, project, descriptor, new Map([[before, changes]]));
    await requireProjectRoom(admin, project, descriptor);
    if ([...writes.values()].some(({ pruned }) => pruned)) await deleteUnusedContents(admin, project, everyKind);
    const write = writes.get(environment) as SetWrite;
    return [{ version: write.version, warnings: descriptor.warningsOf(where, environment, write) }, writes] as const;
  };
  const found = await findProject(admin, where, rollbackRights, [environment]);
  return writingProject(admin, found, descriptor, work, { action: "rollback" });
}

/** The plan names items, so it takes `see`, too. */
const rollbackRights = ["see", "write"] as const;

/** The changes that make an earlier version of the current one. */
async function changesBack(
  admin: AdminContext,
  project: FoundProject & Pick<LockedProject, "db" | "now">,
  descriptor: KindDescriptor,
  environment: Environment,
  to: number,
): Promise<{ readonly before: OpenSet; readonly plan: Rollback; readonly changes: SetChanges }> {
  const { db, now } = project;
  const of = { project, descriptor, environment };
  const before = await openSet(admin, of);
  const from = before.version;
  if (from === to) throw new Refused("invalid", `Version ${to} is the current version: nothing was changed.`);
  const { items: after } = await openVersion(admin, of, to);
  // Somebody who may not see values must not learn which of them are the same.
  const isCompared = mayCompare(admin, placeOf(project), environment);
  const changes = new Map<string, NewItem<Entry> | null>();
  const [added, changed]: [string[], string[]] = [[], []];
  for (const [name, item] of after) {
    const old = before.items.get(name);
    if (isCompared && old !== undefined && isSame(descriptor, item, old)) continue;
    (old === undefined ? added : changed).push(name);
    changes.set(name, dated(descriptor, item, now));
    const content = namesContent(descriptor, item.entry) && (await openContent(admin, db, project.id, item.entry));
    if (content === undefined) throw damagedVersion(of, to);
    if (content) content.fill(0);
  }
  const deleted = [...before.items.keys()].filter((name) => !after.has(name));
  for (const name of deleted) changes.set(name, null);
  return { before, plan: { from, to, projectId: project.id, added, changed, deleted }, changes };
}

/** An item as if it had been written at `updatedAt`. The writer gives the version. */
function dated({ datedValue }: KindDescriptor, { entry, value }: Item, updatedAt: number): NewItem<Entry> {
  return { entry: { ...entry, updatedAt }, value: value && datedValue(Buffer.from(value), updatedAt) };
}

/** Whether an item was only written again. */
function isSame(descriptor: KindDescriptor, a: Item, b: Item): boolean {
  const [entry, other] = [a, b].map((item) => JSON.stringify({ ...item.entry, updatedAt: 0, version: undefined }));
  return entry === other && contentOf(descriptor, a) === contentOf(descriptor, b);
}

/**
 * Removes all versions of a set but the current one, and the contents of files that only they needed. For operators.
 * @returns how many versions, and what a person must be warned of
 */
export async function purgeHistory(admin: AdminContext, where: string, environment: Environment, kind: string) {
  const descriptor = descriptorOf(kind);
  const permit = Permit.operator(admin);
  const found = await findProject(admin, where, "write", [environment]);
  const { sets: s, setVersions: v } = admin.database.tables;
  return writing(admin, permit, async (db) => {
    const project = await lockProject(admin, db, found);
    if (!project) throw noProject(where);
    const of = { project, descriptor, environment };
    const current = db.select({ version: s.version }).from(s).where(isOfSet(s, of));
    const gone = await db
      .delete(v)
      .where(and(isOfSet(v, of), ne(v.version, sql`coalesce(${current}, 0)`)))
      .returning({ version: v.version });
    const damaged = descriptor.hasValues ? [] : await deleteUnusedContents(admin, project, everyKind);
    const warnings = damaged.map(
      (what) =>
        `No content of a ${descriptor.item} was deleted, since ${what} may name any: it was changed by other means.`,
    );
    const { organization, id, slug } = found;
    const at = { organization, project: { id, slug }, environment };
    return [{ removed: gone.length, warnings }, [{ action: "history.purge", ...at, names: [kind] }]];
  });
}
