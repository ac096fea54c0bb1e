import { and, asc, eq, inArray, isNotNull, isNull, lte, type SQL, sql } from "drizzle-orm";
import { digestKey, mintKey } from "../access/api-key.ts";
import { bitsOf, membersOf, type Surface, sealGrant, surfaces } from "../access/grant.ts";
import { meets, type ProjectPlace } from "../access/rights.ts";
import { parseTerms, type Terms } from "../access/token.ts";
import { type Environment, environmentMask, environmentsOf, everyEnvironment } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { findId, noId, shortIds } from "../desk/ids.ts";
import { findOrganization, type Organization, ofOrganization } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { findProject } from "../desk/projects.ts";
import { displayName, requireEnvironment, requireEnvironments } from "../desk/validate.ts";
import { resources, resourcesByDefault } from "../kinds/kind.ts";
import type { Db } from "../store/database.ts";

/** What may be presented: a key, or a token that a trust stands for. Both are rows of one table. */
export type CredentialType = "key" | "trust";

/** A key or a trust for people: everything except the key's text, which is not stored. */
export type KeyRecord = {
  readonly id: string;
  readonly type: CredentialType;
  readonly name: string;
  /** Its slug. */
  readonly organization: string;
  readonly surfaces: readonly Surface[];
  readonly resources: readonly string[];
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
  /** Of a trust only. */
  readonly terms?: ShownTerms;
};

/** Which tokens a trust accepts. */
export type ShownTerms = Omit<Terms, "jwks"> & { readonly keys: "published" | "pinned" };

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
  const key = mintKey();
  return { ...(await createCredential(admin, asked, key)), key };
}

/**
 * Creates a key or a trust.
 * @param presented - the key's text, or the terms of the trust
 * @throws Refused `invalid`, `not_found`, `ambiguous`
 */
export async function createCredential(
  admin: AdminContext,
  asked: NewKey,
  presented: string | Terms,
): Promise<KeyRecord> {
  const organization = await findOrganization(admin, asked.organization);
  const type = typeof presented === "string" ? "key" : "trust";
  const now = admin.now();
  const grant = {
    keyId: Bun.randomUUIDv7(),
    organizationId: organization.id,
    surfaces: requireMembers("surface", surfaces, asked.surfaces ?? ["rest_api"]),
    resources: requireMembers("resource", resources, asked.resources ?? resourcesByDefault),
    environments: asked.environments ? requireEnvironments(asked.environments) : everyEnvironment,
    projects: asked.projects ? await slugsToIds(admin, organization, asked.projects) : null,
    expiresAt: asked.expiresInMs === undefined ? null : now + asked.expiresInMs,
    trust: typeof presented === "string" ? null : JSON.stringify(presented),
  };
  const { keyId: id, ...reach } = grant;
  // Nobody can present an id as a key, so this digest only makes the row one that the server can look up.
  const digest = digestKey(admin.systemKeys.pepper, typeof presented === "string" ? presented : id);
  const permits = permitsFor(admin, reach);
  if (permits === undefined) throw beyondRights(organization.slug);
  const row = {
    id,
    ...reach,
    name: displayName(type, asked.name ?? `${type} of ${new Date(now).toISOString().slice(0, 10)}`),
    digest,
    revokedAt: null,
    createdAt: now,
    grantSeal: sealGrant(admin.systemKeys.grant, digest, grant),
  };
  await writing(admin, permits, async (db) => {
    await db.insert(admin.database.tables.apiKeys).values(row);
    return [undefined, [{ action: `${type}.create`, organization, names: [id] }]];
  });
  return recordOf(admin, row, organization.slug, null);
}

/** The keys, or the trusts, of one organization or of all, oldest first. @throws Refused `not_found` */
export async function listKeys(
  admin: AdminContext,
  organization?: string,
  type: CredentialType = "key",
): Promise<KeyRecord[]> {
  const { apiKeys: k } = admin.database.tables;
  return records(admin, and(ofType(admin, type), await ofOrganization(admin, k, organization)));
}

