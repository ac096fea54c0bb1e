import { parseKeySet, type Terms, type Trust, usableKeys, usableKinds } from "../access/token.ts";
import { TrustDirectory } from "../access/trust-directory.ts";
import { isIssuer, issuerRule } from "../core/json-request.ts";
import { Refused } from "../core/refused.ts";
import type { AdminContext } from "../desk/context.ts";
import { requireWord } from "../desk/validate.ts";
import { trustList, trustsMax } from "../store/lookups.ts";
import { termsBytesMax } from "../store/reach.ts";
import { createCredential, isWithinRights, type KeyRecord, type NewKey } from "./keys.ts";

export type NewTrust = NewKey & {
  readonly issuer: string;
  readonly audience: string;
  readonly claims: ReadonlyMap<string, string>;
  /** The text of a JSON Web Key Set, in place of the one that the issuer publishes. */
  readonly jwks?: string | undefined;
};

/**
 * Creates a trust.
 * @returns its record, how many keys of its own set can verify a token, and what a person should know about it
 * @throws Refused `invalid`, `not_found`, `ambiguous`; `bound` if there are too many; `conflict` if it would shut out
 *   the tokens of a trust that is beyond this person's rights
 */
export async function createTrust(
  admin: AdminContext,
  asked: NewTrust,
): Promise<{ trust: KeyRecord; keys: ReturnType<typeof countKeys>; warnings: readonly string[] }> {
  const terms = requireTerms(asked);
  // As servers count them: those count, too, that this person does not see.
  if ((await trustList(admin.database)()).length >= trustsMax) {
    throw new Refused("bound", `There are ${trustsMax} trusts already: revoke one that is no longer used.`);
  }
  const overlapping = (await validTrusts(admin, terms.issuer)).filter((other) => mayBothFit(terms, other.terms));
  for (const { id } of overlapping) if (!(await isWithinRights(admin, id))) throw shutsOut();
  const trust = await createCredential(admin, asked, terms);
  const overlaps = overlapping.map(({ id }) => overlapWarning(id));
  return { trust, keys: countKeys(terms), warnings: [...nameWarnings(terms), ...bindingWarnings(terms), ...overlaps] };
}

/** The valid trusts that name an issuer, as servers see them. */
export function validTrusts(admin: AdminContext, issuer: string): Promise<readonly Trust[]> {
  return new TrustDirectory(trustList(admin.database), admin.systemKeys.grant, admin.now).find(issuer);
}

function requireTerms({ issuer, audience, claims, jwks }: NewTrust): Terms {
  const terms = {
    issuer: requireIssuer(issuer, jwks !== undefined),
    audience: requireWord("The audience", audience),
    claims: requireClaims(issuer, claims),
    jwks: jwks === undefined ? null : requireKeySet(jwks),
  };
  if (Buffer.byteLength(JSON.stringify(terms)) <= termsBytesMax) return terms;
  throw new Refused("invalid", `A trust takes at most ${termsBytesMax / 1024} KiB, its key set included.`);
}

/** @param isPinned - whether its keys are given, so that nobody asks it for them */
function requireIssuer(issuer: string, isPinned: boolean): string {
  requireWord("The issuer", issuer);
  if (/[\s\p{Z}]/u.test(issuer)) {
    throw new Refused("invalid", "The issuer has a blank, which no URL has: give it exactly as in the token's iss.");
  }
  if (isPinned || isIssuer(issuer)) return issuer;
  throw new Refused("invalid", `The issuer ${issuerRule}`);
}

/** What the token's verification judges already, or what differs from token to token. */
const reserved = ["iss", "aud", "exp", "iat", "nbf", "jti"];

function requireClaims(issuer: string, claims: ReadonlyMap<string, string>): Record<string, string> {
  for (const [name, value] of claims) {
    requireWord("The name of a claim", name);
    requireWord(`The claim ${name}`, value);
    if (reserved.includes(name)) {
      throw new Refused("invalid", `The claim ${name} is not an identity: it is checked in every token.`);
    }
    if (value.includes("*")) {
      throw new Refused("invalid", `The claim ${name} has a *, and there are no wildcards: give the exact text.`);
    }
  }
  const { name, pins } = providerAt(issuer) ?? { pins: ["sub"] };
  if (pins.some((pin) => claims.has(pin))) return Object.fromEntries(claims);
  const options = pins.map((pin) => `--claim ${pin}=…`).join(" or ");
  const why = name === undefined ? "" : ` Names can be registered again by somebody else, ids cannot.`;
  throw new Refused("invalid", `${name ?? "This issuer"} needs ${options}, to say whose tokens these are.${why}`);
}

