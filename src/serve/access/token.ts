import { createPublicKey } from "node:crypto";
import { createLocalJWKSet, errors, type JSONWebKeySet, jwtVerify } from "jose";
import { attempt } from "../../core/attempt.ts";
import { Fault } from "../../core/fault.ts";
import { sha256Of } from "../../core/hash.ts";
import { dayMs, type JobRead, type TokenWords } from "../../core/names.ts";

/*
 * A token is a JSON Web Token (RFC 7519) that an OpenID Connect issuer gave to a job. If it meets the terms of exactly
 * one trust, it replaces an API key. Every refusal here is a Fault `unauthorized`: clients see the same 401 as for an
 * unknown key, and the log has the reason.
 */

/** Which tokens a trust accepts. Stored as JSON and sealed with its row. */
export type Terms = {
  readonly issuer: string;
  readonly audience: string;
  /** Claims that a token must have, each equal as text. */
  readonly claims: Readonly<Record<string, string>>;
  /** A JSON Web Key Set as text; null if the issuer publishes its keys. */
  readonly jwks: string | null;
  /** Whether the issuer is asked on the internet only, because a person named it who is no operator. */
  readonly isPublic?: boolean;
  readonly perJob?: PerJob;
  /** How old a token may be, if not ten minutes: some clouds give machines the same one for longer. */
  readonly ageS?: number;
};

/** How often one job may read. */
export type PerJob = {
  /** How many answers with values it gets. */
  readonly reads: number;
  /** Which claims name a job: the first list that a token has whole. */
  readonly claims: readonly (readonly string[])[];
};

/** The job of a token, by a trust that counts the reads of each. */
export type Job = JobRead & {
  /** The claims that name it, for people. */
  readonly claims: string;
};

/** A trust whose seal was verified. */
export type Trust = {
  readonly id: string;
  /** Each request looks up the trust's row by it. */
  readonly digest: Uint8Array;
  readonly terms: Terms;
  /** Null if the issuer publishes its keys. */
  readonly pinned: KeySet | null;
};

/** An issuer's public keys. */
export type KeySet = {
  readonly getKey: ReturnType<typeof createLocalJWKSet>;
  /** The keys as they were published. Some may be unusable: see {@link usableKeys}. */
  readonly keys: readonly object[];
};

/** What a token claims. {@link verifyToken} says whether it is true. */
export type Token = {
  readonly text: string;
  readonly issuer: string;
  readonly payload: Readonly<Record<string, unknown>>;
};

/** The refusal of a token that no known key of its issuer signed. Its issuer may have newer ones. */
export class UnknownSigner extends Fault {}

export const tokenBytesMax = 8192;
const skewS = 30;
const ageSMax = 600;
const keysMax = 100;
/** Never `none`, and never HMAC, which would take the public key for a shared secret. */
const algorithms = ["RS256", "ES256", "ES384", "EdDSA", "PS256"];

/** Whether a text has the form of a token. */
export function isTokenShaped(text: string): boolean {
  return text.length <= tokenBytesMax && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
}

/** Reads a token without verifying it, to find the trusts that name its issuer. @throws Fault `unauthorized` */
export function readToken(text: string): Token {
  const [header, payload] = text.split(".").slice(0, 2).map(readPart);
  if (header === undefined || payload === undefined) {
    throw new Fault("unauthorized", "token: it is not JSON objects without duplicate members");
  }
  const { alg } = header;
  if (!algorithms.some((one) => one === alg)) {
    throw new Fault("unauthorized", `token: its algorithm ${shown(alg)} is none of ${algorithms.join(", ")}`);
  }
  const issuer = payload["iss"];
  if (typeof issuer !== "string") throw new Fault("unauthorized", "token: it names no issuer");
  return { text, issuer, payload };
}

/**
 * Finds the one trust that a token meets, among those that name its issuer. Signature and times are verified first, so
 * that only holders of a genuine token can learn anything from the rest.
 * @param published - the keys that the issuer publishes, if they are known
 * @throws Fault `unauthorized` if it meets none, or several; {@link UnknownSigner} if other keys could change that
 */
