import { and, asc, eq, inArray, like, lte, type SQL, sql } from "drizzle-orm";
import { digestKey, mintKey } from "../access/api-key.ts";
import { bitsOf, membersOf, type Resource, resources, type Surface, sealGrant, surfaces } from "../access/grant.ts";
import { type Environment, environmentMask, environmentsOf, everyEnvironment } from "../names.ts";
import type { Db } from "../store/database.ts";
import { type AdminContext, writing } from "./context.ts";
import { findOrganization, type Organization } from "./organizations.ts";
import { findProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { displayName, requireEnvironment, requireEnvironments } from "./validate.ts";

/** A key for people: everything except its text, which is not stored. */
export type KeyRecord = {
  readonly id: string;
  readonly name: string;
  /** Its slug. */
  readonly organization: string;
  readonly surfaces: readonly Surface[];
  readonly resources: readonly Resource[];
  /** Slugs; null means every project of the organization. Empty if the row is too damaged to tell. */
  readonly projects: readonly string[] | null;
  /** Null means every environment. */
  readonly environments: readonly Environment[] | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly revokedAt: number | null;
  readonly lastUsedAt: number | null;
  /** `damaged`: the row does not match its seal, so every server refuses the key. */
  readonly status: "active" | "expired" | "revoked" | "damaged";
};

export type NewKey = {
  readonly organization?: string | undefined;
  readonly name?: string | undefined;
  /** Default: `rest_api`. */
  readonly surfaces?: readonly string[] | undefined;
  /** Default: `projects` and `variables`; `files` is never granted unless named. */
  readonly resources?: readonly string[] | undefined;
  /** Slugs; null for every project, those of the future too. */
  readonly projects: readonly string[] | null;
  /** Null for every environment. */
  readonly environments: readonly string[] | null;
  readonly expiresInMs?: number | undefined;
};

/**
 * Creates a key.
 * @returns its record and its text, which cannot be had again
 * @throws Refused `invalid`, `not_found`, `ambiguous`
 */
export async function createKey(admin: AdminContext, asked: NewKey): Promise<KeyRecord & { key: string }> {
  const organization = await findOrganization(admin, asked.organization);
  const key = mintKey();
  const digest = digestKey(admin.systemKeys.pepper, key);
  const now = admin.now();
  const grant = {
    keyId: Bun.randomUUIDv7(),
    organizationId: organization.id,
    surfaces: requireMembers("surface", surfaces, asked.surfaces ?? ["rest_api"]),
    resources: requireMembers("resource", resources, asked.resources ?? ["projects", "variables"]),
    environments: asked.environments ? requireEnvironments(asked.environments) : everyEnvironment,
    projects: asked.projects ? await slugsToIds(admin, organization, asked.projects) : null,
    expiresAt: asked.expiresInMs === undefined ? null : now + asked.expiresInMs,
  };
  const { keyId: id, ...reach } = grant;
  const row = {
    id,
    ...reach,
    name: displayName("key", asked.name ?? `key of ${new Date(now).toISOString().slice(0, 10)}`),
    digest,
    revokedAt: null,
    createdAt: now,
    grantSeal: sealGrant(admin.systemKeys.grant, digest, grant),
  };
  await writing(admin, async (db) => {
    await db.insert(admin.database.tables.apiKeys).values(row);
    return [undefined, [{ action: "key.create", organization, names: [id] }]];
  });
  return { ...recordOf(admin, row, organization.slug, null), key };
}

/** The keys of one organization or of all, oldest first. @throws Refused `not_found` */
export async function listKeys(admin: AdminContext, organization?: string): Promise<KeyRecord[]> {
  const { apiKeys: k } = admin.database.tables;
  const only = organization === undefined ? undefined : await findOrganization(admin, organization);
  return records(admin, only && eq(k.organizationId, only.id));
}

/** The active keys that reach a project, in one environment or in any. @throws Refused `not_found`, `ambiguous`, `invalid` */
export async function listAccess(admin: AdminContext, where: string, environment?: string): Promise<KeyRecord[]> {
  const mask = environment === undefined ? everyEnvironment : environmentMask(requireEnvironment(environment));
  const project = await findProject(admin, where);
  const { apiKeys: k } = admin.database.tables;
  const rows = await admin.database.db
    .select({ id: k.id, environments: k.environments, projects: k.projects })
    .from(k)
    .where(eq(k.organizationId, project.organization.id));
  const reaching = rows
    .filter(({ environments }) => (environments & mask) !== 0)
    // A listed key reaches the project that had the slug when the key was made, and no later one.
    .filter(({ projects }) => projects === null || idsOf(projects).get(project.slug) === project.id)
    .map(({ id }) => id);
  const found = reaching.length === 0 ? [] : await records(admin, inArray(k.id, reaching));
  return found.filter(({ status }) => status === "active");
}

/** The active keys that expire within this time, the next one first. */
export async function listExpiring(admin: AdminContext, withinMs: number): Promise<KeyRecord[]> {
  const { apiKeys: k } = admin.database.tables;
  const found = await records(admin, lte(k.expiresAt, admin.now() + withinMs));
  return found.filter(({ status }) => status === "active").sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0));
}

