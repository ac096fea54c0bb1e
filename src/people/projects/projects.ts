import { and, asc, eq, ne } from "drizzle-orm";
import { type Environment, environmentMask, environments, environmentsOf, everyEnvironment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { everyKind } from "../../kinds/kind.ts";
import { reached } from "../../serve/access/rights.ts";
import { countsColumnOf } from "../../serve/sets/kind.ts";
import type { CountsColumns } from "../../store/tables.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { ofOrganization, requireSlug } from "../desk/organizations.ts";
import {
  findProject,
  findToChange,
  lockProject,
  noProject,
  permitEverywhere,
  projectPath,
  splitPlace,
} from "../desk/projects.ts";
import { arrayOf, displayName, requireEnvironments, unlessExists } from "../desk/validate.ts";
import { countIn } from "../editing/counts.ts";
import { damagedVersion, keptVersions, requireSets } from "../editing/open.ts";
import { createSets, resealSet } from "../editing/write.ts";

export type Project = {
  readonly id: string;
  /** Its slug. */
  readonly organization: string;
  readonly slug: string;
  readonly name: string;
  /** Those that it uses. */
  readonly environments: readonly Environment[];
  /** How many items of each kind it has: `variableCount` and so on. */
  readonly [count: `${string}Count`]: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** Makes a project with its first data key. */
export async function createProject(
  admin: AdminContext,
  where: string,
  asked: { readonly name?: string | undefined; readonly environments?: readonly string[] | undefined },
): Promise<Project> {
  const { organization, slug } = await splitPlace(admin, where);
  const permit = permitEverywhere(admin, organization);
  requireSlug("project", slug);
  const id = Bun.randomUUIDv7();
  const now = admin.now();
  const name = displayName("project", asked.name ?? slug);
  const used = requireEnvironments(asked.environments ?? environments);
  const none = JSON.stringify([0, 0, 0, 0, 0, 0, 0]);
  const noCounts = Object.fromEntries(everyKind.map((kind) => [countsColumnOf(kind), none])) as CountsColumns;
  const row = {
    id,
    organizationId: organization.id,
    slug,
    name,
    ...noCounts,
    changedAt: JSON.stringify([now, now, now]),
    createdAt: now,
    environments: used,
  };
  const work = writing(admin, permit, async (admin) => {
    await admin.database.db.insert(admin.database.tables.projects).values(row);
    await createSets(admin, { ...row, organization, permit }, everyKind, now);
    return [
      recordOf(row, organization.slug, environments),
      [{ action: "project.create", organization, project: { id, slug }, names: [] }],
    ];
  });
  return unlessExists(work, existsAlready(organization.slug, slug));
}

/**
 * Projects in sight, of one organization or all, by the bytes of organization and slug.
 * @param among - the environments whose items are counted, if the person may see them
 */
export async function listProjects(
  admin: AdminContext,
  organization?: string,
  among: readonly Environment[] = environments,
): Promise<Project[]> {
  const { projects: p, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ project: p, organization: o.slug })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(await ofOrganization(admin, p, organization))
    .orderBy(asc(o.slug), asc(p.slug));
  return rows.flatMap(({ project, organization }) => {
    const seen = reached(admin.rights, ["see"], { organizationId: project.organizationId, projectId: project.id });
    return seen.length === 0 ? [] : [recordOf(project, organization, seen, among)];
  });
}

type StoredProject = AdminContext["database"]["tables"]["projects"]["$inferSelect"];

/**
 * A project as people see it.
 * @param seen - the environments that the person may see, whose times count
 * @param among - those of them whose items are counted
 */
function recordOf(
  row: StoredProject,
  organization: string,
  seen: readonly Environment[],
  among: readonly Environment[] = seen,
): Project {
  const { id, slug, name, createdAt } = row;
  const times = arrayOf(row.changedAt).filter((_, index) => seen.includes(environments[index] as Environment));
  const updatedAt = Math.max(createdAt, ...times.map((time) => Number(time) || 0));
  const counted = environmentMask(...seen.filter((environment) => among.includes(environment)));
  const counts: Record<`${string}Count`, number> = Object.fromEntries(
    everyKind.map((kind) => [`${kind.item}Count`, countIn(row, kind, counted)]),
  );
  const used = environmentsOf(row.environments & environmentMask(...seen));
  return { id, organization, slug, name, environments: used, ...counts, createdAt, updatedAt };
}

/**
 * The deletion of a project with everything in it; audit entries stay. Keys and trusts that list it keep their list and
 * reach nothing by it, not even a project that takes its slug later. `counts`: how many items of each kind go with it.
 */
export async function planDeletion(admin: AdminContext, where: string) {
  const found = await findWhole(admin, where);
  const { organization, id, slug, permit } = found;
  const { projects: p } = admin.database.tables;
  const [row = {}] = await admin.database.db.select().from(p).where(eq(p.id, id));
  const counts: Readonly<Record<string, number>> = Object.fromEntries(
    everyKind.map((descriptor) => [descriptor.kind, countIn(row, descriptor)]),
  );
  const remove = () =>
    writing(admin, permit, async (admin) => {
      await admin.database.db.delete(p).where(eq(p.id, id));
      return [counts, [{ action: "project.delete", organization, project: { id, slug }, names: [] }]];
    });
  return { found, counts, seen: { project: id, ...counts }, apply: remove };
}

/**
 * Sets which environments a project uses. The others are not shown, and take no new items.
 * @throws Refused `conflict` if one of the others has items
 */
export async function setProjectEnvironments(admin: AdminContext, where: string, asked: readonly string[]) {
  const { projects: p } = admin.database.tables;
  const used = requireEnvironments(asked);
  const found = await findProject(admin, where, ["see", "write"], environments);
  const { organization, id, slug } = found;
  return writing(admin, found.permit, async (admin) => {
    if (!(await lockProject(admin, found))) throw noProject(where);
    const [row] = await admin.database.db.update(p).set({ environments: used }).where(eq(p.id, id)).returning();
    if (!row) throw noProject(where);
    for (const environment of environmentsOf(everyEnvironment & ~used)) {
      if (everyKind.every((kind) => countIn(row, kind, environmentMask(environment)) === 0)) continue;
      const path = projectPath(found);
      throw new Refused("conflict", `${path} still has items in ${environment}: delete them first.`);
    }
    const names = environmentsOf(used);
    return [
      recordOf(row, organization.slug, environments),
      [{ action: "project.environments", organization, project: { id, slug }, names }],
    ];
  });
}

/**
 * Gives a project another slug, or another display name, or both. The seal of every set covers the slug, so another one
 * means that all nine are sealed again, with their kept versions. Keys and trusts that list the project carry its old
 * slug and no longer reach it.
 *
 * @throws Refused `exists` if another project has the slug; `conflict` if a set or a kept version does not open
 */
export async function planRename(
  admin: AdminContext,
  where: string,
  asked: { readonly slug: string; readonly name?: string | undefined },
) {
  const { projects: p } = admin.database.tables;
  const { slug } = asked;
  requireSlug("project", slug);
  const name = asked.name === undefined ? {} : { name: displayName("project", asked.name) };
  const found = await findWhole(admin, where);
  const { organization, id, permit } = found;
  const taken = and(eq(p.organizationId, organization.id), eq(p.slug, slug), ne(p.id, id));
  const [other] = await admin.database.db.select({ id: p.id }).from(p).where(taken);
  if (other !== undefined) throw new Refused("exists", existsAlready(organization.slug, slug));
  const rename = async (admin: AdminContext) => {
    const project = await lockProject(admin, found);
    if (!project) throw noProject(where);
    for (const descriptor of slug === found.slug ? [] : everyKind) {
      for (const set of await requireSets(admin, project, descriptor)) {
        const of = { project, descriptor, environment: set.environment };
        await resealSet(admin, { ...project, slug }, descriptor, set);
        for await (const [version, kept] of keptVersions(admin, of)) {
          if (kept === undefined) throw damagedVersion(of, version);
          await resealSet(admin, { ...project, slug }, descriptor, kept, true);
        }
      }
    }
    const [row] = await admin.database.db
      .update(p)
      .set({ slug, ...name })
      .where(eq(p.id, id))
      .returning();
    if (!row) throw noProject(where);
    const change = { organization, project: { id, slug: found.slug }, names: [slug] };
    return [recordOf(row, organization.slug, environments), [{ action: "project.rename", ...change }]] as const;
  };
  const apply = () => unlessExists(writing(admin, permit, rename), existsAlready(organization.slug, slug));
  return { found, seen: { project: id }, apply };
}

/** The project at `ORG/PROJECT`, for a change that takes the right to write in the whole organization. */
async function findWhole(admin: AdminContext, where: string) {
  const found = await findToChange(admin, where, ["see", "write"], environments);
  return { ...found, permit: permitEverywhere(admin, found.organization) };
}

function existsAlready(organization: string, slug: string): string {
  return `The project ${organization}/${slug} exists already.`;
}