export async function verifyToken(
  token: Token,
  trusts: readonly Trust[],
  published: KeySet | undefined,
  nowMs: number,
): Promise<Trust> {
  const reasons = new Set<string>();
  const fitting: Trust[] = [];
  for (const some of Map.groupBy(trusts, ({ terms: { ageS, jwks } }) => `${ageS} ${jwks}`).values()) {
    const unverified = await whyNotVerified(token, nowMs, some[0]?.terms.ageS, some[0]?.pinned ?? published);
    for (const trust of some) {
      const reason = unverified ?? whyNotMet(token, trust);
      if (reason === undefined) fitting.push(trust);
      else reasons.add(reason);
    }
  }
  const [trust, another] = fitting;
  const from = `token of ${shown(token.issuer)}`;
  if (another) throw new Fault("unauthorized", `${from}: it fits several trusts, ${idsOf(fitting)}`);
  if (trust) return trust;
  const pins = pinsOf(token.payload).map(([name, value]) => ` and its ${name} ${shown(value)}`);
  const [reason = `no trust names its issuer${pins.join(", or")}`, ...others] = reasons;
  const why = others.length === 0 ? reason : `it fits none: ${[reason, ...others.slice(0, 2)].join("; ")}`;
  const which = trusts.length === 1 ? `trust ${idsOf(trusts)}` : `${trusts.length} trusts`;
  const Refusal = reasons.values().some((one) => unknownSigner.has(one)) ? UnknownSigner : Fault;
  throw new Refusal("unauthorized", `${from}: ${why} (${which})`);
}

/** Claims that say whose tokens these are, as providers call them: those that name the fewest tokens come first. */
const pinNames = [
  ...["sub", "repository_id", "project_id", "repositoryUuid", "oidc.circleci.com/project-id", "terraform_workspace_id"],
  ...["terraform_project_id", "repository_owner_id", "namespace_id", "workspaceUuid", "organization_id"],
  ...["terraform_organization_id", "oid"],
];

function pinsOf(claims: Readonly<Record<string, unknown>>): (readonly [name: string, value: unknown])[] {
  return pinNames.filter((name) => Object.hasOwn(claims, name)).map((name) => [name, claims[name]]);
}

/** What a trust is found by, so that a token makes a server read the trusts of its own claims alone: its first pin. */
export function foundByOf({ issuer, claims }: Pick<Terms, "issuer" | "claims">): string {
  return foundBy(issuer, pinsOf(claims)[0]);
}

/** What each trust is found by that this token may meet. */
export function foundByAny({ issuer, payload }: Pick<Token, "issuer" | "payload">): string[] {
  return [undefined, ...pinsOf(payload)].map((pin) => foundBy(issuer, pin));
}

function foundBy(issuer: string, pin: readonly unknown[] = []): string {
  return sha256Of(JSON.stringify([issuer, ...pin]));
}

/** The claims that name a run, as providers call them. */
const runClaims = ["run_id", "job_id", "pipeline_id", "pipelineUuid", "oidc.circleci.com/job-id", "terraform_run_id"];

/**
 * The job that a token names; undefined if the trust counts no reads, or the token names no job. A text with a NUL or half
 * a surrogate names none: PostgreSQL can hold neither, and no provider sends one.
 */
export function jobOf({ payload }: Token, { id: trustId, terms: { perJob } }: Pick<Trust, "id" | "terms">) {
  const names = perJob?.claims.find((some) => some.every((name) => typeof payload[name] === "string"));
  if (perJob === undefined || names === undefined) return undefined;
  const named = names.map((name) => [name, payload[name] as string] as const);
  const claims = named.map(([name, value]) => `${name}=${value}`).join(" ");
  if (!claims.isWellFormed() || claims.includes("\0")) return undefined;
  const keptMs = names.includes("jti") ? tokenLastsMs : jobLastsMs;
  return { trustId, job: sha256Of(JSON.stringify(named)), claims, readsMax: perJob.reads, keptMs } satisfies Job;
}

/** More than the ten minutes in which a token is taken. */
const tokenLastsMs = 3_600_000;
/** As long as a workflow of GitHub may run. No provider that is known lets a job run longer. */
const jobLastsMs = 35 * dayMs;