/**
 * The active keys and trusts that reach a project, in one environment or in any that somebody may see.
 * @throws Refused `not_found`, `ambiguous`, `invalid`
 */
export async function listAccess(admin: AdminContext, where: string, environment?: string): Promise<KeyRecord[]> {
  const project = await findProject(
    admin,
    where,
    "see",
    environment === undefined ? undefined : [requireEnvironment(environment)],
  );
  const { apiKeys: k } = admin.database.tables;
  const mask = environmentMask(...project.permit.environments);
  const rows = await admin.database.db
    .select({ id: k.id, environments: k.environments, projects: k.projects })
    .from(k)
    .where(eq(k.organizationId, project.organization.id));
  const reaching = rows
    .filter(({ environments }) => (environments & mask) !== 0)
    // What lists projects reaches the one that had the slug when the row was made, and no later one.
    .filter(({ projects }) => projects === null || idsOf(projects).get(project.slug) === project.id)
    .map(({ id }) => id);
  const found = reaching.length === 0 ? [] : await records(admin, inArray(k.id, reaching));
  return found.filter(({ status }) => status === "active");
}

/** The active keys and trusts that expire within this time, the next one first. */
export async function listExpiring(admin: AdminContext, withinMs: number): Promise<KeyRecord[]> {
  const { apiKeys: k } = admin.database.tables;
  const found = await records(admin, lte(k.expiresAt, admin.now() + withinMs));
  return found.filter(({ status }) => status === "active").sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0));
}

/**
 * The whole id of the key or trust that `id` is or begins.
 * @param type - only of these
 * @throws Refused `not_found` if it has fewer than 8 characters, or fits none or several
 */
export function findKeyId(admin: AdminContext, id: string, type?: CredentialType): Promise<string> {
  return findId(admin, admin.database.tables.apiKeys, type ?? "key", id, {
    only: type && ofType(admin, type),
    isSeen: (row) => isSeen(admin, row),
  });
}

/**
 * Shortens ids as tables show them: to the fewest characters, at least 8, with which no other id begins. What is
 * not the id of a key or a trust stays whole.
 */
export async function shortKeyIds(admin: AdminContext): Promise<(id: string) => string> {
  return shortIds(admin, admin.database.tables.apiKeys, (row) => isSeen(admin, row));
}

