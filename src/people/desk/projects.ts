import { and, asc, desc, eq } from "drizzle-orm";
import { Fault } from "../../core/fault.ts";
import { type Environment, type EnvironmentMask, environmentMask, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { didYouMean } from "../../core/words/nearest.ts";
import type { DataKey } from "../../seal/keyring.ts";
import type { ProjectPlace, Right } from "../../serve/access/rights.ts";
import type { AdminContext } from "./context.ts";
import { findOrganization, type Organization, verified } from "./organizations.ts";
import { Permit } from "./permit.ts";

/**
 * Finds the project at `ORG/PROJECT`, or `PROJECT` if there is one organization, in which the caller has these rights.
 * Absent and forbidden look alike.
 *
 * @param needed - the rights, all of which they must have in the same environments
 * @param among - all of these environments; if it is left out, at least one
 */
export async function findProject(
  admin: AdminContext,
  where: string,
  needed: Right | readonly Right[],
  among?: readonly Environment[],
): Promise<FoundProject> {
  return findAt(admin, where, needed, among, false);
}

/**
 * The project of a change, as {@link findProject}. In a transaction, no other writer changes it before the end: what is
 * read of it afterwards stays so.
 */
export async function findToChange(
  admin: AdminContext,
  where: string,
  needed: Right | readonly Right[],
  among?: readonly Environment[],
): Promise<PlannedProject> {
  const isLocked = admin.isWithin === true;
  return { ...(await findAt(admin, where, needed, among, isLocked)), now: admin.now(), isLocked };
}

async function findAt(
  admin: AdminContext,
  where: string,
  needed: Right | readonly Right[],
  among: readonly Environment[] | undefined,
  locks: boolean,
) {
  const found = await findRow(admin, where, locks);
  const rights = [needed].flat();
  const permit = found && Permit.find(admin, rights, placeOf(found), among);
  if (found && permit) return { ...found, organization: verified(admin, found.organization), permit };
  const { organization } = await splitPlace(admin, where);
  const nearest = await nearestProject(admin, organization, where, rights, among);
  throw admin.rights === "operator" ? noProject(where, nearest) : noRight(where, rights, among, nearest);
}

/** The row at a path. Nobody's right is asked here. */
async function findRow(admin: AdminContext, where: string, locks: boolean) {
  const { database } = admin;
  const { projects: p, organizations: o } = database.tables;
  const [first = "", second, ...rest] = where.split("/");
  if (!second || first === "" || rest.length > 0) {
    const { organization, slug } = await splitPlace(admin, where);
    return findRow(admin, `${organization.slug}/${slug}`, locks);
  }
  const query = database.db
    .select({ own: { ...projectColumns(admin), changedAt: p.changedAt }, organization: o })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(and(eq(o.slug, first), eq(p.slug, second)));
  const [found] = await (locks ? database.locked(query, "update", p) : query);
  return found && { ...found.own, organization: found.organization };
}

/** What is read of a project wherever one is found. A new column stands here, in {@link FoundProject}, and in its table. */
export function projectColumns({ database: { tables } }: Pick<AdminContext, "database">) {
  const { id, slug, environments } = tables.projects;
  return { id, slug, environments };
}

/**
 * All projects as their rows have them, for an operator. By id: they are always locked in this order, so no two commands
 * wait for each other.
 */
export async function everyProject(admin: AdminContext) {
  const permit = Permit.operator(admin);
  const { projects: p, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ project: p, organization: o })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .orderBy(asc(p.id));
  return rows.map(({ project, organization }) => ({ ...project, organization, permit }));
}

/** The permit to write to all projects of an organization, those of the future too. */
export function permitEverywhere(admin: AdminContext, { id, slug }: Organization): Permit {
  const permit = Permit.find(admin, ["write"], { organizationId: id, projectId: null }, environments);
  if (permit !== undefined) return permit;
  throw new Refused("not_found", `This takes the right to write in all projects of ${slug}, in every environment.`);
}

/**
 * The end of a refusal: the project with the nearest path in which the caller has these rights, and whose names they
 * may see. It tells nothing of the project at the path itself.
 * @param where - `ORG/PROJECT`, or the slug alone
 */
