import {
  createRemoteJWKSet,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  customFetch as joseFetch,
  jwtVerify,
} from "jose";
import * as oidc from "openid-client";
import { guardedFetch } from "../core/guarded-fetch.ts";
import { mayAsk, requestJson, whyNoReply } from "../core/json-request.ts";
import { Refused } from "../core/refused.ts";
import { visible } from "../core/visible.ts";
import { isWord, wordRule } from "../people/desk/validate.ts";
import type { Attempt } from "./attempts.ts";

/*
 * The identity provider, as openid-client and jose ask it. Whatever it answers, a page says in one sentence that nobody
 * was signed in. The log has the cause: codes, addresses and claims, and never a secret, a code or a token.
 */

/** What the operator says of the provider. */
export type Provider = {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
  /** What is asked for beside `openid profile email`, such as `groups`. */
  readonly scopes?: readonly string[];
};

/** The verified claims of an ID token. */
export type Claims = JWTPayload & { readonly iss: string; readonly sub: string; readonly iat: number };

/** What the provider publishes of itself. */
type Published = {
  readonly configuration: oidc.Configuration;
  readonly keys: JWTVerifyGetKey;
  /** With which it may sign ID tokens. */
  readonly algorithms: string[];
};

const publishedMs = 3_600_000;
const timeoutMs = 5000;
const answerBytesMax = 256 * 1024;
const toleranceS = 30;
/** Never `none`, and never HMAC, whose key is the client's secret. */
const asymmetric = /^(?:[RPE]S(?:256|384|512)|EdDSA|Ed25519)$/;

export class IdentityProvider {
  readonly #told: Provider;
  readonly #now: () => number;
  #published: { readonly found: Promise<Published>; readonly endsAt: number } | undefined;

  /** @param now - epoch milliseconds */
  constructor(told: Provider, now: () => number) {
    this.#told = told;
    this.#now = now;
  }

  /** Where a browser goes to sign in. @throws Refused `unavailable`, `forbidden` */
  async authorizationUrl(parameters: Record<string, string>): Promise<URL> {
    const { configuration } = await this.#publish();
    const scope = ["openid", "profile", "email", ...(this.#told.scopes ?? [])].join(" ");
    return oidc.buildAuthorizationUrl(configuration, { ...parameters, scope });
  }

  /**
   * Takes the answer to an attempt.
   * @param answer - the URL that the browser came back to
   * @returns the claims of the ID token, and what the provider says elsewhere if the token names no groups: a Refused for
   *   the log if it does not say, since rights without a group are fewer and never more
   * @throws Refused `forbidden`, `unavailable`
   */
  async finish(answer: URL, { state, nonce, verifier }: Attempt) {
    const published = await this.#publish();
    const { configuration } = published;
    const { searchParams } = answer;
    const { issuer } = this.#told;
    const iss = searchParams.get("iss");
    if (iss !== null && iss !== issuer) throw notSignedIn(`the answer's iss is ${shown(iss)}, not ${shown(issuer)}`);
    const tokens = await oidc
      .authorizationCodeGrant(configuration, answer, { expectedState: state, pkceCodeVerifier: verifier })
      .catch((error: unknown) => {
        throw refusalOf(error);
      });
    const claims = await this.#claimsOf(published, tokens[idTokenMember], nonce);
    const userInfo = async () => {
      if (claims["groups"] !== undefined || !configuration.serverMetadata().userinfo_endpoint) return undefined;
      return oidc
        .fetchUserInfo(configuration, tokens.access_token, claims.sub)
        .catch(
          (error: unknown) =>
            new Refused("unavailable", `Somebody's groups are not known. ${forLog(refusalOf(error)).message}`),
        );
    };
    return { claims, userInfo };
  }

  /** @throws Refused `forbidden` unless the provider made this ID token for this attempt; `unavailable` */
  async #claimsOf({ keys, algorithms }: Published, idToken: unknown, nonce: string): Promise<Claims> {
    const { issuer, clientId } = this.#told;
    if (typeof idToken !== "string") throw notSignedIn("the token endpoint's answer has no ID token");
    const now = this.#now();
    const { payload } = await jwtVerify(idToken, keys, {
      algorithms,
      issuer,
      audience: clientId,
      requiredClaims: ["exp", "iat", "sub"],
      clockTolerance: toleranceS,
      currentDate: new Date(now),
    }).catch((error: unknown) => {
      const wanted = { iss: issuer, aud: clientId };
      throw error instanceof Refused ? error : notSignedIn(`the ID token ${whyNot(error, wanted, now)}`);
    });
    const { aud, azp, sub } = payload;
    if (payload["nonce"] !== nonce) throw notSignedIn("the ID token's nonce is not the one of this attempt");
    // The client that the token was made for, which a token for several must name.
    const isNamed = azp !== undefined || (Array.isArray(aud) && aud.length > 1);
    if (isNamed && azp !== clientId) {
      throw notSignedIn(`the ID token's azp is ${shown(azp)}, not ${shown(clientId)}`);
    }
    if (typeof sub !== "string" || !isWord(sub)) {
      throw notSignedIn(`the ID token's sub is ${shown(sub)}, not ${wordRule()}`);
    }
    return payload as Claims;
  }

  /** What the provider publishes, found when it is first needed: the dashboard starts without it. */
  async #publish(): Promise<Published> {
    const now = this.#now();
    if (this.#published === undefined || this.#published.endsAt <= now) {
      this.#published = { found: discover(this.#told), endsAt: now + publishedMs };
    }
    try {
      return await this.#published.found;
    } catch (error) {
      this.#published = undefined;
      throw refusalOf(error);
    }
  }
}

