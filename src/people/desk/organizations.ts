import { eq, type SQL } from "drizzle-orm";
import { isSameMac } from "../../core/hash.ts";
import { slugPattern } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { didYouMean } from "../../core/words/nearest.ts";
import { sealOrganization } from "../../serve/access/grant.ts";
import { belongsTo } from "../../serve/access/rights.ts";
import type { Tables } from "../../store/database.ts";
import type { AdminContext } from "./context.ts";

export type Organization = Readonly<Omit<Tables["organizations"]["$inferSelect"], "seal">>;

/**
 * The organization with this slug, or without a slug the only one.
 * @throws Refused `conflict` if the row was changed by other means
 */
export async function findOrganization(admin: AdminContext, slug: string | undefined): Promise<Organization> {
  const { organizations } = admin.database.tables;
  if (slug !== undefined) {
    const [found] = await admin.database.db.select().from(organizations).where(eq(organizations.slug, slug));
    if (found && belongsTo(admin.rights, found.id)) return verified(admin, found);
  }
  const rows = (await admin.database.db.select().from(organizations)).filter(({ id }) => belongsTo(admin.rights, id));
  if (slug !== undefined) throw noOrganization(slug, rows);
  const [only, second] = rows;
  if (!only) throw new Refused("not_found", "There is no organization yet: create one with `keyhole org create SLUG`.");
  if (second) throw new Refused("ambiguous", "There are several organizations: name one.");
  return verified(admin, only);
}

/** A condition: the rows of this organization, or all if none is named. */
export async function ofOrganization(
  admin: AdminContext,
  table: AdminContext["database"]["tables"]["projects" | "apiKeys" | "variableRequests"],
  slug: string | undefined,
): Promise<SQL | undefined> {
  if (slug === undefined) return undefined;
  return eq(table.organizationId, (await findOrganization(admin, slug)).id);
}

export function requireSlug(what: string, slug: string): void {
  if (slugPattern.test(slug)) return;
  const words = `${JSON.stringify(slug)} is not a valid ${what} slug: use 1 to 64 of a-z, 0-9 and -, not starting with -.`;
  throw new Refused("invalid", words);
}

/** @param seen - those that the person may see */
export function noOrganization(slug: string, seen: readonly Pick<Organization, "slug">[] = []): Refused {
  const slugs = seen.map((one) => one.slug);
  return new Refused("not_found", `There is no organization ${JSON.stringify(slug)}.${didYouMean(slug, slugs)}`);
}

/** An organization as Keyhole wrote it. @throws Refused `conflict` if its id or slug was changed by other means */
export function verified(
  { systemKeys }: Pick<AdminContext, "systemKeys">,
  { seal, ...organization }: Organization & { readonly seal: Buffer | null },
): Organization {
  if (isSameMac(seal, sealOrganization(systemKeys.grant, organization))) return organization;
  const words = `The row of the organization ${JSON.stringify(organization.slug)} was changed by other means than Keyhole, so it may be another one. Nothing was changed. Put its id, slug and seal back, or restore a backup.`;
  throw new Refused("conflict", words);
}
