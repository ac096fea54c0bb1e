import { and, count, desc, eq, isNotNull, like, ne, sql } from "drizzle-orm";
import type { Environment } from "../../core/names.ts";
import { everyKind } from "../../kinds/kind.ts";
import { descriptorOf } from "../../kinds/people.ts";
import type { NamesWritten } from "../../record/entry.ts";
import type { VerifiedSet } from "../../serve/sets/verified-set.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";
import { findProject, findToChange } from "../desk/projects.ts";
import { deleteUnusedContents } from "../editing/contents.ts";
import { keptSizes } from "../editing/kept-versions.ts";
import { findSet } from "../editing/open.ts";
import { isOfSet, isRecordOf, isVerified, recordColumns, type SetName } from "../editing/version-records.ts";

/* The history of a set, version by version. */

/** Which set: its project as people write it, its environment and its kind. */
export type SetAt = { readonly where: string; readonly environment: Environment; readonly kind: string };

/** Who wrote a version, when, and which names it touched. */
export type VersionRecord = NamesWritten & {
  readonly version: number;
  readonly at: number;
  readonly actor: { readonly type: "person"; readonly name: string };
};

/**
 * The versions of a set, newest first, how many bytes the earlier ones take, and what a person must be warned of: what
 * SQL did to the set or to its history.
 * @param name - only the versions that wrote this item, and of their names only this one
 * @returns `earlier`: the kept version that has the item's value from before them, if there is one
 */
export async function listHistory(admin: AdminContext, set: SetAt, name?: string) {
  const of = await findToSee(admin, set);
  const current = await findSet(admin, of);
  const { records, unverified } = await readRecords(admin, of, current);
  const what = `the ${set.kind} of ${set.where} in ${set.environment}`;
  const warnings = unverified.map((version) => `Version ${version} is not listed: its record was changed with SQL.`);
  if (current === undefined)
    warnings.push(`${what[0]?.toUpperCase()}${what.slice(1)} were deleted or changed with SQL.`);
  const lost = records.filter(({ version, isKept }) => !isKept && version !== current?.stored.version);
  if (current !== undefined && lost.length > 0) {
    const gone = lost.map(({ version }) => version).join(", ");
    const were = lost.length === 1 ? `Version ${gone} was` : `Versions ${gone} were`;
    warnings.push(`Somebody put ${what} back to an earlier version with SQL. ${were} lost.`);
  }
  const newest = { version: current?.stored.version ?? Number.MAX_SAFE_INTEGER, entries: current?.entries ?? [] };
  const sizes = await keptSizes({ admin, set: of, current: newest });
  const kept = { versions: sizes.length, bytes: sizes.reduce((sum, { bytes }) => sum + bytes, 0) };
  const all = records.map(({ isKept: _, ...record }) => record);
  const { versions, earlier } = name === undefined ? { versions: all } : await ofItem(admin, of, all, name);
  return { versions, earlier, kept, warnings };
}

/** The versions of one item, newest first, and `earlier` as in {@link listHistory}. */
export async function listItemHistory(admin: AdminContext, set: SetAt, name: string) {
  const of = await findToSee(admin, set);
  const { sets: s } = admin.database.tables;
  const [stored] = await admin.database.db
    .select({ version: s.version, listingMac: s.listingMac })
    .from(s)
    .where(isOfSet(s, of));
  const { records } = await readRecords(admin, of, stored && { stored }, name);
  return ofItem(admin, of, records, name);
}

/**
 * For each version, the names that people could read in it and that are for machines only now. Going back to it would
 * take that mark away, which is refused.
 * @param versions - newest first; of one item, those that wrote it
 */
export async function findMarkedSince(
  admin: AdminContext,
  at: SetAt,
  versions: readonly (NamesWritten & Pick<VersionRecord, "version">)[],
): Promise<ReadonlyMap<number, readonly string[]>> {
  const of = await findToSee(admin, at);
  const { nameOf } = of.descriptor;
  const current = await findSet(admin, of);
  const marked = new Set(current?.entries.filter((entry) => current.isMachinesOnly(entry)).map(nameOf));
  const found = new Map<number, readonly string[]>();
  for (const [index, one] of versions.entries()) {
    if (marked.size === 0) break;
    const newer = versions[index - 1];
    const isAlike = newer?.version === one.version + 1 && !namesOf(newer).some((name) => marked.has(name));
    const set = isAlike ? undefined : await findSet(admin, of, one.version);
    const names = set?.entries.filter((entry) => !set.isMachinesOnly(entry)).map(nameOf) ?? [];
    found.set(one.version, isAlike ? (found.get(newer.version) ?? []) : names.filter((name) => marked.has(name)));
  }
  return found;
}