/** The names of all keys and trusts by their ids. */
export async function keyNames(admin: AdminContext): Promise<ReadonlyMap<string, string>> {
  const { apiKeys: k } = admin.database.tables;
  const rows = await admin.database.db.select({ id: k.id, name: k.name }).from(k);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** One key, or one trust, by its id or the beginning of it, as {@link findKeyId}. @throws Refused `not_found` */
export async function showKey(admin: AdminContext, asked: string, type: CredentialType = "key"): Promise<KeyRecord> {
  return recordAt(admin, await findKeyId(admin, asked, type), type);
}

/** One key or trust, as {@link showKey} shows one of a type that is known. @throws Refused `not_found` */
export async function showCredential(admin: AdminContext, asked: string): Promise<KeyRecord> {
  return recordAt(admin, await findKeyId(admin, asked));
}

async function recordAt(admin: AdminContext, id: string, type?: CredentialType): Promise<KeyRecord> {
  const [found] = await records(admin, eq(admin.database.tables.apiKeys.id, id));
  if (found === undefined) throw noKey(id, type);
  return found;
}

/** Whether a key or a trust is active, is as old as this moment, and was not used since. */
export function isUnused({ status, lastUsedAt, createdAt }: KeyRecord, sinceAt: number): boolean {
  return status === "active" && (lastUsedAt ?? createdAt) <= sinceAt;
}

/** Whether a key or a trust is active and has no end. */
export function neverEnds({ status, expiresAt }: KeyRecord): boolean {
  return status === "active" && expiresAt === null;
}

/**
 * Revokes a key, or a trust, from the next request on. The time of an earlier revocation stays.
 * @throws Refused `not_found`
 */
export async function revokeKey(admin: AdminContext, asked: string, type: CredentialType = "key"): Promise<KeyRecord> {
  const { apiKeys: k } = admin.database.tables;
  const id = await findKeyId(admin, asked, type);
  await writing(admin, await requirePermits(admin, id, type), async (db) => {
    const revoked = await db
      .update(k)
      // Without its seal the key stays invalid, even if SQL sets the time of its revocation before or removes it later.
      .set({ revokedAt: sql`coalesce(${k.revokedAt}, ${admin.now()})`, grantSeal: Buffer.alloc(32) })
      .where(eq(k.id, id))
      .returning({ organizationId: k.organizationId });
    const [organization] = await organizationsOf(admin, db, revoked);
    if (organization === undefined) throw noKey(id, type);
    return [undefined, [{ action: `${type}.revoke`, organization, names: [id] }]];
  });
  return recordAt(admin, id, type);
}

/**
 * Creates a key with the same rights, and lets the old one expire after the overlap unless it expires earlier. The new
 * key's lifetime is the old key's whole lifetime; if the old key never expires, neither does the new one.
 *
 * @param shown - the old key as a person saw it
 * @returns the successor's record and its text, which cannot be had again; and the old key's record
 * @throws Refused `not_found`; `conflict` if the old key is expired, revoked or damaged, or has another end than `shown`
 */
export async function rotateKey(
  admin: AdminContext,
  asked: string,
  overlapMs: number,
  shown?: Pick<KeyRecord, "expiresAt">,
): Promise<{ successor: KeyRecord & { key: string }; predecessor: KeyRecord }> {
  const { apiKeys: k } = admin.database.tables;
  const key = mintKey();
  const digest = digestKey(admin.systemKeys.pepper, key);
  const successorId = Bun.randomUUIDv7();
  const id = await findKeyId(admin, asked, "key");
  await writing(admin, await requirePermits(admin, id, "key"), async (db) => {
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
    // SQL may have shown another row until now.
    if (permitsFor(admin, old) === undefined) throw beyondOwnRights(id, "key");
    if (shown !== undefined && shown.expiresAt !== old.expiresAt) {
      throw new Refused(
        "conflict",
        `The key ${id} was rotated since it was shown: look at it again. Nothing was changed.`,
      );
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
  return { successor: { ...(await recordAt(admin, successorId)), key }, predecessor: await recordAt(admin, id) };
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

function ofType(admin: AdminContext, type: CredentialType): SQL {
  const { trust } = admin.database.tables.apiKeys;
  return type === "key" ? isNull(trust) : isNotNull(trust);
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
  return rows
    .filter(({ key }) => isSeen(admin, key))
    .map(({ key, organization, lastUsedAt }) => recordOf(admin, key, organization, lastUsedAt));
}

type Reach = Pick<KeyRow, "organizationId" | "projects" | "environments">;

/** The projects that a key or a trust lists, as places; all of the organization if it lists none. */
function placesOf({ organizationId, projects }: Reach): ProjectPlace[] {
  if (projects === null) return [{ organizationId, projectId: null }];
  return [...idsOf(projects).values()].map((id) => ({ organizationId, projectId: String(id) }));
}

/** Whether it reaches a place where somebody may see who can read what, or make keys. */
function isSeen(admin: AdminContext, key: Reach): boolean {
  return admin.rights === "operator" || placesOf(key).some((place) => isSeenIn(admin, place, key));
}

function isSeenIn({ rights }: AdminContext, place: ProjectPlace, { environments }: Reach): boolean {
  if (rights === "operator") return true;
  return (["see", "keys"] as const).some((right) => meets(rights, right, place, environments));
}

/** What making, rotating or revoking takes, at every place that is reached. */
const keyRights = ["keys", "reveal"] as const;

/** The permits for everything that a key or a trust reaches; undefined if it reaches further than somebody's rights. */
function permitsFor(admin: AdminContext, reach: Reach): Permit[] | undefined {
  const among = environmentsOf(reach.environments);
  const permits = placesOf(reach).map((place) => Permit.find(admin, keyRights, place, among));
  const found = permits.filter((permit) => permit !== undefined);
  if (admin.rights === "operator") return [Permit.operator(admin)];
  return found.length === permits.length && found.length > 0 ? found : undefined;
}

/** @throws Refused `not_found` if the key or trust reaches further than somebody's rights */
async function requirePermits(admin: AdminContext, id: string, type: CredentialType): Promise<Permit[]> {
  const permits = await findPermits(admin, id);
  if (permits === undefined) throw beyondOwnRights(id, type);
  return permits;
}

/** The permits to change a key or a trust; undefined if it reaches further than somebody's rights. */
export async function findPermits(admin: AdminContext, id: string): Promise<Permit[] | undefined> {
  const { apiKeys: k } = admin.database.tables;
  const [row] = await admin.database.db.select().from(k).where(eq(k.id, id));
  return row && permitsFor(admin, row);
}

function beyondOwnRights(id: string, type: CredentialType): Refused {
  return new Refused("not_found", `There is no ${type} ${id} that reaches no further than ${ownRights}.`);
}

function beyondRights(organization: string): Refused {
  return new Refused(
    "not_found",
    `There is no place in ${organization} for this key: it would reach further than ${ownRights}.`,
  );
}

const ownRights = "your own rights `keys` and `reveal`";

type KeyRow = AdminContext["database"]["tables"]["apiKeys"]["$inferSelect"];

function recordOf(admin: AdminContext, row: KeyRow, organization: string, lastUsedAt: number | null): KeyRecord {
  const terms = row.trust === null ? undefined : parseTerms(row.trust);
  return {
    id: row.id,
    type: row.trust === null ? "key" : "trust",
    name: row.name,
    organization,
    surfaces: membersOf(surfaces, row.surfaces),
    resources: membersOf(resources, row.resources),
    projects: row.projects === null ? null : seenSlugs(admin, row),
    environments: row.environments === everyEnvironment ? null : environmentsOf(row.environments),
    createdAt: row.createdAt,
    expiresAt: row.expiresAt,
    revokedAt: row.revokedAt,
    lastUsedAt,
    status: keyStatus(admin, row),
    ...(terms && { terms: shownTerms(terms) }),
  };
}

/** The projects of a list that somebody may see. */
function seenSlugs(admin: AdminContext, row: KeyRow): string[] {
  const { organizationId, projects } = row;
  return [...idsOf(projects ?? "")]
    .filter(([, id]) => isSeenIn(admin, { organizationId, projectId: String(id) }, row))
    .map(([slug]) => slug);
}

function shownTerms({ issuer, audience, claims, jwks }: Terms): ShownTerms {
  return { issuer, audience, claims, keys: jwks === null ? "published" : "pinned" };
}

/** Whether servers accept a key or a trust, and if not, why. */
export function keyStatus(admin: AdminContext, row: KeyRow): KeyRecord["status"] {
  if (row.revokedAt !== null) return "revoked";
  if (!isSealed(admin, row)) return "damaged";
  return row.expiresAt !== null && row.expiresAt <= admin.now() ? "expired" : "active";
}

/** Whether a row matches its seal; servers refuse one that was changed by SQL. */
function isSealed(admin: AdminContext, row: KeyRow): boolean {
  return sealOf(admin, row).equals(row.grantSeal);
}

function sealOf(admin: AdminContext, { id: keyId, ...row }: Omit<KeyRow, "grantSeal">): Buffer {
  const { digest, organizationId, surfaces, resources, environments, projects, expiresAt, trust } = row;
  const grant = { keyId, organizationId, surfaces, resources, environments, projects, expiresAt, trust };
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
    if (admin.rights !== "operator") throw beyondRights(organization.slug);
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

function noKey(id: string, type: CredentialType = "key"): Refused {
  return noId(type, id);
}