async function discover({ issuer, clientId, clientSecret }: Provider): Promise<Published> {
  const url = `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;
  const document = (await (await ask(url)).json()) as oidc.ServerMetadata | null;
  if (document?.issuer !== issuer) {
    throw notSignedIn(`${url} says that its issuer is ${shown(document?.issuer)}, and --issuer is ${shown(issuer)}`);
  }
  for (const name of ["authorization_endpoint", "token_endpoint", "jwks_uri"] as const) {
    if (!mayLead(issuer, document[name])) throw away(url, `has no ${name} that is an https URL`);
  }
  const { id_token_signing_alg_values_supported: named, token_endpoint_auth_methods_supported: methods } = document;
  const offers = (method: string) => Array.isArray(methods) && methods.includes(method);
  const isPost = offers("client_secret_post") && !offers("client_secret_basic");
  const withSecret = isPost ? oidc.ClientSecretPost : oidc.ClientSecretBasic;
  const authentication = clientSecret === undefined ? oidc.None() : withSecret(clientSecret);
  const configuration = new oidc.Configuration(document, clientId, {}, authentication);
  configuration[oidc.customFetch] = askForTokens;
  configuration.timeout = timeoutMs / 1000;
  if (isPlain(issuer)) oidc.allowInsecureRequests(configuration);
  const keys = createRemoteJWKSet(new URL(document.jwks_uri as string), {
    [joseFetch]: ask,
    timeoutDuration: timeoutMs,
  });
  const algorithms = (Array.isArray(named) ? named : ["RS256"]).filter((one) => asymmetric.test(one));
  return { configuration, keys, algorithms };
}

/** Whether a provider may name this URL: an https one leads nobody to http, not to this machine's either. */
export function mayLead(issuer: string, url: unknown): boolean {
  return typeof url === "string" && mayAsk(url) && (!isPlain(url) || isPlain(issuer));
}

function isPlain(url: string): boolean {
  return new URL(url).protocol === "http:";
}

/** What is sent, as openid-client and jose name it. */
type Sent = { readonly method?: string; readonly headers?: unknown; readonly body?: unknown };

/** Asks for a JSON document. @throws Refused `unavailable` */
async function ask(url: string, sent: Sent = {}): Promise<Response> {
  const { status, json } = await replyOf(url, sent);
  if (status !== 200) throw away(url, `answered ${status}`);
  return Response.json(json);
}

/**
 * The same for openid-client, which is told of refusals. It does not get the ID token, since it would sign nobody in
 * whose `auth_time` is a text: jose verifies the token instead.
 */
async function askForTokens(url: string, sent: Sent): Promise<Response> {
  const { status, json } = await replyOf(url, sent);
  if (typeof json !== "object" || json === null) throw away(url, `answered ${status} without a JSON object`);
  const isRefusal = status >= 400 && status < 500 && "error" in json;
  if (status !== 200 && !isRefusal) throw away(url, `answered ${status}`);
  const { id_token: idToken, ...others } = json as Readonly<Record<string, unknown>>;
  return Response.json({ ...others, [idTokenMember]: idToken }, { status });
}

const idTokenMember = "keyhole_id_token";

/** One request: https or this machine, no redirects, at most 256 KiB, within five seconds. @throws Refused `unavailable` */
async function replyOf(url: string, { method, headers = {}, body }: Sent): Promise<{ status: number; json: unknown }> {
  if (!mayAsk(url)) throw away(url, "is not an https URL");
  const reply = await requestJson(url, {
    headers: Object.fromEntries(new Headers(headers as Record<string, string>)),
    ...(method === "POST" && { post: String(body) }),
    timeoutMs,
    bytesMax: answerBytesMax,
    fetch: guardedFetch,
  });
  if ("failed" in reply) throw away(url, whyNoReply(reply, timeoutMs));
  if ("json" in reply.body) return { status: reply.status, json: reply.body.json };
  throw away(url, `answered ${reply.status}, and its answer is ${reply.body.wrong}`);
}

/** In our own words: what the provider says may hold anything. */
function refusalOf(error: unknown): Refused {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof Refused) return at;
  if (error instanceof oidc.AuthorizationResponseError) return notSignedIn(`it answered ${codeOf(error.error)}`);
  if (error instanceof oidc.ResponseBodyError) {
    return notSignedIn(`its token endpoint answered ${error.status}, ${codeOf(error.error)}`);
  }
  const { name, message, cause } = error as Error;
  // The library's own words quote nothing.
  const words = cause instanceof Error && cause.name === "OperationProcessingError" ? cause.message : message;
  return notSignedIn(
    error instanceof oidc.ClientError ? `its answer is refused: ${visible(words)}` : `${name} in its answer`,
  );
}

/** A code of OAuth, and what to do about it. */
function codeOf(code: string): string {
  if (!/^[\w.-]{1,60}$/.test(code)) return "an error without a code of OAuth";
  const hint = Object.hasOwn(hints, code) ? hints[code] : undefined;
  return hint === undefined ? code : `${code}: ${hint}`;
}

const hints: Readonly<Record<string, string>> = {
  invalid_client: "is KEYHOLE_CLIENT_SECRET the secret of --client-id",
  invalid_grant: "is the redirect URI registered, and are the clocks right",
  invalid_scope: "does the client have the scopes openid, profile, email and those of --scope",
  unauthorized_client: "may the client use the authorization code flow",
};

/** Why jose refuses an ID token, as a clause that follows it. */
function whyNot(error: unknown, wanted: Readonly<Record<string, string>>, nowMs: number): string {
  const clock = `, and this machine's clock says ${Math.floor(nowMs / 1000)}`;
  if (error instanceof errors.JWTExpired) {
    return `expired at ${shown(error.payload.exp)}${clock}`;
  }
  if (error instanceof errors.JWTClaimValidationFailed) {
    const { claim, payload } = error;
    const found = `has the ${claim} ${shown(payload[claim])}${claim === "nbf" ? clock : ""}`;
    return wanted[claim] === undefined ? found : `${found}, not ${shown(wanted[claim])}`;
  }
  if (error instanceof errors.JOSEAlgNotAllowed) {
    return "is signed with an algorithm without a public key, or that the provider does not publish: choose RS256 there";
  }
  if (error instanceof errors.JWSSignatureVerificationFailed || error instanceof errors.JWKSNoMatchingKey) {
    return "is not signed by a key that the provider publishes";
  }
  return `cannot be verified (${error instanceof errors.JOSEError ? error.code : (error as Error).name})`;
}

/** A claim or an address for the log. */
export function shown(value: unknown): string {
  return visible((JSON.stringify(value) ?? "missing").slice(0, 200));
}

function away(url: string, why: string): Refused {
  const { origin, pathname } = URL.parse(url) ?? { origin: "an address", pathname: "" };
  return notSignedIn(`${shown(origin + pathname)} ${why}`, "unavailable");
}

const onPage = {
  forbidden: "The identity provider did not sign you in.",
  unavailable: "The identity provider did not answer as it should. Try again later.",
} as const;

/** A refusal whose message is for the page. Its cause is another one, for the log. @param why - a clause */
export function notSignedIn(
  why: string,
  kind: keyof typeof onPage = "forbidden",
  words: string = onPage[kind],
): Refused {
  const cause = new Refused(kind, `Signing in failed at the identity provider: ${why}.`);
  return new Refused(kind, words, { cause });
}

/** What the log has of a failed sign-in, in place of the page's sentence. */
export function forLog(error: unknown): Error {
  return error instanceof Refused && error.cause instanceof Refused ? error.cause : (error as Error);
}
