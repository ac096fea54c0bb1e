import { timingSafeEqual } from "node:crypto";
import { asc, eq } from "drizzle-orm";
import { type Plan, sealOrganization } from "../access/grant.ts";
import { slugPattern } from "../names.ts";
import { type AdminContext, writing } from "./context.ts";
import { Refused } from "./refused.ts";
import { displayName, isUniqueViolation } from "./validate.ts";

export type Organization = {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  readonly plan: Plan;
  readonly createdAt: number;
};

/** Creates an organization. @throws Refused `invalid`, `exists` */
export async function createOrganization(
  admin: AdminContext,
  asked: { readonly slug: string; readonly name?: string | undefined; readonly plan?: string },
): Promise<Organization> {
  requireSlug("organization", asked.slug);
  const organization = {
    id: Bun.randomUUIDv7(),
    slug: asked.slug,
    name: displayName("organization", asked.name ?? asked.slug),
    plan: requirePlan(asked.plan ?? "pro"),
    createdAt: admin.now(),
  };
  try {
    await writing(admin, async (db) => {
      const seal = sealOrganization(admin.systemKeys.grant, organization);
      await db.insert(admin.database.tables.organizations).values({ ...organization, seal });
      return [undefined, [{ action: "organization.create", organization, names: [] }]];
    });
  } catch (error) {
    if (isUniqueViolation(error)) throw new Refused("exists", `The organization ${asked.slug} already exists.`);
    throw error;
  }
  return organization;
}

/** Changes a plan from the next request on. @throws Refused `invalid`, `not_found`, `conflict` */
export async function setPlan(admin: AdminContext, slug: string, plan: string): Promise<Organization> {
  const { organizations } = admin.database.tables;
  const chosen = requirePlan(plan);
  return writing(admin, async (db) => {
    const [changed] = await db
      .update(organizations)
      .set({ plan: chosen })
      .where(eq(organizations.slug, slug))
      .returning();
    if (!changed) throw noOrganization(slug);
    const organization = verified(admin, changed);
    return [organization, [{ action: "organization.plan", organization, names: [chosen] }]];
  });
}

/**
 * Deletes an organization with its projects, keys and trusts; audit entries stay.
 * @returns how many went with it
 * @throws Refused `not_found`, `conflict`
 */
export async function deleteOrganization(
  admin: AdminContext,
  slug: string,
): Promise<{ projects: number; keys: number; trusts: number }> {
  const { organizations: o, projects: p, apiKeys: k } = admin.database.tables;
  return writing(admin, async (db) => {
    const query = db.select().from(o).where(eq(o.slug, slug));
    // Locked, so that nothing is added to it meanwhile.
    const [found] = await (admin.database.dialect === "postgres" ? query.for("update") : query);
    if (!found) throw noOrganization(slug);
    verified(admin, found);
    const keys = await db.delete(k).where(eq(k.organizationId, found.id)).returning({ trust: k.trust });
    const trusts = keys.filter(({ trust }) => trust !== null).length;
    const projects = await db.delete(p).where(eq(p.organizationId, found.id)).returning({ id: p.id });
    await db.delete(o).where(eq(o.id, found.id));
    const organization = { id: found.id, slug };
    return [
      { projects: projects.length, keys: keys.length - trusts, trusts },
      [{ action: "organization.delete", organization, names: [] }],
    ];
  });
}

/** All organizations as their rows have them, in byte order of slug: what is done in one checks its seal. */
export async function listOrganizations(admin: AdminContext): Promise<Organization[]> {
  const { organizations } = admin.database.tables;
  const rows = await admin.database.db.select().from(organizations).orderBy(asc(organizations.slug));
  return rows.map(({ seal: _, ...organization }) => organization);
}

/**
 * The organization with this slug, or without a slug the only one.
 * @throws Refused `not_found`, `ambiguous`, `conflict` if the row was changed by other means
 */
export async function findOrganization(admin: AdminContext, slug: string | undefined): Promise<Organization> {
  const { organizations } = admin.database.tables;
  if (slug !== undefined) {
    const [found] = await admin.database.db.select().from(organizations).where(eq(organizations.slug, slug));
    if (!found) throw noOrganization(slug);
    return verified(admin, found);
  }
  const [only, second] = await admin.database.db.select().from(organizations).limit(2);
  if (!only) throw new Refused("not_found", "There is no organization yet: create one with `keyhole org create SLUG`.");
  if (second) throw new Refused("ambiguous", "There are several organizations: name one.");
  return verified(admin, only);
}

/** An organization as Keyhole wrote it. @throws Refused `conflict` if its id or slug was changed by other means */
export function verified(
  { systemKeys }: Pick<AdminContext, "systemKeys">,
  { seal, ...organization }: Organization & { readonly seal: Buffer | null },
): Organization {
  const expected = sealOrganization(systemKeys.grant, organization);
  if (seal?.length === expected.length && timingSafeEqual(seal, expected)) return organization;
  throw new Refused(
    "conflict",
    `The row of the organization ${JSON.stringify(organization.slug)} was changed by other means than Keyhole, so it may be another one. Nothing was changed. Put its id, slug and seal back, or restore a backup.`,
  );
}

export function requireSlug(what: string, slug: string): void {
  if (slugPattern.test(slug)) return;
  throw new Refused(
    "invalid",
    `${JSON.stringify(slug)} is not a valid ${what} slug: use 1 to 64 of a-z, 0-9 and -, not starting with -.`,
  );
}

function requirePlan(plan: string): Plan {
  if (plan === "free" || plan === "pro") return plan;
  throw new Refused("invalid", `${JSON.stringify(plan)} is not a plan: free or pro.`);
}

function noOrganization(slug: string): Refused {
  return new Refused("not_found", `There is no organization ${JSON.stringify(slug)}.`);
}