/** Who issues tokens, and by which claims: nobody can register these again. */
type Provider = { readonly name?: keyof typeof bindingExamples; readonly pins: readonly string[] };
const github: Provider = { name: "GitHub", pins: ["repository_id", "repository_owner_id"] };
const gitlab: Provider = { name: "GitLab", pins: ["project_id", "namespace_id"] };
const buildkite: Provider = { name: "Buildkite", pins: ["organization_id"] };

function providerAt(issuer: string): Provider | undefined {
  const { hostname = "", pathname = "" } = URL.parse(issuer) ?? {};
  if (/^token\.actions\./.test(hostname) || pathname === "/_services/token") return github;
  if (/(?:^|[.-])gitlab(?:[.-]|$)/.test(hostname)) return gitlab;
  return /(?:^|\.)buildkite\.com$/.test(hostname) ? buildkite : undefined;
}

/** By the form of the subject, which others use too: Forgejo's is GitHub's. */
function providerLike(sub = ""): Provider | undefined {
  if (sub.startsWith("repo:")) return github;
  if (sub.startsWith("project_path:")) return gitlab;
  return /^organization:[^:]*:pipeline:/.test(sub) ? buildkite : undefined;
}

/** If the provider can only be guessed, it is not known whether its names can be registered again. */
function nameWarnings({ issuer, claims }: Terms): string[] {
  const like = providerAt(issuer) === undefined ? providerLike(claims["sub"]) : undefined;
  if (like === undefined || like.pins.some((pin) => pin in claims)) return [];
  const options = like.pins.map((pin) => `--claim ${pin}=…`).join(" or ");
  const form = `The claim sub has the form of ${like.name}'s, in which names can be registered again by somebody else.`;
  return [`${form} If the issuer's tokens have an id, give that too: ${options}.`];
}

/** Claims that bind a branch, a tag or a deployment environment. */
const bindings = ["ref", "ref_path", "environment", "build_branch", "build_tag"];
const bindingExamples = {
  GitHub: "ref=refs/heads/main",
  GitLab: "ref_path=refs/heads/main",
  Buildkite: "build_branch=main",
} as const;

function bindingWarnings({ issuer, claims }: Terms): string[] {
  const { name } = providerAt(issuer) ?? providerLike(claims["sub"]) ?? {};
  const isBound = bindings.some((claim) => claim in claims) || /:(?:ref|environment):/.test(claims["sub"] ?? "");
  if (name === undefined || isBound) return [];
  const reason = "No claim binds a branch or a deployment environment: every job may use this trust, on any branch.";
  return [`${reason} Narrow it with a claim such as ${bindingExamples[name]}.`];
}

/** Whether one token can meet both. A token that meets several trusts is refused. */
function mayBothFit(terms: Terms, other: Terms): boolean {
  if (terms.issuer !== other.issuer || terms.audience !== other.audience) return false;
  return Object.entries(terms.claims).every(([name, value]) => (other.claims[name] ?? value) === value);
}

function shutsOut(): Refused {
  return new Refused(
    "conflict",
    "A token may fit this trust and another one, which reaches further than your own rights `keys` and `reveal`. Such a token is refused: give other claims.",
  );
}

function overlapWarning(id: string): string {
  const reason = `A token may fit this trust and trust ${id}, too. Such a token is refused:`;
  return `${reason} revoke one, or give them different claims.`;
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
    const document = JSON.parse(text) as { readonly keys: readonly Record<string, unknown>[] };
    parseKeySet(document);
    keys = document.keys;
  } catch (error) {
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new Refused("invalid", `The key set cannot be used: ${reason}.`);
  }
  if (keys.some((key) => key["d"] !== undefined || key["k"] !== undefined)) {
    throw new Refused(
      "invalid",
      "The key set holds a private or a shared key: give the public keys only, and replace that key.",
    );
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
