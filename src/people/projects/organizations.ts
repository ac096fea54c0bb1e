import { asc, eq } from "drizzle-orm";
import { Refused } from "../../core/refused.ts";
import { type OrganizationPlan, sealOrganization } from "../../serve/access/grant.ts";
import { belongsTo } from "../../serve/access/rights.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { findOrganization, noOrganization, type Organization, requireSlug, verified } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { displayName, unlessExists } from "../desk/validate.ts";

/** What a new organization is to be called. */
export type AskedOrganization = {
  readonly slug: string;
  readonly name?: string | undefined;
  readonly plan?: string | undefined;
};

/** Checks the names before there is a database. */
export function judgeOrganization({ slug, name = slug, plan = "pro" }: AskedOrganization) {
  requireSlug("organization", slug);
  return { slug, name: displayName("organization", name), plan: requirePlan(plan) };
}

export async function createOrganization(admin: AdminContext, asked: AskedOrganization): Promise<Organization> {
  const permit = Permit.operator(admin);
  const organization = { id: Bun.randomUUIDv7(), ...judgeOrganization(asked), createdAt: admin.now() };
  const work = writing(admin, permit, async (admin) => {
    const { db } = admin.database;
    const seal = sealOrganization(admin.systemKeys.grant, organization);
    await db.insert(admin.database.tables.organizations).values({ ...organization, seal });
    return [organization, [{ action: "organization.create", organization, names: [] }]];
  });
  return unlessExists(work, `The organization ${asked.slug} already exists.`);
}

/** Changes a plan from the next request on. */
export function setPlan(admin: AdminContext, slug: string, plan: string): Promise<Organization> {
  const chosen = requirePlan(plan);
  return writing(admin, Permit.operator(admin), async (admin) => {
    const { organizations } = admin.database.tables;
    const { id } = await findToKeep(admin, slug);
    const set = admin.database.db.update(organizations).set({ plan: chosen });
    const [changed] = await set.where(eq(organizations.id, id)).returning();
    if (!changed) throw noOrganization(slug);
    const organization = verified(admin, changed);
    return [organization, [{ action: "organization.plan", organization, names: [chosen] }]];
  });
}

/** The organization with this slug, for an operator. In a transaction, nobody adds to it before the end. */
export async function findToKeep(admin: AdminContext, slug: string): Promise<Organization> {
  Permit.operator(admin);
  const { organizations: o } = admin.database.tables;
  const query = admin.database.db.select().from(o).where(eq(o.slug, slug));
  const [found] = await (admin.isWithin ? admin.database.locked(query) : query);
  return found ? verified(admin, found) : findOrganization(admin, slug);
}

/** What an organization holds. */
export type OrganizationCounts = { readonly projects: number; readonly keys: number; readonly trusts: number };

/** The deletion of an organization with its projects, keys and trusts; audit entries stay. */
export async function planOrganizationDeletion(admin: AdminContext, slug: string) {
  const { organizations: o, projects: p, apiKeys: k } = admin.database.tables;
  const { db } = admin.database;
  const { id } = await findToKeep(admin, slug);
  const held = await db.select({ trust: k.trust }).from(k).where(eq(k.organizationId, id));
  const trusts = held.filter(({ trust }) => trust !== null).length;
  const projects = (await db.select({ id: p.id }).from(p).where(eq(p.organizationId, id))).length;
  const counts: OrganizationCounts = { projects, keys: held.length - trusts, trusts };
  const remove = () =>
    writing(admin, Permit.operator(admin), async (admin) => {
      const { db } = admin.database;
      await db.delete(k).where(eq(k.organizationId, id));
      await db.delete(p).where(eq(p.organizationId, id));
      await db.delete(o).where(eq(o.id, id));
      return [counts, [{ action: "organization.delete", organization: { id, slug }, names: [] }]];
    });
  return { counts, seen: { organization: id, ...counts }, apply: remove };
}

/**
 * The organizations in sight as their rows have them, in byte order of slug. Their seals are checked by each change.
 */
export async function listOrganizations(admin: AdminContext): Promise<Organization[]> {
  const { organizations } = admin.database.tables;
  const rows = await admin.database.db.select().from(organizations).orderBy(asc(organizations.slug));
  return rows.filter(({ id }) => belongsTo(admin.rights, id)).map(({ seal: _, ...organization }) => organization);
}

function requirePlan(plan: string): OrganizationPlan {
  if (plan === "free" || plan === "pro") return plan;
  throw new Refused("invalid", `${JSON.stringify(plan)} is not a plan: free or pro.`);
}
