import { asc, eq } from "drizzle-orm";
import { type OrganizationPlan, sealOrganization } from "../access/grant.ts";
import { belongsTo } from "../access/rights.ts";
import { Refused } from "../core/refused.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { noOrganization, type Organization, requireSlug, verified } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { isAsSeen, type Seen } from "../desk/plan.ts";
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

/**
 * Changes a plan from the next request on.
 * @throws Refused `conflict` if it is another organization than the one that somebody saw
 */
export async function setPlan(admin: AdminContext, slug: string, plan: string, seen: Seen = {}): Promise<Organization> {
  const { organizations } = admin.database.tables;
  const permit = Permit.operator(admin);
  const chosen = requirePlan(plan);
  return writing(admin, permit, async (admin) => {
    const { db } = admin.database;
    const [changed] = await db
      .update(organizations)
      .set({ plan: chosen })
      .where(eq(organizations.slug, slug))
      .returning();
    if (!changed) throw noOrganization(slug);
    const organization = verified(admin, changed);
    if (!isAsSeen(seen, { organization: organization.id })) throw changedSince(slug);
    return [organization, [{ action: "organization.plan", organization, names: [chosen] }]];
  });
}

/** What an organization holds. */
export type OrganizationCounts = { readonly projects: number; readonly keys: number; readonly trusts: number };

/**
 * Deletes an organization with its projects, keys and trusts; audit entries stay.
 * @returns how many went with it
 * @throws Refused `conflict` if it is another one than somebody saw, or holds something else
 */
export async function deleteOrganization(
  admin: AdminContext,
  slug: string,
  seen: Seen = {},
): Promise<OrganizationCounts> {
  const permit = Permit.operator(admin);
  const { organizations: o, projects: p, apiKeys: k } = admin.database.tables;
  return writing(admin, permit, async (admin) => {
    const { db } = admin.database;
    // Locked, so that nobody adds to it before the end.
    const [found] = await admin.database.locked(db.select().from(o).where(eq(o.slug, slug)));
    if (!found) throw noOrganization(slug);
    verified(admin, found);
    const keys = await db.delete(k).where(eq(k.organizationId, found.id)).returning({ trust: k.trust });
    const trusts = keys.filter(({ trust }) => trust !== null).length;
    const projects = await db.delete(p).where(eq(p.organizationId, found.id)).returning({ id: p.id });
    await db.delete(o).where(eq(o.id, found.id));
    const organization = { id: found.id, slug };
    const gone = { projects: projects.length, keys: keys.length - trusts, trusts };
    if (!isAsSeen(seen, { organization: found.id, ...gone })) throw changedSince(slug);
    return [gone, [{ action: "organization.delete", organization, names: [] }]];
  });
}

/**
 * The organizations in sight as their rows have them, in byte order of slug. Their seals are checked by each change.
 */
export async function listOrganizations(admin: AdminContext): Promise<Organization[]> {
  const { organizations } = admin.database.tables;
  const rows = await admin.database.db.select().from(organizations).orderBy(asc(organizations.slug));
  return rows.filter(({ id }) => belongsTo(admin.rights, id)).map(({ seal: _, ...organization }) => organization);
}

/** The refusal if an organization is no longer what a question showed. */
function changedSince(slug: string): Refused {
  const words = `The organization ${slug} is not what was shown any more`;
  return new Refused("conflict", `${words}. Nothing was done: look at it again.`);
}

function requirePlan(plan: string): OrganizationPlan {
  if (plan === "free" || plan === "pro") return plan;
  throw new Refused("invalid", `${JSON.stringify(plan)} is not a plan: free or pro.`);
}
