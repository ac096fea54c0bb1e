import { asc, eq, sql } from "drizzle-orm";
import { sha256Of } from "../../core/hash.ts";
import { type Environment, environments } from "../../core/names.ts";
import { exits, Problem } from "../../core/problem.ts";
import { everyKind } from "../../kinds/kind.ts";
import type { OpenedItems } from "../../seal/set.ts";
import { type ContentEntry, countsColumnOf, type Entry, type KindDescriptor } from "../../serve/sets/kind.ts";
import type { VerifiedSet } from "../../serve/sets/verified-set.ts";
import { verifyAudit } from "../audit/audit-chain.ts";
import type { AdminContext } from "../desk/context.ts";
import { verified } from "../desk/organizations.ts";
import { everyProject, type FoundProject, projectPath } from "../desk/projects.ts";
import { namesContent, openContent } from "../editing/contents.ts";
import { countsOf } from "../editing/counts.ts";
import { findSet, keptVersions } from "../editing/open.ts";
import { readRecords } from "../history/history.ts";
import { sealedAs } from "../keys/keys.ts";

/** How much of everything was opened. */
export type Opened = {
  projects: number;
  sets: number;
  /** Earlier versions of sets. */
  versions: number;
  /** By kind. */
  items: Record<string, number>;
  keys: number;
  auditEntries: number;
};

/**
 * Opens every set and every file content of a database, one after the other, and keeps nothing of it; checks every
 * project's counts and the grant seal of every key and trust, and walks the audit chain.
 *
 * @param progress - called with how many projects and audit entries are done, of how many
 * @throws Problem that names the first item that is not what was stored; it shows no value
 */
export async function openEverything(admin: AdminContext, progress: (done: number, total: number) => void = () => {}) {
  const projects = await everyProject(admin);
  const { db, tables: t } = admin.database;
  const items = Object.fromEntries(everyKind.map(({ kind }) => [kind, 0]));
  const opened: Opened = { projects: 0, sets: 0, versions: 0, items, keys: 0, auditEntries: 0 };
  const inSegment = sql<number>`coalesce(sum(${t.auditSegments.lastSeq} - ${t.auditSegments.firstSeq} + 1), 0)`;
  const [entries] = await db.select({ total: inSegment }).from(t.auditSegments);
  const total = projects.length + Number(entries?.total);
  for (const organization of await db.select().from(t.organizations)) {
    check(`the organization ${organization.slug}`, () => verified(admin, organization));
  }
  for (const project of projects) {
    for (const key of await db.select().from(t.dataKeys).where(eq(t.dataKeys.projectId, project.id))) {
      const { generation, rootId, wrapped } = key;
      check(`data key ${generation} of ${projectPath(project)}`, () =>
        admin.keyring.dataKey(project.id, generation, rootId, wrapped),
      );
    }
    for (const descriptor of everyKind) await openKind(admin, project, descriptor, opened);
    opened.projects += 1;
    progress(opened.projects, total);
  }
  for (const row of await db.select().from(t.apiKeys).orderBy(asc(t.apiKeys.id))) {
    check(`the grant of key ${row.id}`, () => {
      // The seal of a revoked one went with its revocation.
      if (row.revokedAt === null && sealedAs(admin, row) === undefined) throw new Error("other seal");
    });
    opened.keys += 1;
  }
  const audit = await verifyAudit(admin, undefined, (entries) => progress(opened.projects + entries, total));
  const [flaw] = audit.flaws;
  if (flaw) throw damaged(`The audit does not verify. ${flaw.sentence}`);
  opened.auditEntries = audit.entries;
  return opened;
}

/** The sets of one kind with their kept versions, each item of them, and their counts. */
async function openKind(
  admin: AdminContext,
  project: FoundProject & Readonly<Record<string, unknown>>,
  descriptor: KindDescriptor,
  opened: Opened,
): Promise<void> {
  const { kind, hasValues } = descriptor;
  const entries = new Map<Environment, readonly Entry[]>();
  const contentsOpened = new Set<string>();
  const openAll = async (what: string, set: VerifiedSet | undefined): Promise<readonly Entry[]> => {
    const verified = check(what, () => {
      if (set === undefined) throw new Error("it is missing, or its listing was changed");
      if (hasValues) checkItems(descriptor, set.entries, set.open());
      return set;
    });
    for (const entry of verified.entries) {
      if (!namesContent(descriptor, entry)) break;
      // Versions and environments share contents.
      const content = `${entry.id} ${entry.size} ${entry.sha256}`;
      const name = `${descriptor.item} ${JSON.stringify(descriptor.nameOf(entry))}`;
      if (!contentsOpened.has(content)) await checkContent(admin, project, name, entry);
      contentsOpened.add(content);
    }
    return verified.entries;
  };
  for (const environment of environments) {
    const of = { project, descriptor, environment };
    const what = `the set of ${kind} of ${projectPath(project)}, ${environment},`;
    const set = await findSet(admin, of);
    const found = await openAll(what, set);
    entries.set(environment, found);
    opened.sets += 1;
    opened.items[kind] = (opened.items[kind] ?? 0) + found.length;
    for await (const [version, kept] of keptVersions(admin, of)) {
      await openAll(`version ${version} of ${what}`, kept);
      opened.versions += 1;
    }
    const { records, unverified } = await readRecords(admin, of, set);
    const [forged] = unverified;
    if (forged !== undefined) throw damaged(`Who wrote version ${forged} of ${what} was changed with SQL.`);
    const newest = records[0]?.version ?? 0;
    if (newest > (set?.stored.version ?? 0)) {
      throw damaged(`Somebody put ${what} back to an earlier version with SQL: version ${newest} was written.`);
    }
  }
  check(`the count of ${kind} of ${projectPath(project)}`, () => {
    if (project[countsColumnOf(descriptor)] !== JSON.stringify(countsOf(descriptor, entries))) throw new Error("other");
  });
}

/** Checks that each value is JSON and belongs to its entry. */
function checkItems(descriptor: KindDescriptor, entries: readonly Entry[], { all, item }: OpenedItems): void {
  for (const [index, entry] of entries.entries()) {
    const value: unknown = JSON.parse(item(index).toString("utf8"));
    if (descriptor.isValueOf?.(value, entry) === false) throw new Error("a value is not that of its entry");
  }
  all.fill(0);
}

/** One at a time: each may have 8 MiB. */
async function checkContent(admin: AdminContext, project: FoundProject, name: string, entry: ContentEntry) {
  const content = await openContent(admin, project.id, entry);
  check(`the ${name} of ${projectPath(project)}`, () => {
    const sha256 = content && sha256Of(content);
    if (sha256 !== entry.sha256) throw new Error("its content is missing or another one");
  });
  content?.fill(0);
}

function check<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw damaged(`${what[0]?.toUpperCase()}${what.slice(1)} does not open.`, error);
  }
}

function damaged(message: string, cause?: unknown): Problem {
  return new Problem(exits.failed, "backup_damaged", message, { cause });
}
