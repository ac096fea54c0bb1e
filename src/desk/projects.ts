import { and, desc, eq } from "drizzle-orm";
import { Fault } from "../core/fault.ts";
import { Refused } from "../core/refused.ts";
import type { DataKey } from "../seal/keyring.ts";
import type { Db } from "../store/database.ts";
import type { AdminContext } from "./context.ts";
import { findOrganization, type Organization } from "./organizations.ts";

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
export async function newestDataKey(admin: AdminContext, db: Db, project: FoundProject): Promise<DataKey> {
  const { dataKeys: d } = admin.database.tables;
  const [newest] = await db.select().from(d).where(eq(d.projectId, project.id)).orderBy(desc(d.generation)).limit(1);
  if (newest === undefined) throw new Fault("decryption_failed", `project ${project.id} has no data key`);
  return admin.keyring.dataKey(project.id, newest.generation, newest.rootId, newest.wrapped);
}

export async function splitPlace(
  admin: AdminContext,
  where: string,
): Promise<{ organization: Organization; slug: string }> {
  const [first = "", second, ...rest] = where.split("/");
  if (rest.length > 0 || first === "" || second === "") {
    throw new Refused("invalid", `${JSON.stringify(where)} is not a project: write ORG/PROJECT, or PROJECT alone.`);
  }
  const organization = await findOrganization(admin, second === undefined ? undefined : first);
  return { organization, slug: second ?? first };
}

/** The refusal of whatever needs a project that does not exist. */
export function noProject(where: string): Refused {
  return new Refused("not_found", `There is no project ${JSON.stringify(where)}.`);
}

/** `ORG/PROJECT`, as people write it. */
export function projectPath({ organization, slug }: FoundProject): string {
  return `${organization.slug}/${slug}`;
}

/** A project as writers need it: found, and with its organization. */
export type FoundProject = { readonly id: string; readonly slug: string; readonly organization: Organization };

/** A project that no other writer can change before the transaction ends. */
export type LockedProject = FoundProject & {
  readonly db: Db;
  /** Seals under the project's newest data key. */
  readonly dataKey: DataKey;
  readonly now: number;
  /** As its row has it. */
  readonly changedAt: string;
};
