import { and, asc, desc, eq } from "drizzle-orm";
import { Fault } from "../fault.ts";
import { compareBytes } from "../names.ts";
import type { DataKey } from "../seal/keyring.ts";
import { everyKind, type Kind, type KindDescriptor } from "../seal/kinds.ts";
import type { Db } from "../store/database.ts";
import type { Change } from "./changes.ts";
import { deleteUnusedContents } from "./contents.ts";
import { type AdminContext, writing } from "./context.ts";
import type { FoundProject, LockedProject } from "./found-project.ts";
import { findOrganization, type Organization, requireSlug } from "./organizations.ts";
import { Refused } from "./refused.ts";
import { createSets, damagedVersion, keptVersions, namesWritten, openSets, resealSet, type SetWrites } from "./sets.ts";
import { arrayOf, displayName, isUniqueViolation } from "./validate.ts";

export type Project = {
  readonly id: string;
  /** Its slug. */
  readonly organization: string;
  readonly slug: string;
  readonly name: string;
  readonly variableCount: number;
  readonly accountCount: number;
  readonly fileCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** Makes a project with its first data key. @throws Refused `invalid`, `exists`, `not_found`, `ambiguous` */
export async function createProject(
  admin: AdminContext,
  where: string,
  asked: { readonly name?: string | undefined },
): Promise<Project> {
  const { organization, slug } = await splitPlace(admin, where);
  requireSlug("project", slug);
  const id = Bun.randomUUIDv7();
  const now = admin.now();
  const name = displayName("project", asked.name ?? slug);
  const none = JSON.stringify([0, 0, 0, 0, 0, 0, 0]);
  const t = admin.database.tables;
  try {
    await writing(admin, async (db) => {
      await db.insert(t.projects).values({
        id,
        organizationId: organization.id,
        slug,
        name,
        variableCounts: none,
        accountCounts: none,
        fileCounts: none,
        changedAt: JSON.stringify([now, now, now]),
        createdAt: now,
      });
      await createSets(admin, db, { id, slug, organization }, now);
      return [undefined, [{ action: "project.create", organization, project: { id, slug }, names: [] }]];
    });
  } catch (error) {
    if (isUniqueViolation(error)) {
      throw new Refused("exists", `The project ${organization.slug}/${slug} exists already.`);
    }
    throw error;
  }
  const counts = { variableCount: 0, accountCount: 0, fileCount: 0 };
  return { id, organization: organization.slug, slug, name, ...counts, createdAt: now, updatedAt: now };
}

/** The projects of one organization or of all, in byte order of organization and slug. @throws Refused `not_found` */
export async function listProjects(admin: AdminContext, organization?: string): Promise<Project[]> {
  const only = organization === undefined ? undefined : await findOrganization(admin, organization);
  return records(admin, only && eq(admin.database.tables.projects.organizationId, only.id));
}

/** The project at `ORG/PROJECT`, as {@link findProject}. @throws Refused `not_found`, `ambiguous` */
export async function showProject(admin: AdminContext, where: string): Promise<Project> {
  const { id } = await findProject(admin, where);
  const [found] = await records(admin, eq(admin.database.tables.projects.id, id));
  if (!found) throw noProject(where);
  return found;
}

async function records(admin: AdminContext, where: ReturnType<typeof eq> | undefined): Promise<Project[]> {
  const { projects: p, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ project: p, organization: o.slug })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(where)
    .orderBy(asc(o.slug), asc(p.slug));
  return rows.map(({ project, organization }) => ({
    id: project.id,
    organization,
    slug: project.slug,
    name: project.name,
    variableCount: sum(project.variableCounts),
    accountCount: sum(project.accountCounts),
    fileCount: sum(project.fileCounts),
    createdAt: project.createdAt,
    updatedAt: Math.max(project.createdAt, ...arrayOf(project.changedAt).map((time) => Number(time) || 0)),
  }));
}

/**
 * Deletes a project with everything in it; audit entries stay. Keys and trusts that list it keep their list and reach
 * nothing by it, not even a project that takes its slug later.
 *
 * @returns how many variable names, accounts and files went with it
 * @throws Refused `not_found`, `ambiguous`
 */
export async function deleteProject(
  admin: AdminContext,
  where: string,
): Promise<{ variables: number; accounts: number; files: number }> {
  const { organization, ...project } = await findProject(admin, where);
  const { projects } = admin.database.tables;
  return writing(admin, async (db) => {
    const [gone] = await db.delete(projects).where(eq(projects.id, project.id)).returning();
    if (!gone) throw noProject(where);
    const counts = {
      variables: sum(gone.variableCounts),
      accounts: sum(gone.accountCounts),
      files: sum(gone.fileCounts),
    };
    return [counts, [{ action: "project.delete", organization, project, names: [] }]];
  });
}

/**
 * Gives a project another slug, and another display name if one is given. The slug is bound by the seal of every set, so
 * all nine are sealed again, with their kept versions. Keys and trusts that list the project carry its old slug and
 * reach nothing by it any more.
 *
 * @throws Refused `invalid`, `exists`, `not_found`, `ambiguous`, `conflict` if a set or a kept version does not open
 */
