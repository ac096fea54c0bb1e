import { and, asc, eq, gt, inArray, isNotNull, isNull, lte, type SQL, sql } from "drizzle-orm";
import { attempt } from "../../core/attempt.ts";
import { type Environment, environmentMask, environmentsOf, everyEnvironment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { everyKind } from "../../kinds/kind.ts";
import { resources, resourcesByDefault } from "../../kinds/people.ts";
import { digestKey, mintKey } from "../../serve/access/api-key.ts";
import {
  bitsOf,
  membersOf,
  type Surface,
  sealCanary,
  sealGrant,
  surfaces,
  surfacesByDefault,
} from "../../serve/access/grant.ts";
import { hasSomewhere, meets, type ProjectPlace } from "../../serve/access/rights.ts";
import { foundByOf, parseTerms, type Terms } from "../../serve/access/token.ts";
import { projectsBytesMax } from "../../store/reach.ts";
import { type AdminContext, within, writing } from "../desk/context.ts";
import { findById, noId, shortIds } from "../desk/ids.ts";
import { findOrganization, type Organization, ofOrganization } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { changedSince } from "../desk/plan.ts";
import { findProject, nearestProject, noProject, projectPath } from "../desk/projects.ts";
import { displayName, requireEnvironments, requireMembers } from "../desk/validate.ts";
import { type Gets, keyGets } from "./readers.ts";

/** A credential: a key, or a trust that accepts tokens. Both are rows of one table. */
export type CredentialType = "key" | "trust";

/** A key or a trust for people: everything except the key's text, which is not stored. */
export type KeyRecord = Pick<StoredKey, "id" | "name" | "createdAt" | "expiresAt" | "revokedAt"> & {
  readonly type: CredentialType;
  /** Its slug. */
  readonly organization: string;
  readonly surfaces: readonly Surface[];
  readonly resources: readonly string[];
  /** Slugs; null means every project of the organization. Empty if the row is too damaged to tell. */
  readonly projects: readonly string[] | null;
  /** Null means every environment. */
  readonly environments: readonly Environment[] | null;
  readonly lastUsedAt: number | null;
  /** How many times as large as those of other keys its buckets are. */
  readonly rate: number;
  /** The ranges of the addresses from which it may be used; null: from everywhere. */
  readonly from: readonly string[] | null;
  /**
   * `damaged`: the row does not match its seal, so every server refuses the key. `canary`: bait, which every server
   * refuses too, and whose uses are on record.
   */
  readonly status: "active" | "expired" | "revoked" | "damaged" | "canary";
  /** Of a trust only. */
  readonly terms?: ShownTerms;
};

/** Which tokens a trust accepts. */
export type ShownTerms = Omit<Terms, "jwks"> & { readonly keys: "published" | "pinned" };

export type NewKey = {
  readonly organization?: string | undefined;
  readonly name?: string | undefined;
  /** Default: {@link surfacesByDefault}. */
  readonly surfaces?: readonly string[] | undefined;
  /** Default: `projects` and `variables`; `files` is never granted unless named. */
  readonly resources?: readonly string[] | undefined;
  /** Slugs; null for every project, those of the future too. */
  readonly projects: readonly string[] | null;
  /** The ids of these projects, by slug, as far as the caller has seen them. */
  readonly projectIds?: ReadonlyMap<string, string | undefined> | undefined;
  /** Null for every environment. */
  readonly environments: readonly string[] | null;
  readonly expiresInMs?: number | undefined;
  /** How many times as large its buckets are. Default: once. */
  readonly rate?: number | undefined;
  /** Ranges as `parseRange` writes them. Default: it may be used from everywhere. */
  readonly from?: readonly string[] | undefined;
  /** Whether it is a canary, which opens nothing. A canary has no end but its revocation. */
  readonly canary?: boolean | undefined;
};

/**
 * Creates a key.
 * @returns its record and its text, which cannot be had again
 */
export async function createKey(admin: AdminContext, asked: NewKey): Promise<KeyRecord & { key: string }> {
  const key = mintKey();
  return { ...(await createCredential(admin, asked, key)), key };
}

/**
 * Creates a key or a trust.
 * @param presented - the key's text, or the terms of the trust
 */
export async function createCredential(admin: AdminContext, asked: NewKey, presented: string | Terms) {
  if (asked.canary && asked.expiresInMs !== undefined) {
    throw new Refused("invalid", "A canary never expires: it opens nothing, and revoking it ends it.");
  }
  return within(admin, async (admin) => {
    const { organization, permits, ...places } = await permittedReach(admin, asked);
    const type = typeof presented === "string" ? "key" : "trust";
    const now = admin.now();
    const grant = {
      keyId: Bun.randomUUIDv7(),
      ...places,
      surfaces: bitsOf(surfaces, requireMembers("surface", surfaces, asked.surfaces ?? surfacesByDefault)),
      resources: bitsOf(resources, requireMembers("resource", resources, asked.resources ?? resourcesByDefault)),
      expiresAt: asked.expiresInMs === undefined ? null : now + asked.expiresInMs,
      trust: typeof presented === "string" ? null : JSON.stringify(presented),
      rate: asked.rate === undefined || asked.rate === 1 ? null : asked.rate,
      from: asked.from?.join() ?? null,
    };
    const foundBy = typeof presented === "string" ? null : foundByOf(presented);
    const { keyId: id, ...reach } = grant;
    // Nobody can present an id as a key, so this digest only makes the row one that the server can look up.
    const digest = digestKey(admin.systemKeys.pepper, typeof presented === "string" ? presented : id);
    const row = {
      id,
      ...reach,
      foundBy,
      name: displayName(type, asked.name ?? `${type} of ${new Date(now).toISOString().slice(0, 10)}`),
      digest,
      revokedAt: null,
      createdAt: now,
      grantSeal: (asked.canary ? sealCanary : sealGrant)(admin.systemKeys.grant, digest, grant),
    };
    return writing(admin, permits, async (admin) => {
      await admin.database.db.insert(admin.database.tables.apiKeys).values(row);
      const change = { action: `${type}.create`, organization, names: [id, ...(asked.from ?? [])] } as const;
      return [recordOf(admin, row, organization.slug, null), [change]];
    });
  });
}

/** The reach of a new key or trust, with the permits to make it. */
export async function permittedReach(admin: AdminContext, asked: NewKey) {
  const organization = await findOrganization(admin, asked.organization);
  const reach = {
    organizationId: organization.id,
    environments: asked.environments ? requireEnvironments(asked.environments) : everyEnvironment,
    projects: asked.projects ? await slugsToIds(admin, organization, asked.projects, asked.projectIds) : null,
  };
  const permits = permitsFor(admin, reach);
  if (permits === undefined) throw beyondRights(organization.slug);
  return { organization, permits, ...reach };
}

/** Keys and trusts of one organization or of all, oldest first. @param isNamed - only those whose names fit */
export async function listKeys(admin: AdminContext, organization?: string, isNamed?: (name: string) => boolean) {
  const only = await ofOrganization(admin, admin.database.tables.apiKeys, organization);
  return records(admin, only, isNamed && (({ name }) => isNamed(name)));
}

/** A key or a trust that reaches a project, with what it gets of each kind. */
export type KeyAccess = KeyRecord & { readonly gets: Readonly<Record<string, Gets>> };

/**
 * The active keys and trusts that reach a project, in one environment or in any that somebody may see; and the canaries
 * that look as if they did.
 */
export async function listAccess(admin: AdminContext, where: string, environment?: Environment): Promise<KeyAccess[]> {
  const { id, slug, organization, permit } = await findProject(admin, where, "see", environment && [environment]);
  const mask = environmentMask(...permit.environments);
  // A key that lists projects reaches them by id: a later project with the same slug is out of reach.
  const isReaching = ({ environments, projects }: KeyReach) =>
    (environments & mask) !== 0 && (projects === null || idsOf(projects).get(slug) === id);
  const ofIts = eq(admin.database.tables.apiKeys.organizationId, organization.id);
  const found = await records(admin, ofIts, isReaching);
  return found.flatMap((one) => {
    if (one.status === "canary") return [{ ...one, gets: {} }];
    if (one.status !== "active") return [];
    const gets = everyKind.map((descriptor) => [descriptor.kind, keyGets(organization.plan, one, descriptor)]);
    return [{ ...one, gets: Object.fromEntries(gets) }];
  });
}

/**
 * The active keys and trusts that expire within this time, the next one first.
 * @param all - those that somebody may see, if they were read already
 */
export async function listExpiring(admin: AdminContext, withinMs: number, all?: KeyRecord[]): Promise<KeyRecord[]> {
  const { apiKeys: k } = admin.database.tables;
  const endOf = ({ status, expiresAt }: KeyRecord) => (status === "active" && expiresAt) || Number.POSITIVE_INFINITY;
  const untilAt = admin.now() + withinMs;
  const read = all ?? (await records(admin, and(isNull(k.revokedAt), lte(k.expiresAt, untilAt))));
  const found = read.filter((one) => endOf(one) <= untilAt);
  return found.sort((a, b) => endOf(a) - endOf(b));
}

/**
 * The row of the key or trust that `id` names or begins.
 * @param type - only of these
 * @throws Refused `not_found` if it has fewer than 8 characters, or fits none or several
 */
export function findKey(admin: AdminContext, id: string, type?: CredentialType): Promise<StoredKey> {
  const { apiKeys: k } = admin.database.tables;
  return findById(admin, k, type ?? "key", id, {
    only: type && (type === "key" ? isNull(k.trust) : isNotNull(k.trust)),
    isSeen: (row) => isSeen(admin, row),
  });
}

/**
 * Shortens ids of keys and trusts for tables: to the shortest unique beginning of at least 8 characters. Other texts
 * stay whole.
 */
export async function shortKeyIds(admin: AdminContext): Promise<(id: string) => string> {
  return shortIds(await listKeys(admin));
}

/** The names of all keys and trusts by their ids. */
export async function keyNames(admin: AdminContext): Promise<ReadonlyMap<string, string>> {
  const { apiKeys: k } = admin.database.tables;
  const rows = await admin.database.db.select({ id: k.id, name: k.name }).from(k);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

/** Whether a key or a trust that somebody may see was ever used. */
export async function wasAnyUsed(admin: AdminContext): Promise<boolean> {
  const { apiKeys: k, keyUses: u } = admin.database.tables;
  const query = admin.database.db
    .select({ organizationId: k.organizationId, projects: k.projects, environments: k.environments })
    .from(u)
    .innerJoin(k, eq(u.keyId, k.id));
  const used = await (admin.rights === "operator" ? query.limit(1) : query);
  return used.some((key) => isSeen(admin, key));
}

/** One key or trust, found as by {@link findKey}. In a transaction, nobody else changes it before the end. */
export async function showKey(admin: AdminContext, asked: string, type?: CredentialType): Promise<KeyRecord> {
  const { apiKeys: k } = admin.database.tables;
  const found = await findKey(admin, asked, type);
  if (admin.isWithin) await admin.database.locked(admin.database.db.select().from(k).where(eq(k.id, found.id)));
  return recordAt(admin, found);
}

async function recordAt(admin: AdminContext, row: StoredKey): Promise<KeyRecord> {
  const [found] = await records(admin, eq(admin.database.tables.apiKeys.id, row.id));
  if (found === undefined) throw noKey(row);
  return found;
}

/** @throws Refused `forbidden` if a person may see no key anywhere */
export function requireSeesKeys({ rights }: AdminContext): void {
  if (hasSomewhere(rights, "see", "keys")) return;
  throw new Refused("forbidden", "To look for keys takes the right `see` or `keys`.");
}

/**
 * Which keys some texts are, oldest first, of those that the person may see.
 * @param texts - each has the form of a key
 */
export async function identifyKeys(admin: AdminContext, texts: readonly string[]): Promise<KeyRecord[]> {
  const found: KeyRecord[] = [];
  for (let at = 0; at < texts.length; at += digestsMax) {
    const digests = texts.slice(at, at + digestsMax).map((text) => digestKey(admin.systemKeys.pepper, text));
    found.push(...(await records(admin, inArray(admin.database.tables.apiKeys.digest, digests))));
  }
  return found.sort((a, b) => a.createdAt - b.createdAt);
}

/** The most digests in one statement. */
const digestsMax = 500;

/** Whether a key or a trust is active, existed at this moment, and was not used since. */
export function isUnused({ status, lastUsedAt, createdAt }: KeyRecord, sinceAt: number): boolean {
  return status === "active" && (lastUsedAt ?? createdAt) <= sinceAt;
}

/** Whether a key or a trust is active and has no end. */
export function neverEnds({ status, expiresAt }: KeyRecord): boolean {
  return status === "active" && expiresAt === null;
}

/** Revokes a key or a trust from the next request on. The time of an earlier revocation stays. */
export async function revokeKey(admin: AdminContext, asked: string, type?: CredentialType): Promise<KeyRecord> {
  const { apiKeys: k } = admin.database.tables;
  const found = await findKey(admin, asked, type);
  const { id } = found;
  await writing(admin, requirePermits(admin, found), async (admin) => {
    const [revoked] = await admin.database.db
      .update(k)
      // Without its seal the key stays invalid, even if SQL sets the time of its revocation before or removes it later.
      .set({ revokedAt: sql`coalesce(${k.revokedAt}, ${admin.now()})`, grantSeal: Buffer.alloc(32) })
      .where(eq(k.id, id))
      .returning();
    if (revoked === undefined) throw noKey(found);
    const organization = await organizationOf(admin, revoked);
    return [undefined, [{ action: `${typeOf(found)}.revoke`, organization, names: [id] }]];
  });
  return recordAt(admin, found);
}

/**
 * Creates a key with the same rights, and lets the old one expire after the overlap unless it expires earlier. The new
 * key's lifetime is the old key's whole lifetime; if the old key never expires, neither does the new one.
 *
 * @returns the successor's record and its text, which cannot be had again; and the old key's record
 * @throws Refused `conflict` if the old key is expired, revoked or damaged
 */
export async function rotateKey(admin: AdminContext, asked: string, overlapMs: number) {
  const { apiKeys: k } = admin.database.tables;
  const key = mintKey();
  const digest = digestKey(admin.systemKeys.pepper, key);
  const successorId = Bun.randomUUIDv7();
  const found = await findKey(admin, asked, "key");
  const { id } = found;
  await writing(admin, requirePermits(admin, found), async (admin) => {
    const { db } = admin.database;
    const [old] = await admin.database.locked(db.select().from(k).where(eq(k.id, id)));
    if (!old) throw noKey(found);
    const now = admin.now();
    if (old.revokedAt !== null) throw new Refused("conflict", `The key ${id} is revoked: create a new key.`);
    if (old.expiresAt !== null && old.expiresAt <= now) {
      throw new Refused("conflict", `The key ${id} has expired: create a new key.`);
    }
    // Servers refuse a canary and a row that was changed by SQL; a new seal would make it valid.
    const status = sealedAs(admin, old);
    if (status === "canary") {
      throw new Refused("conflict", `The key ${id} is a canary and opens nothing: create another with --canary.`);
    }
    if (status === undefined) {
      throw new Refused("conflict", `The key ${id} was changed outside Keyhole and is invalid: create a new key.`);
    }
    // SQL may have shown another row until now.
    requirePermits(admin, old);
    if (old.projects !== null) readableList(old.projects); // an earlier version made longer ones
    const expiresAt = old.expiresAt === null ? null : now + (old.expiresAt - old.createdAt);
    const endsAt = Math.min(old.expiresAt ?? Number.POSITIVE_INFINITY, now + overlapMs);
    const successor = { ...old, id: successorId, digest, expiresAt, revokedAt: null, createdAt: now };
    await db.insert(k).values({ ...successor, grantSeal: sealOf(admin, successor) });
    await db
      .update(k)
      .set({ expiresAt: endsAt, grantSeal: sealOf(admin, { ...old, expiresAt: endsAt }) })
      .where(eq(k.id, id));
    const organization = await organizationOf(admin, old);
    return [undefined, [{ action: "key.rotate", organization, names: [id, successorId] }]];
  });
  return {
    successor: { ...(await recordAt(admin, { ...found, id: successorId })), key },
    predecessor: await recordAt(admin, found),
  };
}

async function organizationOf(admin: AdminContext, { organizationId }: KeyReach): Promise<Organization | null> {
  const { organizations: o } = admin.database.tables;
  const [found = null] = await admin.database.db.select().from(o).where(eq(o.id, organizationId));
  return found;
}

function typeOf({ trust }: Pick<StoredKey, "trust">): CredentialType {
  return trust === null ? "key" : "trust";
}

async function records(
  admin: AdminContext,
  where: SQL | undefined,
  isWanted: (row: StoredKey) => boolean = () => true,
) {
  const { apiKeys: k, organizations: o, keyUses: u } = admin.database.tables;
  const found: KeyRecord[] = [];
  // Piece by piece: a row takes several times the memory of its record.
  for (let after: SQL | undefined; ; ) {
    const rows = await admin.database.db
      .select({ key: k, organization: o.slug, lastUsedAt: u.lastUsedAt })
      .from(k)
      .innerJoin(o, eq(o.id, k.organizationId))
      .leftJoin(u, eq(u.keyId, k.id))
      .where(and(where, after))
      .orderBy(asc(k.id))
      .limit(rowsMax);
    for (const { key, organization, lastUsedAt } of rows) {
      if (isSeen(admin, key) && isWanted(key)) found.push(recordOf(admin, key, organization, lastUsedAt));
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < rowsMax) break;
    after = gt(k.id, last.key.id);
  }
  return found.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
}

/** How many keys and trusts one statement reads. */
const rowsMax = 1000;

type KeyReach = Pick<StoredKey, "organizationId" | "projects" | "environments">;

/** The projects that a key or a trust lists, as places; all of the organization if it lists none. */
function placesOf({ organizationId, projects }: KeyReach): ProjectPlace[] {
  if (projects === null) return [{ organizationId, projectId: null }];
  return [...idsOf(projects).values()].map((id) => ({ organizationId, projectId: String(id) }));
}

/** Whether it reaches a place in which the person has `see` or `keys`. */
function isSeen(admin: AdminContext, key: KeyReach): boolean {
  return admin.rights === "operator" || placesOf(key).some((place) => isSeenIn(admin, place, key));
}

function isSeenIn({ rights }: AdminContext, place: ProjectPlace, { environments }: KeyReach): boolean {
  if (rights === "operator") return true;
  return (["see", "keys"] as const).some((right) => meets(rights, right, place, environments));
}

/** The rights to make, rotate or revoke a key. They are needed wherever the key reaches. */
const keyRights = ["keys", "reveal"] as const;

/** The permits for everything that a key or a trust reaches; undefined if it reaches further than somebody's rights. */
function permitsFor(admin: AdminContext, reach: KeyReach): readonly Permit[] | undefined {
  if (admin.rights === "operator") return [Permit.operator(admin)];
  const among = environmentsOf(reach.environments);
  const permits = placesOf(reach).map((place) => Permit.find(admin, keyRights, place, among));
  return permits.length > 0 && permits.every((permit) => permit !== undefined) ? permits : undefined;
}

/** The permits to change a key or a trust. @throws Refused `not_found` if it reaches further than somebody's rights */
function requirePermits(admin: AdminContext, row: StoredKey): readonly Permit[] {
  const permits = permitsFor(admin, row);
  if (permits !== undefined) return permits;
  throw new Refused("not_found", `There is no ${typeOf(row)} ${row.id} that reaches no further than ${ownRights}.`);
}

/** Whether a key or a trust reaches no further than the rights of somebody who makes keys. */
export async function isWithinRights(admin: AdminContext, id: string): Promise<boolean> {
  const { apiKeys: k } = admin.database.tables;
  const [row] = await admin.database.db.select().from(k).where(eq(k.id, id));
  return row !== undefined && permitsFor(admin, row) !== undefined;
}

function beyondRights(organization: string): Refused {
  return new Refused("not_found", `This key would reach further in ${organization} than ${ownRights}. Narrow it.`);
}

const ownRights = "your own rights `keys` and `reveal`";

type StoredKey = AdminContext["database"]["tables"]["apiKeys"]["$inferSelect"];

function recordOf(admin: AdminContext, row: StoredKey, organization: string, lastUsedAt: number | null): KeyRecord {
  const { id, name, createdAt, expiresAt, revokedAt } = row;
  const terms = row.trust === null ? undefined : parseTerms(row.trust);
  return {
    id,
    type: typeOf(row),
    name,
    organization,
    surfaces: membersOf(surfaces, row.surfaces),
    resources: membersOf(resources, row.resources),
    projects: row.projects === null ? null : seenSlugs(admin, row),
    environments: row.environments === everyEnvironment ? null : environmentsOf(row.environments),
    createdAt,
    expiresAt,
    revokedAt,
    lastUsedAt,
    rate: row.rate ?? 1,
    from: row.from?.split(",") ?? null,
    status: keyStatus(admin, row),
    ...(terms && { terms: shownTerms(terms) }),
  };
}

/** The projects of a list that somebody may see. */
function seenSlugs(admin: AdminContext, row: StoredKey): string[] {
  const { organizationId, projects } = row;
  return [...idsOf(projects ?? "")]
    .filter(([, id]) => isSeenIn(admin, { organizationId, projectId: String(id) }, row))
    .map(([slug]) => slug);
}

function shownTerms({ jwks, isPublic: _, ...terms }: Terms): ShownTerms {
  return { ...terms, keys: jwks === null ? "published" : "pinned" };
}

/** Whether servers accept a key or a trust, and if not, why. */
export function keyStatus(admin: AdminContext, row: StoredKey): KeyRecord["status"] {
  if (row.revokedAt !== null) return "revoked";
  const as = sealedAs(admin, row);
  if (as !== "grant") return as ?? "damaged";
  return row.expiresAt !== null && row.expiresAt <= admin.now() ? "expired" : "active";
}

/** What the seal of a row says it is; undefined if the row was changed by SQL. */
export function sealedAs({ systemKeys }: Pick<AdminContext, "systemKeys">, row: StoredKey) {
  const grant = { ...row, keyId: row.id };
  if (sealGrant(systemKeys.grant, row.digest, grant).equals(row.grantSeal)) return "grant";
  return sealCanary(systemKeys.grant, row.digest, grant).equals(row.grantSeal) ? "canary" : undefined;
}

function sealOf({ systemKeys }: Pick<AdminContext, "systemKeys">, row: Omit<StoredKey, "grantSeal">): Buffer {
  return sealGrant(systemKeys.grant, row.digest, { ...row, keyId: row.id });
}

/** Of a listed key: slug to project id. Empty if the list was damaged by SQL. */
function idsOf(list: string): Map<string, unknown> {
  const ids: unknown = attempt(() => JSON.parse(list));
  return new Map(typeof ids === "object" && ids !== null && !Array.isArray(ids) ? Object.entries(ids) : []);
}

/** The slug-to-id map that a listed key carries, as JSON in byte order of slug. */
async function slugsToIds(
  admin: AdminContext,
  organization: Organization,
  slugs: readonly string[],
  seen: NewKey["projectIds"],
): Promise<string> {
  const { projects: p } = admin.database.tables;
  if (slugs.length === 0) throw new Refused("invalid", "Name at least one project.");
  const query = admin.database.db
    .select({ slug: p.slug, id: p.id })
    .from(p)
    .where(and(eq(p.organizationId, organization.id), inArray(p.slug, [...new Set(slugs)])))
    .orderBy(asc(p.slug));
  // Who renames or deletes one of them at this moment is told of this key, or this key is refused.
  const rows = await (admin.isWithin ? admin.database.locked(query, "share") : query);
  const missing = slugs.find((slug) => !rows.some((row) => row.slug === slug));
  if (missing !== undefined) {
    if (admin.rights !== "operator") throw beyondRights(organization.slug);
    const where = projectPath({ organization, slug: missing });
    throw noProject(where, await nearestProject(admin, organization, where, ["keys"]));
  }
  const other = rows.find(({ slug, id }) => (seen?.get(slug) ?? id) !== id);
  if (other !== undefined) throw changedSince(`project ${other.slug}`, "", other.id);
  return readableList(JSON.stringify(Object.fromEntries(rows.map(({ slug, id }) => [slug, id]))));
}

/** The project list of a new key or trust. @throws Refused `bound` if no server would read it */
function readableList(list: string): string {
  const bytes = Buffer.byteLength(list);
  if (bytes <= projectsBytesMax) return list;
  const words = `The list of ${idsOf(list).size} projects takes ${bytes} bytes, and servers read at most ${projectsBytesMax}: name fewer.`;
  throw new Refused("bound", words);
}

function noKey(row: StoredKey): Refused {
  return noId(typeOf(row), row.id);
}
