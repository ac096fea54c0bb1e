import { and, asc, eq } from "drizzle-orm";
import { type EnvironmentMask, environments, environmentsOf } from "../names.ts";
import { type DataKey, newKey } from "../seal/keyring.ts";
import type { Db } from "../store/database.ts";
import { type Desk, writing } from "./desk.ts";
import { emptyItemSets } from "./item-sets.ts";
import { findOrganization, type Organization, requireSlug } from "./organizations.ts";
import { Refused } from "./refused.ts";
import { currentRootId } from "./root-keys.ts";
import { sealSet } from "./sets.ts";
import { displayName, isUniqueViolation } from "./words.ts";

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

/** A project as writers need it: found, and with its organization. */
export type FoundProject = { readonly id: string; readonly slug: string; readonly organization: Organization };

/** Makes a project with its first data key. @throws Refused `invalid`, `exists`, `not_found`, `ambiguous` */
export async function createProject(
  desk: Desk,
  where: string,
  asked: { readonly name?: string | undefined },
): Promise<Project> {
  const { organization, slug } = await splitPlace(desk, where);
  requireSlug("project", slug);
  const id = Bun.randomUUIDv7();
  const now = desk.now();
  const name = displayName("project", asked.name ?? slug);
  const none = JSON.stringify([0, 0, 0, 0, 0, 0, 0]);
  const t = desk.database.tables;
  try {
    await writing(desk, async (db) => {
      await db.insert(t.projects).values({
        id,
        organizationId: organization.id,
        slug,
        name,
        variableCounts: none,
        accountCounts: none,
        fileCounts: none,
        createdAt: now,
      });
      await db
        .insert(t.projectEnvironments)
        .values(environments.map((environment) => ({ projectId: id, environment, revision: 0, updatedAt: now })));
      const wrapped = desk.keyring.wrapDataKey(id, 1, newKey(), await currentRootId(desk.database, db));
      await db.insert(t.dataKeys).values({ projectId: id, generation: 1, ...wrapped, createdAt: now });
      const owner = { id, organizationId: organization.id, slug };
      const dataKey = desk.keyring.dataKey(owner, 1, wrapped.rootId, wrapped.wrapped);
      await db
        .insert(t.variableSets)
        .values(environments.map((environment) => sealSet(dataKey, id, environment, 1, [])));
      await db.insert(t.itemSets).values(emptyItemSets(dataKey, id));
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
export async function listProjects(desk: Desk, organization?: string): Promise<Project[]> {
  const { projects: p, organizations: o, projectEnvironments: e } = desk.database.tables;
  const only = organization === undefined ? undefined : await findOrganization(desk, organization);
  const rows = await desk.database.db
    .select({ project: p, organization: o.slug, changedAt: e.updatedAt })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .innerJoin(e, eq(e.projectId, p.id))
    .where(only && eq(p.organizationId, only.id))
    .orderBy(asc(o.slug), asc(p.slug));
  const listed = new Map<string, Project>();
  for (const { project, organization, changedAt } of rows) {
    listed.set(project.id, {
      id: project.id,
      organization,
      slug: project.slug,
      name: project.name,
      variableCount: sum(project.variableCounts),
      accountCount: sum(project.accountCounts),
      fileCount: sum(project.fileCounts),
      createdAt: project.createdAt,
      updatedAt: Math.max(changedAt, listed.get(project.id)?.updatedAt ?? 0),
    });
  }
  return [...listed.values()];
}

/**
 * Deletes a project with everything in it; audit entries stay. Keys that list it keep their list and reach nothing by it,
 * not even a project that takes its slug later.
 *
 * @returns how many variable names, accounts and files went with it
 * @throws Refused `not_found`, `ambiguous`
 */
export async function deleteProject(
  desk: Desk,
  where: string,
): Promise<{ variables: number; accounts: number; files: number }> {
  const { id } = await findProject(desk, where);
  const { projects } = desk.database.tables;
  return writing(desk, async (db) => {
    const [gone] = await db.delete(projects).where(eq(projects.id, id)).returning();
    if (!gone) throw noProject(where);
    return {
      variables: sum(gone.variableCounts),
      accounts: sum(gone.accountCounts),
      files: sum(gone.fileCounts),
    };
  });
}

/** The project at `ORG/PROJECT`, or `PROJECT` where there is one organization. @throws Refused `not_found`, `ambiguous` */
export async function findProject(desk: Desk, where: string): Promise<FoundProject> {
  const { organization, slug } = await splitPlace(desk, where);
  const { projects: p } = desk.database.tables;
  const [found] = await desk.database.db
    .select({ id: p.id })
    .from(p)
    .where(and(eq(p.organizationId, organization.id), eq(p.slug, slug)));
  if (!found) throw noProject(where);
  return { id: found.id, slug, organization };
}

/** What a writer has in hand while no other may touch the project. */
export type LockedProject = FoundProject & {
  readonly db: Db;
  /** Seals under the project's newest data key. */
  readonly dataKey: DataKey;
  readonly now: number;
  /** Revisions of the environments before this write. */
  readonly revisions: ReadonlyMap<string, number>;
};

/** Which of a project's counts a write changes, and by how much for each mask of environments. */
export type CountChanges = {
  readonly column: "variableCounts" | "accountCounts" | "fileCounts";
  readonly byMask: ReadonlyMap<EnvironmentMask, number>;
};

/** What a write to a project came to. */
export type ProjectWrite<T> = {
  readonly result: T;
  /** The environments whose items are others now. */
  readonly touched: EnvironmentMask;
  readonly counts: CountChanges;
  /** Called last, with the environments' revisions so far. */
  readonly finish?: (revisions: ReadonlyMap<string, number>) => Promise<void>;
};

/**
 * Runs a write to one project's items in one transaction with nobody beside it, then brings the project's counts and
 * the times of the environments it touched along.
 *
 * @throws Refused `not_found` where the project is gone; Fault `decryption_failed` where its data key does not open
 */
export async function writingProject<T>(
  desk: Desk,
  where: string,
  work: (project: LockedProject) => Promise<ProjectWrite<T>>,
): Promise<T> {
  const found = await findProject(desk, where);
  const { projects: p, projectEnvironments: e } = desk.database.tables;
  return writing(desk, async (db) => {
    await desk.database.lockProject(db, found.id);
    const [project] = await db.select().from(p).where(eq(p.id, found.id));
    if (!project) throw noProject(where);
    const states = () => db.select().from(e).where(eq(e.projectId, found.id));
    const revisions = new Map((await states()).map((row) => [row.environment, row.revision]));
    const now = desk.now();
    const dataKey = await newestDataKey(desk, db, found);
    const { result, touched, counts, finish } = await work({ ...found, db, dataKey, now, revisions });
    if (touched === 0) return result;
    await db
      .update(p)
      .set({ [counts.column]: changed(project[counts.column], counts.byMask) })
      .where(eq(p.id, found.id));
    const revisionsSoFar = new Map<string, number>();
    for (const row of await states()) {
      if (!environmentsOf(touched).some((environment) => environment === row.environment)) continue;
      // Triggers raised it where variables were written; accounts and files leave the sealed set as current as it was.
      revisionsSoFar.set(row.environment, row.revision);
      await db
        .update(e)
        .set({ updatedAt: Math.max(now, row.updatedAt) })
        .where(and(eq(e.projectId, found.id), eq(e.environment, row.environment)));
    }
    await finish?.(revisionsSoFar);
    return result;
  });
}

/** A project's newest data key, opened. @throws Fault `decryption_failed` */
export async function newestDataKey(desk: Desk, db: Db, project: FoundProject): Promise<DataKey> {
  const { dataKeys: d } = desk.database.tables;
  const rows = await db.select().from(d).where(eq(d.projectId, project.id));
  const newest = rows.reduce((a, b) => (a.generation > b.generation ? a : b));
  const owner = { id: project.id, organizationId: project.organization.id, slug: project.slug };
  return desk.keyring.dataKey(owner, newest.generation, newest.rootId, newest.wrapped);
}

/** Notes that an item moved from one mask to another; mask 0 is "not there". */
export function noteMove(byMask: Map<EnvironmentMask, number>, from: EnvironmentMask, to: EnvironmentMask): void {
  if (from === to) return;
  if (from !== 0) byMask.set(from, (byMask.get(from) ?? 0) - 1);
  if (to !== 0) byMask.set(to, (byMask.get(to) ?? 0) + 1);
}

function changed(countsByMask: string, byMask: ReadonlyMap<EnvironmentMask, number>): string {
  const counts = JSON.parse(countsByMask) as number[];
  // Never below zero, which no reader takes: of rows that SQL moved, what was counted is not what is there now.
  return JSON.stringify(counts.map((count, index) => Math.max(0, count + (byMask.get(index + 1) ?? 0))));
}

function sum(countsByMask: string): number {
  return (JSON.parse(countsByMask) as number[]).reduce((total, count) => total + count, 0);
}

async function splitPlace(desk: Desk, where: string): Promise<{ organization: Organization; slug: string }> {
  const [first = "", second, ...rest] = where.split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Refused("invalid", `${JSON.stringify(where)} is no place: write ORG/PROJECT, or PROJECT alone.`);
  }
  const organization = await findOrganization(desk, second === undefined ? undefined : first);
  return { organization, slug: second ?? first };
}

function noProject(where: string): Refused {
  return new Refused("not_found", `There is no project ${JSON.stringify(where)}.`);
}
