import { and, eq, gt, isNotNull, isNull, or, type SQL, sql } from "drizzle-orm";
import { isIssuer, issuerRule } from "../../core/json-request.ts";
import { isPublicUrl } from "../../core/public-fetch.ts";
import { Refused } from "../../core/refused.ts";
import { spiffeIdBytesMax } from "../../core/words/spiffe.ts";
import type { GrantRow } from "../../serve/access/grant.ts";
import { foundByOf, parseKeySet, type Terms, type Trust, usableKeys, usableKinds } from "../../serve/access/token.ts";
import { readTrust } from "../../serve/access/trust-directory.ts";
import { trustFinder, trustsBytesMax, trustsMax } from "../../store/lookups.ts";
import { fromBytesMax, projectsBytesMax, termsBytesMax } from "../../store/reach.ts";
import type { AdminContext } from "../desk/context.ts";
import { findOrganization } from "../desk/organizations.ts";
import { requireWord } from "../desk/validate.ts";
import { createCredential, isWithinRights, listKeys, type NewKey } from "./keys.ts";
import { ageOf, claimWarnings, type ReadsPerJob, requirePerJob, requirePinned } from "./providers.ts";

export type NewTrust = NewKey & {
  readonly issuer: string;
  readonly audience: string;
  readonly claims: ReadonlyMap<string, string>;
  /** The text of a JSON Web Key Set, in place of the one that the issuer publishes. */
  readonly jwks?: string | undefined;
  readonly readsPerJob?: ReadsPerJob | undefined;
};

/**
 * Creates a trust.
 * @returns its record, how many keys of its own set can verify a token, and what a person should know about it
 * @throws Refused `bound` if there are too many; `conflict` if it would shut out the tokens of a trust that is beyond
 *   this person's rights
 */
export async function createTrust(admin: AdminContext, asked: NewTrust) {
  const terms = requireTerms(asked, admin.rights === "operator");
  await requireRoom(admin, asked.organization, terms);
  const overlapping = (await validTrusts(admin, terms.issuer)).filter((other) => mayBothFit(terms, other.terms));
  for (const { id } of overlapping) {
    if (await isWithinRights(admin, id)) continue;
    const words =
      "A token that fits both this trust and one beyond your own rights `keys` and `reveal` would be refused: give other claims.";
    throw new Refused("conflict", words);
  }
  const namesakes = asked.name === undefined ? [] : await listKeys(admin, asked.organization, (n) => n === asked.name);
  const isTaken = namesakes.some(({ type, status }) => type === "trust" && status === "active");
  const named = `Another trust is called ${asked.name} already. \`keyhole trust list\` shows both: revoke what is not used.`;
  const trust = await createCredential(admin, asked, terms);
  const overlaps = overlapping.map(
    ({ id }) =>
      `A token that fits both this trust and trust ${id} is refused: revoke one, or give them different claims.`,
  );
  return {
    trust,
    keys: countKeys(terms),
    warnings: [...claimWarnings(terms), ...overlaps, ...(isTaken ? [named] : [])],
  };
}

/** The valid trusts that name an issuer, whatever their claims. */
export async function validTrusts(admin: AdminContext, issuer: string): Promise<readonly Trust[]> {
  const { apiKeys: k } = admin.database.tables;
  // The issuer is the first member of the terms.
  const begins = sql`${admin.database.indexOf(k.trust, sql`${`{"issuer":${JSON.stringify(issuer)},`}`)} = 1`;
  const rows = await admin.database.db
    .select()
    .from(k)
    .where(and(isValid(admin), begins));
  return rows.flatMap((row) => readTrust({ ...row, keyId: row.id }, admin.systemKeys.grant) ?? []);
}

/** Whether a row is a trust that has not ended. */
function isValid({ database, now }: AdminContext): SQL | undefined {
  const { apiKeys: k } = database.tables;
  return and(isNotNull(k.foundBy), isNull(k.revokedAt), or(isNull(k.expiresAt), gt(k.expiresAt, now())));
}

/** @throws Refused `bound` if servers would not find one more, or an organization or its persons have made all they may */
async function requireRoom(admin: AdminContext, slug: string | undefined, terms: Terms): Promise<void> {
  const organization = await findOrganization(admin, slug);
  const { apiKeys: k } = admin.database.tables;
  const isIts = and(eq(k.organizationId, organization.id), isValid(admin));
  const count = await admin.database.db.$count(k, isIts);
  if (count >= organizationMax) {
    throw new Refused("bound", `${organization.slug} has ${count} trusts: revoke one that is no longer used.`);
  }
  // As servers find them: those count, too, that this person does not see.
  const found = await trustFinder(admin.database)([foundByOf(terms)]);
  if (found.length >= trustsMax || bytesOf(found) > trustsBytesMax - termsBytesMax - projectsBytesMax - fromBytesMax) {
    const bound = `Servers look at ${trustsMax}, or at 4 MiB of terms and project lists`;
    const words = `${found.length} trusts have this issuer and claim already. ${bound}: revoke one that is no longer used.`;
    throw new Refused("bound", words);
  }
  if (admin.rights === "operator") return;
  const own = found.filter(({ organizationId }) => organizationId === organization.id);
  const bytes = bytesOf(own) + Buffer.byteLength(JSON.stringify(terms));
  if (own.length < personsTrustsMax && bytes <= personsBytesMax) return;
  const words = `${organization.slug} has as many trusts with this issuer and claim as persons may make: revoke one, or ask an operator.`;
  throw new Refused("bound", words);
}