export async function renameProject(
  admin: AdminContext,
  where: string,
  asked: { readonly slug: string; readonly name?: string | undefined },
): Promise<Project> {
  const { projects: p } = admin.database.tables;
  const { slug } = asked;
  requireSlug("project", slug);
  const name = asked.name === undefined ? {} : { name: displayName("project", asked.name) };
  const found = await findProject(admin, where);
  const { organization, id } = found;
  try {
    await writing(admin, async (db) => {
      const project = await lockProject(admin, db, found);
      if (!project) throw noProject(where);
      for (const descriptor of everyKind as readonly KindDescriptor<Kind>[]) {
        for (const set of await openSets(admin, project, descriptor)) {
          const { environment } = set;
          await resealSet(admin, { ...project, slug }, descriptor, set);
          for await (const [version, kept] of keptVersions(admin, db, project, descriptor, environment)) {
            if (kept === undefined) throw damagedVersion(project, descriptor, environment, version);
            await resealSet(admin, { ...project, slug }, descriptor, kept, true);
          }
        }
      }
      await db
        .update(p)
        .set({ slug, ...name })
        .where(eq(p.id, id));
      return [
        undefined,
        [{ action: "project.rename", organization, project: { id, slug: found.slug }, names: [slug] }],
      ];
    });
  } catch (error) {
    if (isUniqueViolation(error))
      throw new Refused("exists", `The project ${organization.slug}/${slug} exists already.`);
    throw error;
  }
  return showProject(admin, `${organization.slug}/${slug}`);
}

/** The project at `ORG/PROJECT`, or `PROJECT` where there is one organization. @throws Refused `not_found`, `ambiguous` */
export async function findProject(admin: AdminContext, where: string): Promise<FoundProject> {
  const { organization, slug } = await splitPlace(admin, where);
  const { projects: p } = admin.database.tables;
  const [found] = await admin.database.db
    .select({ id: p.id })
    .from(p)
    .where(and(eq(p.organizationId, organization.id), eq(p.slug, slug)));
  if (!found) throw noProject(where);
  return { id: found.id, slug, organization };
}

/**
 * Runs a write to one project's items of a kind in one transaction, with the project locked. What it did to the set of
 * each environment is on record with it, and so is what `work` says it did besides.
 * @throws Refused `not_found` if the project is gone; Fault `decryption_failed` if its data key does not open
 */
export async function writingProject<K extends Kind, T>(
  admin: AdminContext,
  where: string,
  descriptor: KindDescriptor<K>,
  work: (project: LockedProject) => Promise<readonly [result: T, writes: SetWrites<K>, more?: readonly Change[]]>,
  action: "write" | "rollback" = "write",
): Promise<T> {
  const found = await findProject(admin, where);
  return writing(admin, async (db) => {
    const locked = await lockProject(admin, db, found);
    if (!locked) throw noProject(where);
    const [result, writes, more = []] = await work(locked);
    const { organization, id, slug } = found;
    const changes = [...writes].map(([environment, done]): Change => {
      const write = namesWritten(descriptor, done);
      const names = [...write.added, ...write.changed, ...write.deleted].sort(compareBytes);
      const project = { id, slug };
      return { action: `${descriptor.kind}.${action}`, organization, project, environment, names, write };
    });
    if (descriptor.kind === "files" && [...writes.values()].some(({ pruned }) => pruned)) {
      await deleteUnusedContents(admin, locked);
    }
    return [result, [...changes, ...more]];
  });
}

/** Keeps other writers out until the transaction ends; undefined if the project is gone. */
export async function lockProject(
  admin: AdminContext,
  db: Db,
  found: FoundProject,
): Promise<LockedProject | undefined> {
  const { projects: p } = admin.database.tables;
  await admin.database.lockProject(db, found.id);
  const [project] = await db.select({ changedAt: p.changedAt }).from(p).where(eq(p.id, found.id));
  if (!project) return undefined;
  const dataKey = await newestDataKey(admin, db, found);
  return { ...found, db, dataKey, now: admin.now(), changedAt: project.changedAt };
}

/** A project's newest data key, opened. @throws Fault `decryption_failed` if it does not open or is missing */
async function newestDataKey(admin: AdminContext, db: Db, project: FoundProject): Promise<DataKey> {
  const { dataKeys: d } = admin.database.tables;
  const [newest] = await db.select().from(d).where(eq(d.projectId, project.id)).orderBy(desc(d.generation)).limit(1);
  if (newest === undefined) throw new Fault("decryption_failed", `project ${project.id} has no data key`);
  return admin.keyring.dataKey(project.id, newest.generation, newest.rootId, newest.wrapped);
}

/** Of counts by mask: all items. Damaged counts are 0 until the next write mends them. */
export function sum(countsByMask: string): number {
  return arrayOf(countsByMask).reduce<number>((total, count) => total + (Number(count) || 0), 0);
}

async function splitPlace(admin: AdminContext, where: string): Promise<{ organization: Organization; slug: string }> {
  const [first = "", second, ...rest] = where.split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Refused("invalid", `${JSON.stringify(where)} is no place: write ORG/PROJECT, or PROJECT alone.`);
  }
  const organization = await findOrganization(admin, second === undefined ? undefined : first);
  return { organization, slug: second ?? first };
}

/** The refusal of whatever needs a project that does not exist. */
export function noProject(where: string): Refused {
  return new Refused("not_found", `There is no project ${JSON.stringify(where)}.`);
}