/**
 * The whole id of the key that `id` is or begins.
 * @throws Refused `not_found` if it has fewer than 8 characters, or fits no key or several
 */
export async function findKeyId(admin: AdminContext, id: string): Promise<string> {
  const { apiKeys: k } = admin.database.tables;
  const fitting = /^[0-9a-f-]{8,36}$/.test(id)
    ? await admin.database.db
        .select({ id: k.id })
        .from(k)
        .where(like(k.id, `${id}%`))
        .limit(2)
    : [];
  if (fitting.length > 1) throw new Refused("not_found", `Several keys begin with ${id}: give more of the id.`);
  if (fitting[0] === undefined) throw noKey(id);
  return fitting[0].id;
}

/**
 * Shortens ids as tables show them: to the fewest characters, at least 8, with which no other key's id begins. What is
 * not the id of a key stays whole.
 */
export async function shortKeyIds(admin: AdminContext): Promise<(id: string) => string> {
  const { apiKeys: k } = admin.database.tables;
  const rows = await admin.database.db.select({ id: k.id }).from(k).orderBy(asc(k.id));
  const ids = rows.map(({ id }) => id);
  const sharedLength = (a: string, b = "") => {
    let length = 0;
    while (length < b.length && a[length] === b[length]) length++;
    return length;
  };
  const lengths = new Map(
    ids.map((id, at) => [id, Math.max(7, sharedLength(id, ids[at - 1]), sharedLength(id, ids[at + 1])) + 1]),
  );
  return (id) => id.slice(0, lengths.get(id));
}

/** One key by its id or the beginning of it, as {@link findKeyId}. @throws Refused `not_found` */
export async function showKey(admin: AdminContext, asked: string): Promise<KeyRecord> {
  const id = await findKeyId(admin, asked);
  const [found] = await records(admin, eq(admin.database.tables.apiKeys.id, id));
  if (!found) throw noKey(id);
  return found;
}

/**
 * Revokes a key from the next request on. The time of an earlier revocation stays.
 * @throws Refused `not_found`
 */
export async function revokeKey(admin: AdminContext, asked: string): Promise<KeyRecord> {
  const { apiKeys: k } = admin.database.tables;
  const id = await findKeyId(admin, asked);
  await writing(admin, async (db) => {
    const revoked = await db
      .update(k)
      // Without its seal the key stays invalid, even if SQL sets the time of its revocation before or removes it later.
      .set({ revokedAt: sql`coalesce(${k.revokedAt}, ${admin.now()})`, grantSeal: Buffer.alloc(32) })
      .where(eq(k.id, id))
      .returning({ organizationId: k.organizationId });
    const [organization] = await organizationsOf(admin, db, revoked);
    if (organization === undefined) throw noKey(id);
    return [undefined, [{ action: "key.revoke", organization, names: [id] }]];
  });
  return showKey(admin, id);
}

/**
 * Creates a key with the same rights, and lets the old one expire after the overlap unless it expires earlier. The new
 * key's lifetime is the old key's whole lifetime; if the old key never expires, neither does the new one.
 *
 * @returns the successor's record and its text, which cannot be had again; and the old key's record
 * @throws Refused `not_found`; `conflict` if the old key is expired, revoked or damaged
 */
export async function rotateKey(
  admin: AdminContext,
  asked: string,
  overlapMs: number,
): Promise<{ successor: KeyRecord & { key: string }; predecessor: KeyRecord }> {
  const { apiKeys: k } = admin.database.tables;
  const key = mintKey();
  const digest = digestKey(admin.systemKeys.pepper, key);
  const successorId = Bun.randomUUIDv7();
  const id = await findKeyId(admin, asked);
  await writing(admin, async (db) => {
    const query = db.select().from(k).where(eq(k.id, id));
    const [old] = await (admin.database.dialect === "postgres" ? query.for("update") : query);
    if (!old) throw noKey(id);
    const now = admin.now();
    if (old.revokedAt !== null) throw new Refused("conflict", `The key ${id} is revoked: create a new key.`);
    if (old.expiresAt !== null && old.expiresAt <= now) {
      throw new Refused("conflict", `The key ${id} has expired: create a new key.`);
    }
    // Servers refuse a row that was changed by SQL; a new seal would make it valid.
    if (!isSealed(admin, old)) {
      throw new Refused("conflict", `The key ${id} was changed outside Keyhole and is invalid: create a new key.`);
    }
    const expiresAt = old.expiresAt === null ? null : now + (old.expiresAt - old.createdAt);
    const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs);
    const successor = { ...old, id: successorId, digest, expiresAt, revokedAt: null, createdAt: now };
    await db.insert(k).values({ ...successor, grantSeal: sealOf(admin, successor) });
    await db
      .update(k)
      .set({ expiresAt: endsAt, grantSeal: sealOf(admin, { ...old, expiresAt: endsAt }) })
      .where(eq(k.id, id));
    const [organization = null] = await organizationsOf(admin, db, [old]);
    return [undefined, [{ action: "key.rotate", organization, names: [id, successorId] }]];
  });
  return { successor: { ...(await showKey(admin, successorId)), key }, predecessor: await showKey(admin, id) };
}

