import { isFrom } from "../../core/addresses.ts";
import { isSameMac, macOf } from "../../core/hash.ts";
import { type Environment, type EnvironmentMask, environmentMask } from "../../core/names.ts";

/** What a key may be used through, in the order of the bits that store them: 1, 2, 4. */
export const surfaces = ["rest_api", "mcp_server", "ci_action"] as const;
export type Surface = (typeof surfaces)[number];
/** What a new key may be used through unless somebody says otherwise. */
export const surfacesByDefault: readonly Surface[] = ["rest_api"];

/** What a key may read, and the bit that stores it. Each kind has one too (`kinds/people.ts`). */
export type Resource = { readonly name: string; readonly bit: number };
export const projects: Resource = { name: "projects", bit: 1 };
export const requests: Resource = { name: "requests", bit: 16 };

export type OrganizationPlan = "free" | "pro";

/** What a key or a trust may reach. */
export type Grant = {
  readonly keyId: string;
  readonly organizationId: string;
  readonly surfaces: number;
  readonly resources: number;
  readonly environments: EnvironmentMask;
  /** Slug to project id, exactly as stored (its seal is made over this text); null for every project. */
  readonly projects: string | null;
  /** Epoch milliseconds; null: never. */
  readonly expiresAt: number | null;
  /** The terms of a trust, exactly as stored (`token.ts`); null for a key. */
  readonly trust: string | null;
  /** How many times as large its buckets are; null: once. */
  readonly rate: number | null;
  /** The ranges of the addresses from which it may be used, with commas between them; null: from everywhere. */
  readonly from: string | null;
};

/** The largest {@link Grant.rate}. */
export const rateMax = 100;
/** The most ranges in {@link Grant.from}. */
export const rangesMax = 64;

/** Whether a grant may be used by this caller (`callerOf`), who is asked for only if that matters. */
export function isUsableFrom({ from }: Pick<Grant, "from">, caller: () => string): boolean {
  return from === null || isFrom(caller(), from);
}

/** Bits of a list in the order of its bits, such as {@link surfaces}. */
export function bitsOf<T extends string>(all: readonly T[], members: readonly T[]): number {
  return members.reduce((bits, member) => bits | (1 << all.indexOf(member)), 0);
}

/** The list that {@link bitsOf} made bits of. */
export function membersOf<T extends string>(all: readonly T[], bits: number): T[] {
  return all.filter((_, index) => bits & (1 << index));
}

/** The row of a key or a trust. Its reader checks the seal. */
export type GrantRow = Grant & { readonly digest: Uint8Array; readonly grantSeal: Uint8Array | null };

/** What a request needs of the key that makes it. Null: nothing. */
export type Need = {
  readonly surface: Surface | null;
  readonly resource: Resource | null;
};

/** Gate 4: plan, then surface, then resource. @returns the code of the first that refuses, or undefined */
export function refusalOf(plan: OrganizationPlan, grant: Pick<Grant, "surfaces" | "resources">, need: Need) {
  if (plan !== "pro") return "plan_required";
  if (need.surface && !(grant.surfaces & bitsOf(surfaces, [need.surface]))) return "surface_required";
  if (need.resource && !(grant.resources & need.resource.bit)) return "resource_required";
  return undefined;
}

/** Gate 6: whether the key reaches the environment; it says nothing about projects. */
export function reaches(grant: Grant, environment: Environment): boolean {
  return (grant.environments & environmentMask(environment)) !== 0;
}

/**
 * The seal of an organization's row: HMAC-SHA-256 over id and slug, so that slugs which SQL exchanged lead nobody into
 * another organization.
 */
export function sealOrganization(grantKey: Uint8Array, { id, slug }: { readonly id: string; readonly slug: string }) {
  return macOf(grantKey, ["keyhole organization v1", id, slug]);
}

/**
 * The grant seal: HMAC-SHA-256 over everything that says what a key may do, so that a row which SQL widened, copied or
 * made up is not a key.
 */
export function sealGrant(grantKey: Uint8Array, digest: Uint8Array, grant: Grant): Buffer {
  return sealUnder("keyhole grant v1", grantKey, digest, grant);
}

/**
 * The seal of a canary: bait, which opens nothing. It is the only thing that tells a canary from another key, so nobody
 * who has the database can tell which keys are canaries, make one of a key, or make a key of one.
 */
export function sealCanary(grantKey: Uint8Array, digest: Uint8Array, grant: Grant): Buffer {
  return sealUnder("keyhole canary v1", grantKey, digest, grant);
}

function sealUnder(label: string, grantKey: Uint8Array, digest: Uint8Array, grant: Grant): Buffer {
  return macOf(grantKey, [
    label,
    grant.keyId,
    Buffer.from(digest).toString("hex"),
    grant.organizationId,
    grant.surfaces,
    grant.resources,
    grant.environments,
    grant.projects,
    grant.expiresAt,
    grant.trust,
    // Left out if they are null, so that the seals of earlier versions still fit. Each has its place: SQL can change
    // what a column takes.
    ...(grant.rate === null && grant.from === null ? [] : [grant.rate]),
    ...(grant.from === null ? [] : [grant.from]),
  ]);
}

/** Whether two rows are the same in everything that the grant seal covers, and in the seal. */
export function isSameRow(a: GrantRow, b: GrantRow): boolean {
  return (
    a.keyId === b.keyId &&
    a.organizationId === b.organizationId &&
    a.surfaces === b.surfaces &&
    a.resources === b.resources &&
    a.environments === b.environments &&
    a.projects === b.projects &&
    a.expiresAt === b.expiresAt &&
    a.trust === b.trust &&
    a.rate === b.rate &&
    a.from === b.from &&
    isSameMac(a.digest, b.digest) &&
    isSameMac(a.grantSeal, b.grantSeal)
  );
}