export async function nearestProject(
  admin: AdminContext,
  organization: Organization,
  where: string,
  needed: readonly Right[],
  among?: readonly Environment[],
): Promise<string> {
  const { projects: p } = admin.database.tables;
  const isOfIt = eq(p.organizationId, organization.id);
  const rows = await admin.database.db.select({ id: p.id, slug: p.slug }).from(p).where(isOfIt);
  const seen = rows.flatMap(({ id, slug }) => {
    const place = placeOf({ id, organization });
    return Permit.find(admin, needed, place, among) && Permit.find(admin, ["see"], place) ? [slug] : [];
  });
  const at = where.lastIndexOf("/") + 1;
  return didYouMean(where.slice(at), seen, where.slice(0, at));
}

/** Absent and forbidden have the same answer. */
function noRight(where: string, needed: readonly Right[], among: readonly Environment[] | undefined, nearest: string) {
  const places = among?.length === environments.length ? "every environment" : among?.join(" and ");
  const there = places === undefined ? "" : ` in ${places}`;
  const words = `There is no project ${JSON.stringify(where)} where you have the right to`;
  return new Refused("not_found", `${words} ${needed.join(" and ")}${there}.${nearest}`);
}

/** Keeps other writers out until the transaction ends; undefined if the project is gone. */
export async function lockProject(
  admin: AdminContext,
  found: FoundProject | PlannedProject,
): Promise<LockedProject | undefined> {
  const planned = "isLocked" in found && found.isLocked ? found : undefined;
  const project = planned ?? (await lockedRow(admin, found));
  if (project === undefined) return undefined;
  const dataKey = await newestDataKey(admin, found);
  // A set that was sealed under another slug since does not open.
  return { ...found, ...project, slug: found.slug, dataKey, now: planned?.now ?? admin.now() };
}

async function lockedRow(admin: AdminContext, { id }: FoundProject) {
  const { projects: p } = admin.database.tables;
  await admin.database.lockProject(admin.database.db, id);
  const columns = { ...projectColumns(admin), changedAt: p.changedAt };
  const [row] = await admin.database.db.select(columns).from(p).where(eq(p.id, id));
  return row;
}

/** A project's newest data key, opened. @throws Fault `decryption_failed` if it does not open or is missing */
async function newestDataKey(admin: AdminContext, project: FoundProject): Promise<DataKey> {
  const { dataKeys: d } = admin.database.tables;
  const { db } = admin.database;
  const [newest] = await db.select().from(d).where(eq(d.projectId, project.id)).orderBy(desc(d.generation)).limit(1);
  if (newest === undefined) throw new Fault("decryption_failed", `project ${project.id} has no data key`);
  return admin.keyring.dataKey(project.id, newest.generation, newest.rootId, newest.wrapped);
}

export async function splitPlace(admin: AdminContext, where: string) {
  const [first = "", second, ...rest] = where.split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Refused("invalid", `${JSON.stringify(where)} is not a project: write ORG/PROJECT, or PROJECT alone.`);
  }
  const organization = await findOrganization(admin, second === undefined ? undefined : first);
  return { organization, slug: second ?? first };
}

/** The refusal if a project does not exist. @param nearest - its end, as {@link nearestProject} */
export function noProject(where: string, nearest = ""): Refused {
  return new Refused("not_found", `There is no project ${JSON.stringify(where)}.${nearest}`);
}

/** `ORG/PROJECT`, as people write it. */
export function projectPath({ organization, slug }: Pick<FoundProject, "organization" | "slug">): string {
  return `${organization.slug}/${slug}`;
}

/** Whether a project uses an environment: whether it is shown, and takes new items. */
export function uses(project: Pick<FoundProject, "environments">, environment: Environment): boolean {
  return (project.environments & environmentMask(environment)) !== 0;
}

/** The place of a project, for questions about rights. */
export function placeOf(project: {
  readonly id: string;
  readonly organization: { readonly id: string };
}): ProjectPlace {
  return { organizationId: project.organization.id, projectId: project.id };
}

/** A project with its organization, and what somebody may do there. */
export type FoundProject = {
  readonly id: string;
  readonly slug: string;
  readonly organization: Organization;
  /** The environments that it uses. */
  readonly environments: EnvironmentMask;
  readonly permit: Permit;
};

/** A project that no other writer can change before the transaction ends. */
export type LockedProject = FoundProject & {
  /** Seals under the project's newest data key. */
  readonly dataKey: DataKey;
  readonly now: number;
  /** As its row has it. */
  readonly changedAt: string;
};

/** A project for a plan. In a transaction it is locked. */
export type PlannedProject = FoundProject & Pick<LockedProject, "now" | "changedAt"> & { readonly isLocked: boolean };