async function organizationsOf(
  admin: AdminContext,
  db: Db,
  rows: readonly { readonly organizationId: string }[],
): Promise<Organization[]> {
  const { organizations: o } = admin.database.tables;
  return db
    .select()
    .from(o)
    .where(
      inArray(
        o.id,
        rows.map(({ organizationId }) => organizationId),
      ),
    );
}

async function records(admin: AdminContext, where: SQL | undefined): Promise<KeyRecord[]> {
  const { apiKeys: k, organizations: o, keyUses: u } = admin.database.tables;
  const rows = await admin.database.db
    .select({ key: k, organization: o.slug, lastUsedAt: u.lastUsedAt })
    .from(k)
    .innerJoin(o, eq(o.id, k.organizationId))
    .leftJoin(u, eq(u.keyId, k.id))
    .where(where)
    .orderBy(asc(k.createdAt), asc(k.id));
  return rows.map(({ key, organization, lastUsedAt }) => recordOf(admin, key, organization, lastUsedAt));
}

type KeyRow = AdminContext["database"]["tables"]["apiKeys"]["$inferSelect"];

function recordOf(admin: AdminContext, row: KeyRow, organization: string, lastUsedAt: number | null): KeyRecord {
  return {
    id: row.id,
    name: row.name,
    organization,
    surfaces: membersOf(surfaces, row.surfaces),
    resources: membersOf(resources, row.resources),
    projects: row.projects === null ? null : [...idsOf(row.projects).keys()],
    environments: row.environments === everyEnvironment ? null : environmentsOf(row.environments),
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
    lastUsedAt,
    status: statusOf(admin, row),
  };
}

function statusOf(admin: AdminContext, row: KeyRow): KeyRecord["status"] {
  if (row.revokedAt !== null) return "revoked";
  if (!isSealed(admin, row)) return "damaged";
  return row.expiresAt !== null && row.expiresAt <= admin.now() ? "expired" : "active";
}

/** Whether a row matches its seal; servers refuse one that was changed by SQL. */
function isSealed(admin: AdminContext, row: KeyRow): boolean {
  return sealOf(admin, row).equals(row.grantSeal);
}

function sealOf(admin: AdminContext, { id: keyId, ...row }: Omit<KeyRow, "grantSeal">): Buffer {
  const { digest, organizationId, surfaces, resources, environments, projects, expiresAt } = row;
  const grant = { keyId, organizationId, surfaces, resources, environments, projects, expiresAt };
  return sealGrant(admin.systemKeys.grant, digest, grant);
}

/** Of a listed key: slug to project id. Empty if the list was damaged by SQL. */
function idsOf(list: string): Map<string, unknown> {
  try {
    const ids: unknown = JSON.parse(list);
    return new Map(typeof ids === "object" && ids !== null && !Array.isArray(ids) ? Object.entries(ids) : []);
  } catch {
    return new Map();
  }
}

/** The slug-to-id map that a listed key carries, as JSON in byte order of slug. */
async function slugsToIds(admin: AdminContext, organization: Organization, slugs: readonly string[]): Promise<string> {
  const { projects: p } = admin.database.tables;
  if (slugs.length === 0) throw new Refused("invalid", "Name at least one project.");
  const rows = await admin.database.db
    .select({ slug: p.slug, id: p.id })
    .from(p)
    .where(and(eq(p.organizationId, organization.id), inArray(p.slug, [...new Set(slugs)])))
    .orderBy(asc(p.slug));
  const missing = slugs.find((slug) => !rows.some((row) => row.slug === slug));
  if (missing !== undefined) {
    throw new Refused("not_found", `There is no project ${JSON.stringify(missing)} in ${organization.slug}.`);
  }
  return JSON.stringify(Object.fromEntries(rows.map(({ slug, id }) => [slug, id])));
}

function requireMembers<T extends string>(what: string, all: readonly T[], asked: readonly string[]): number {
  const unknown = asked.find((member) => !(all as readonly string[]).includes(member));
  if (asked.length === 0 || unknown !== undefined) {
    throw new Refused("invalid", `${JSON.stringify(unknown ?? "")} is not a ${what}: ${all.join(", ")}.`);
  }
  return bitsOf(all, asked as readonly T[]);
}

function noKey(id: string): Refused {
  const why = id.length < 8 ? "an id takes at least 8 characters, and " : "";
  return new Refused("not_found", `There is no key ${JSON.stringify(id)}: ${why}\`keyhole key list\` shows the ids.`);
}
