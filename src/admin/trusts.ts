import { mayAsk, parseKeySet, type Terms, type Trust } from "../access/token.ts";
import { TrustDirectory } from "../access/trust-directory.ts";
import { termsBytesMax } from "../store/reach.ts";
import { trustList, trustsMax } from "../store/trusts.ts";
import type { AdminContext } from "./context.ts";
import { createCredential, type KeyRecord, listKeys, type NewKey, type ShownTerms } from "./keys.ts";
import { Refused } from "./refused.ts";

export type NewTrust = NewKey & {
  readonly issuer: string;
  readonly audience: string;
  readonly claims: ReadonlyMap<string, string>;
  /** The text of a JSON Web Key Set, in place of the one that the issuer publishes. */
  readonly jwks?: string | undefined;
};

/**
 * Creates a trust.
 * @returns its record, and what a person should know about it
 * @throws Refused `invalid`, `not_found`, `ambiguous`; `bound` if there are too many
 */
export async function createTrust(
  admin: AdminContext,
  asked: NewTrust,
): Promise<{ trust: KeyRecord; warnings: readonly string[] }> {
  const terms = requireTerms(asked);
  const others = (await listKeys(admin, undefined, "trust")).filter(({ status }) => status === "active");
  if (others.length >= trustsMax) {
    throw new Refused("bound", `There are ${trustsMax} trusts already: revoke one that is no longer used.`);
  }
  const trust = await createCredential(admin, asked, terms);
  const overlapping = others.filter((other) => other.terms !== undefined && mayBothFit(terms, other.terms));
  return { trust, warnings: [...bindingWarnings(terms), ...overlapping.map(({ id }) => overlapWarning(id))] };
}

/** The valid trusts that name an issuer, as servers see them. */
export function validTrusts(admin: AdminContext, issuer: string): Promise<readonly Trust[]> {
  return new TrustDirectory(trustList(admin.database), admin.systemKeys.grant, admin.now).find(issuer);
}

function requireTerms({ issuer, audience, claims, jwks }: NewTrust): Terms {
  const terms = {
    issuer: requireWord("The issuer", issuer),
    audience: requireWord("The audience", audience),
    claims: requireClaims(issuer, claims),
    jwks: jwks === undefined ? null : requireKeySet(jwks),
  };
  if (jwks === undefined && (!mayAsk(issuer) || /[?#@]/.test(issuer))) {
    throw new Refused("invalid", "The issuer must be an https URL without a user and a query, as in the token's iss.");
  }
  if (Buffer.byteLength(JSON.stringify(terms)) <= termsBytesMax) return terms;
  throw new Refused("invalid", `A trust takes at most ${termsBytesMax / 1024} KiB, its key set included.`);
}

function requireWord(what: string, text: string): string {
  if (/^[^\p{C}\p{Zl}\p{Zp}]{1,512}$/u.test(text)) return text;
  throw new Refused("invalid", `${what} must have 1 to 512 characters and no control characters.`);
}

/** What the token's verification judges already, or what differs from token to token. */
const reserved = ["iss", "aud", "exp", "iat", "nbf", "jti"];

function requireClaims(issuer: string, claims: ReadonlyMap<string, string>): Record<string, string> {
  for (const [name, value] of claims) {
    requireWord("The name of a claim", name);
    requireWord(`The claim ${name}`, value);
    if (reserved.includes(name)) {
      throw new Refused("invalid", `The claim ${name} is no identity: every token is judged by it.`);
    }
    if (value.includes("*")) {
      throw new Refused("invalid", `The claim ${name} has a *, and there are no wildcards: give the exact text.`);
    }
  }
  const { name, pins } = providerOf(issuer, claims.get("sub"));
  if (pins.some((pin) => claims.has(pin))) return Object.fromEntries(claims);
  const options = pins.map((pin) => `--claim ${pin}=…`).join(" or ");
  const why = name === undefined ? "" : ` Names can be registered again by somebody else, ids cannot.`;
  throw new Refused("invalid", `${name ?? "This issuer"} needs ${options}, to say whose tokens these are.${why}`);
}

type Provider = { readonly name?: "GitHub" | "GitLab" | "Buildkite"; readonly pins: readonly string[] };

/** Who issues the tokens, by the address or by the form of the subject, and which claims nobody can register again. */
function providerOf(issuer: string, sub = ""): Provider {
  const { hostname = "", pathname = "" } = URL.parse(issuer) ?? {};
  if (/^token\.actions\./.test(hostname) || pathname === "/_services/token" || sub.startsWith("repo:")) {
    return { name: "GitHub", pins: ["repository_id", "repository_owner_id"] };
  }
  if (/(?:^|[.-])gitlab(?:[.-]|$)/.test(hostname) || sub.startsWith("project_path:")) {
    return { name: "GitLab", pins: ["project_id", "namespace_id"] };
  }
  if (/(?:^|\.)buildkite\.com$/.test(hostname) || sub.startsWith("organization:")) {
    return { name: "Buildkite", pins: ["organization_id"] };
  }
  return { pins: ["sub"] };
}

/** Claims that bind a branch, a tag or a deployment environment. */
const bindings = ["ref", "ref_path", "environment", "build_branch", "build_tag"];
const bindingExamples = {
  GitHub: "ref=refs/heads/main",
  GitLab: "ref_path=refs/heads/main",
  Buildkite: "build_branch=main",
} as const;

function bindingWarnings({ issuer, claims }: Terms): string[] {
  const { name } = providerOf(issuer, claims["sub"]);
  const isBound = bindings.some((claim) => claim in claims) || /:(?:ref|environment):/.test(claims["sub"] ?? "");
  if (name === undefined || isBound) return [];
  const reason = "No claim binds a branch or a deployment environment: every job may use this trust, on any branch.";
  return [`${reason} Narrow it with a claim such as ${bindingExamples[name]}.`];
}

/** Whether one token can meet both. A token that meets several trusts is refused. */
function mayBothFit(terms: Terms, other: ShownTerms): boolean {
  if (terms.issuer !== other.issuer || terms.audience !== other.audience) return false;
  return Object.entries(terms.claims).every(([name, value]) => (other.claims[name] ?? value) === value);
}

function overlapWarning(id: string): string {
  const reason = `A token may fit this trust and trust ${id}, too. Such a token is refused:`;
  return `${reason} revoke one, or give them different claims.`;
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
  const members = ["kty", "kid", "alg", "use", "key_ops", "crv", "n", "e", "x", "y"];
  const publicKeys = keys.map((key) =>
    Object.fromEntries(members.filter((name) => name in key).map((name) => [name, key[name]])),
  );
  return JSON.stringify({ keys: publicKeys });
}