/** Of terms and lists. */
function bytesOf(rows: readonly GrantRow[]): number {
  const textOf = ({ trust, projects, from }: GrantRow) => `${trust}${projects ?? ""}${from ?? ""}`;
  return rows.reduce((sum, row) => sum + Buffer.byteLength(textOf(row)), 0);
}

/** The most valid trusts of an organization. */
const organizationMax = 10_000;
/** The most that a token finds by one claim, and bytes of their terms, to which a person may add one. */
const personsTrustsMax = 200;
const personsBytesMax = 512 * 1024;

function requireTerms(asked: NewTrust, isOperator: boolean): Terms {
  const { audience, jwks } = asked;
  const issuer = requireIssuer(asked.issuer, jwks !== undefined, isOperator);
  const claims = requireClaims(issuer, asked.claims);
  const perJob = requirePerJob({ issuer, claims }, asked.readsPerJob);
  const ageS = ageOf(issuer);
  const terms = {
    issuer,
    audience: requireWord("The audience", audience),
    claims,
    jwks: jwks === undefined ? null : requireKeySet(jwks),
    ...(!isOperator && { isPublic: true }),
    ...(perJob && { perJob }),
    ...(ageS && { ageS }),
  };
  if (Buffer.byteLength(JSON.stringify(terms)) <= termsBytesMax) return terms;
  throw new Refused("invalid", `A trust takes at most ${termsBytesMax / 1024} KiB, its key set included.`);
}

/** @param isPinned - whether its keys are given, so that nobody asks it for them */
function requireIssuer(issuer: string, isPinned: boolean, isOperator: boolean): string {
  requireWord("The issuer", issuer);
  if (/[\s\p{Z}]/u.test(issuer)) {
    throw new Refused("invalid", "The issuer has a blank, which no URL has: give it exactly as in the token's iss.");
  }
  if (isPinned) return issuer;
  if (!isIssuer(issuer)) throw new Refused("invalid", `The issuer ${issuerRule}`);
  if (isOperator || isPublicUrl(issuer)) return issuer;
  const words = "The issuer must be a public https URL. An operator can add others.";
  throw new Refused("invalid", words);
}

/** What the token's verification judges already, or what differs from token to token. */
const reserved = ["iss", "aud", "exp", "iat", "nbf", "jti"];

function requireClaims(issuer: string, claims: ReadonlyMap<string, string>): Record<string, string> {
  for (const [name, value] of claims) {
    requireWord("The name of a claim", name);
    requireWord(`The claim ${name}`, value, spiffeIdBytesMax);
    if (reserved.includes(name)) {
      throw new Refused("invalid", `The claim ${name} is not an identity: it is checked in every token.`);
    }
    if (value.includes("*")) {
      throw new Refused("invalid", `The claim ${name} has a *, and there are no wildcards: give the exact text.`);
    }
  }
  const cut = [...claims].find(([, value]) => value.includes("…"))?.[0];
  if (cut !== undefined) {
    throw new Refused(
      "invalid",
      `The claim ${cut} has a …, where an example leaves something out: give the whole text.`,
    );
  }
  const pinned = Object.fromEntries(claims);
  requirePinned({ issuer, claims: pinned });
  return pinned;
}

/** Whether one token can meet both. A token that meets several trusts is refused. */
function mayBothFit(terms: Terms, other: Terms): boolean {
  if (terms.issuer !== other.issuer || terms.audience !== other.audience) return false;
  // A claim may be called like what every object has.
  return Object.entries(terms.claims).every(
    ([name, value]) => !Object.hasOwn(other.claims, name) || other.claims[name] === value,
  );
}

/** Counts the keys of the set that is given, if any. */
function countKeys({ jwks }: Terms): { usable: number; total: number } | undefined {
  if (jwks === null) return undefined;
  const { keys } = JSON.parse(jwks) as { readonly keys: readonly object[] };
  return { usable: usableKeys(keys), total: keys.length };
}

/** The public parts of a key set, which are all that verification needs. */
function requireKeySet(text: string): string {
  let keys: readonly Record<string, unknown>[];
  try {
    const document = JSON.parse(text.replace(/^\uFEFF/, "")) as { readonly keys: readonly Record<string, unknown>[] };
    parseKeySet(document);
    keys = document.keys;
  } catch (error) {
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new Refused("invalid", `The key set cannot be used: ${reason}.`);
  }
  if (keys.some((key) => key["d"] !== undefined || key["k"] !== undefined)) {
    const words = "The key set holds a private or a shared key: give the public keys only, and replace that key.";
    throw new Refused("invalid", words);
  }
  if (usableKeys(keys) === 0) {
    throw new Refused("invalid", `The key set has no key that can be used: ${usableKinds}.`);
  }
  const members = ["kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y"];
  const publicKeys = keys.map((key) =>
    Object.fromEntries(members.filter((name) => name in key).map((name) => [name, key[name]])),
  );
  return JSON.stringify({ keys: publicKeys });
}