async function findToSee(admin: AdminContext, { where, environment, kind }: SetAt) {
  const project = await findProject(admin, where, "see", [environment]);
  return { project, descriptor: descriptorOf(kind), environment };
}

/** The versions that wrote an item, newest first. `earlier`: the kept version with its value from before them. */
export type ItemHistory = { readonly versions: readonly VersionRecord[]; readonly earlier?: number | undefined };

async function ofItem(admin: AdminContext, of: SetName, records: readonly VersionRecord[], name: string) {
  const only = (names: readonly string[]) => names.filter((one) => one === name);
  const versions = records
    .map(({ version, at, actor, added, changed, deleted }) => {
      return { version, at, actor, added: only(added), changed: only(changed), deleted: only(deleted) };
    })
    .filter((one) => namesOf(one).length > 0);
  const oldest = versions.at(-1);
  if (oldest === undefined || oldest.added.length > 0) return { versions };
  const { setVersions: v } = admin.database.tables;
  const [before] = await admin.database.db
    .select({ version: v.version })
    .from(v)
    .where(and(isOfSet(v, of), eq(v.version, oldest.version - 1), isNotNull(v.listing)));
  return { versions, earlier: before?.version };
}

/** All names that a version wrote. */
export function namesOf({ added, changed, deleted }: NamesWritten): string[] {
  return [...added, ...changed, ...deleted];
}

/**
 * The records of a set's versions, newest first, and the numbers of those that Keyhole did not write, or that are not
 * of the content that has their number now.
 * @param current - the set, if it verifies
 * @param name - only those that may name this item
 */
export async function readRecords(
  admin: AdminContext,
  of: SetName,
  current: { readonly stored: Pick<VerifiedSet["stored"], "version" | "listingMac"> } | undefined,
  name?: string,
) {
  const { setVersions: v } = admin.database.tables;
  // A backslash would escape what follows it, on one database alone.
  const pattern = name && `%${JSON.stringify(name).replaceAll("\\", "_")}%`;
  const isKept = sql`${v.listing} is not null`.mapWith(Boolean);
  const rows = await admin.database.db
    .select({ ...recordColumns(admin), isKept })
    .from(v)
    .where(and(isOfSet(v, of), pattern === undefined ? undefined : like(v.names, pattern)))
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

/**
 * Removing all versions of a set but the current one, and the contents of files that only they needed. For operators.
 * It says how many versions it removed, and what a person must be warned of.
 */
export async function planPurge(admin: AdminContext, { where, environment, kind }: SetAt) {
  const descriptor = descriptorOf(kind);
  const permit = Permit.operator(admin);
  const project = await findToChange(admin, where, "write", [environment]);
  const of = { project, descriptor, environment };
  const { sets: s, setVersions: v } = admin.database.tables;
  const { db } = admin.database;
  const [current] = await db.select({ version: s.version }).from(s).where(isOfSet(s, of));
  const version = current?.version ?? 0;
  const isEarlier = and(isOfSet(v, of), ne(v.version, version));
  const [{ versions } = { versions: 0 }] = await db.select({ versions: count() }).from(v).where(isEarlier);
  const purge = async (admin: AdminContext) => {
    await admin.database.db.delete(v).where(isEarlier);
    const damaged = descriptor.hasValues ? [] : await deleteUnusedContents(admin, project, everyKind);
    const warnings = damaged.map(
      (what) =>
        `No content of a ${descriptor.item} was deleted, since ${what} may name any: it was changed by other means.`,
    );
    const { organization, id, slug } = project;
    const change = { organization, project: { id, slug }, environment, names: [kind] };
    return [{ removed: versions, warnings }, [{ action: "history.purge", ...change }]] as const;
  };
  const seen = { project: project.id, [`version.${environment}`]: version, versions };
  return { versions, seen, apply: () => writing(admin, permit, purge) };
}