/** What the audit records of a token. */
export function wordsOf({ payload }: Token): TokenWords {
  const word = (...names: readonly string[]) => {
    const text = names.map((name) => payload[name]).find((value) => typeof value === "string") as string | undefined;
    return text ?? "";
  };
  return { jti: word("jti"), sub: word("sub"), run: word(...runClaims) };
}

/** The keys of a JSON Web Key Set. @throws Error whose message says what is wrong with it */
export function parseKeySet(document: unknown): KeySet {
  const { keys } = (document ?? {}) as { readonly keys?: unknown };
  if (!Array.isArray(keys) || !keys.every(isObject)) throw new Error("it is not a JSON Web Key Set");
  if (keys.length > keysMax) throw new Error(`it has more than ${keysMax} keys`);
  // jose knows only `sig`.
  const own = keys.filter(isForTokens).map(({ use, ...key }) => key);
  return { getKey: createLocalJWKSet({ keys: own } as JSONWebKeySet), keys };
}

/** A SPIFFE bundle says `jwt-svid` where others say `sig`. It holds the keys of other documents, too. */
function isForTokens({ use }: Readonly<Record<string, unknown>>): boolean {
  return use === undefined || use === "sig" || use === "jwt-svid";
}

/** A clause for people: which keys can verify a token. */
export const usableKinds =
  "Keyhole takes keys for RS256 and PS256 (2048 bits or more), ES256, ES384 and EdDSA (Ed25519)";

/** How many of these JSON Web Keys can verify a token. */
export function usableKeys(keys: readonly object[]): number {
  return keys.filter((key) => attempt(() => isUsable(key))).length;
}

/** @throws Error if it is no public key */
function isUsable(given: object): boolean {
  const { alg, use, key_ops: operations = ["verify"], ...key } = given as Readonly<Record<string, unknown>>;
  if (!isForTokens({ use }) || !Array.isArray(operations) || !operations.includes("verify")) return false;
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = createPublicKey({ format: "jwk", key });
  const fitting = type === "rsa" ? ["RS256", "PS256"] : [curves[String(key["crv"])]];
  return (details?.modulusLength ?? rsaBitsMin) >= rsaBitsMin && fitting.includes(String(alg ?? fitting[0]));
}

const rsaBitsMin = 2048;
const curves: Readonly<Record<string, string>> = { "P-256": "ES256", "P-384": "ES384", Ed25519: "EdDSA" };

/** The terms in a row; undefined if they are damaged, which its seal shows too. */
export function parseTerms(text: string): Terms | undefined {
  return attempt(() => JSON.parse(text) as Terms);
}

async function whyNotVerified(token: Token, nowMs: number, ageS = ageSMax, keys?: KeySet): Promise<string | undefined> {
  if (keys === undefined) return "the issuer's keys are not known now";
  try {
    await jwtVerify(token.text, keys.getKey, {
      algorithms,
      issuer: token.issuer,
      requiredClaims: ["exp", "iat"],
      maxTokenAge: ageS,
      clockTolerance: skewS,
      currentDate: new Date(nowMs),
    });
    return undefined;
  } catch (error) {
    return failureOf(error, ageS);
  }
}

function failureOf(error: unknown, ageS: number): string {
  if (error instanceof errors.JWTExpired) {
    return error.claim === "iat" ? `it was issued more than ${ageS / 60} minutes ago` : "it has expired";
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, reason } = error;
    if (reason !== "check_failed") return `its ${claim} is ${reason === "missing" ? "missing" : "not a number"}`;
    return claim === "nbf" ? "it is not valid yet" : "it was issued in the future";
  }
  if (error instanceof errors.JWSSignatureVerificationFailed) return notSigned;
  if (error instanceof errors.JWKSNoMatchingKey) return noSuchKey;
  if (error instanceof errors.JWKSMultipleMatchingKeys) return severalKeys;
  return `it cannot be verified (${error instanceof errors.JOSEError ? error.code : "its key is not usable"})`;
}

const notSigned = "its signature is not by the issuer's key";
const noSuchKey = "the issuer has no such key as it names";
const severalKeys = "several of the issuer's keys could have signed it";
const unknownSigner: ReadonlySet<string> = new Set([notSigned, noSuchKey, severalKeys]);

function whyNotMet(token: Token, trust: Trust): string | undefined {
  const { audience, claims, perJob } = trust.terms;
  const { payload } = token;
  const { aud } = payload;
  // Kubernetes writes a list of one. In a longer list, another audience could have passed the token on.
  const only = Array.isArray(aud) && aud.length === 1 ? aud[0] : aud;
  if (only !== audience) return `its audience ${isNot(token, "aud", audience)}`;
  for (const [name, value] of Object.entries(claims)) {
    if (!Object.hasOwn(payload, name)) return `its claim ${name} is missing`;
    if (payload[name] !== value) return `its claim ${name} ${isNot(token, name, value)}`;
  }
  if (perJob !== undefined && jobOf(token, trust) === undefined) {
    return `it names no job by ${perJob.claims.map((names) => names.join(" and ")).join(", or ")}, and the trust counts the reads of each`;
  }
  for (const [name, isStrangers] of strangersClaims) {
    const value = payload[name];
    if (typeof value !== "string" || Object.hasOwn(claims, name) || !isStrangers.test(value)) continue;
    return `somebody without write access can start its job (${value}); a trust takes it only by the claim ${name}=${value}`;
  }
  return undefined;
}

/**
 * Claims that say that somebody without write access may have started the job, or wrote what it runs: neither `ref` nor
 * `environment` says who did.
 */
const strangersClaims: readonly (readonly [claim: string, isStrangers: RegExp])[] = [
  // GitHub, and others with its tokens: events of people, and of apps that answer to them. A job of a fork's
  // `pull_request` gets no token.
  // https://docs.github.com/en/actions/reference/workflows-and-actions/events-that-trigger-workflows
  [
    "event_name",
    /^(?:pull_request_(?:target|review|review_comment)|workflow_run|issues|issue_comment|discussion(?:_comment)?|fork|watch|gollum|check_run|check_suite|status)$/,
  ],
  // GitLab: also of a fork. Before 18.2.2, its token had the id of the project that it asks to change.
  // https://gitlab.com/gitlab-org/gitlab/-/issues/548165
  ["pipeline_source", /^(?:merge_request_event|external_pull_request_event)$/],
  // Buildkite: a branch of a fork, if the pipeline builds forks and puts their owner before the branch.
  ["build_branch", /:/],
  // CircleCI: a pull request of a fork, if the project builds them and gives them secrets.
  ["oidc.circleci.com/vcs-ref", /^refs\/(?:heads\/)?pull\/\d/],
];

/** How a claim differs from a text: by its type, or by what it says. */
function isNot({ text, payload }: Token, name: string, wanted: string): string {
  const found = payload[name];
  if (found === undefined) return "is missing";
  if (typeof found === "string") return `is ${shown(found)}, not ${shown(wanted)}`;
  if (found === null) return "is null, not text";
  // Numbers are shown as they were sent: 9007199254740993 is no double.
  const sent = JSON.parse(decode(text.split(".")[1] ?? ""), (_, value, { source }) =>
    typeof value === "number" ? JSON.rawJSON(source) : value,
  );
  const type = Array.isArray(found) ? "list" : typeof found;
  const ours = type === "list" && name === "aud" ? `${shown(wanted)} alone` : "text";
  return `is the ${type} ${shown(sent[name])}, not ${ours}`;
}

/** A part of a token: a JSON object in UTF-8, or undefined. */
function readPart(part: string): Record<string, unknown> | undefined {
  return attempt(() => {
    const text = decode(part);
    const parsed: unknown = JSON.parse(text);
    // Two members of one name: a JSON parser keeps the last, but another program may read the first. So they are
    // refused. Outside strings, each member has one colon.
    const colons = text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length - 1;
    return isObject(parsed) && membersIn(parsed) === colons ? parsed : undefined;
  });
}

/** @throws TypeError if it is not UTF-8 */
function decode(part: string): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(part, "base64url"));
}

function membersIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const own = Array.isArray(value) ? 0 : Object.keys(value).length;
  return Object.values(value).reduce((sum: number, member) => sum + membersIn(member), own);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What a caller sent, shortened. */
function shown(value: unknown): string {
  return (JSON.stringify(value) ?? "missing").slice(0, 200);
}

function idsOf(trusts: readonly Trust[]): string {
  return trusts.map(({ id }) => id).join(", ");
}
