import * as oidc from "openid-client";
import { personsSignedIn } from "../access/roster.ts";
import { printable } from "../audit/entry.ts";
import { guardedFetch } from "../core/guarded-fetch.ts";
import { mayAsk, readAtMost } from "../core/json-request.ts";
import { Refused } from "../core/refused.ts";
import type { AdminContext, Who } from "../desk/context.ts";
import { RosterWatch, rightsInForce } from "../desk/roster.ts";
import { type Attempt, Attempts } from "./attempts.ts";

/*
 * Signing in with the company's identity provider, by openid-client: authorization code with PKCE, state and nonce. An
 * attempt is bound to a browser by a cookie and used once, so nobody is signed in by a link that somebody else sent.
 */

/** Whom the provider signed in. */
export type Identity = {
  readonly issuer: string;
  readonly subject: string;
  /** What the provider calls them, for the page only: an address may be given to somebody else. */
  readonly label: string;
  readonly groups: readonly string[];
  /** When they proved who they are, in epoch milliseconds; 0 if the provider does not say, or names a later moment. */
  readonly provedAt: number;
};

export type Provider = {
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined for a public client. */
  readonly clientSecret: string | undefined;
};

const configurationMs = 3_600_000;

/** The team's entrance to the dashboard. */
export class SignIn {
  readonly #provider: Provider;
  readonly #origin: string;
  readonly #now: () => number;
  readonly #report: (error: unknown) => void;
  readonly #attempts: Attempts;
  readonly #watch = new RosterWatch();
  #saidAhead = false;
  #configuration: { readonly found: Promise<oidc.Configuration>; readonly endsAt: number } | undefined;

  /** @param report - takes what an operator must know */
  constructor(provider: Provider, origin: string, now: () => number, report: (error: unknown) => void) {
    this.#provider = provider;
    this.#origin = origin;
    this.#now = now;
    this.#report = report;
    this.#attempts = new Attempts(now);
  }

  /**
   * Begins an attempt.
   * @param session - what the cookie of the browser's session holds: the provider's redirect comes without it
   * @param page - the path that the person asked for
   * @returns where the browser goes, and what its cookie holds
   * @throws Refused `unavailable` if the provider does not answer
   */
  async begin(
    again: boolean,
    session: string | undefined,
    page: string,
  ): Promise<{ readonly to: string; readonly cookie: string }> {
    const configuration = await this.#configure();
    const verifier = oidc.randomPKCECodeVerifier();
    const startedAt = this.#now();
    const random = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier };
    const attempt = { ...random, again, session, page, startedAt };
    const to = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: "openid profile email",
      state: attempt.state,
      nonce: attempt.nonce,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      ...(again && { max_age: "0", prompt: "login" }),
    });
    return { to: to.href, cookie: await this.#attempts.seal(attempt) };
  }

  /**
   * Ends an attempt with what the provider sent the browser back with.
   * @param query - of the URL that the browser came back to
   * @returns whom the provider signed in, the session in which the attempt began, and the page that was asked for
   * @throws Refused `forbidden` if it is not the answer to this browser's attempt; `unavailable`
   */
  async finish(
    cookie: string | undefined,
    query: string,
  ): Promise<{ readonly identity: Identity } & Pick<Attempt, "session" | "page">> {
    const attempt = await this.#attempts.open(cookie ?? "");
    if (attempt === undefined) throw hasEnded();
    const configuration = await this.#configure();
    try {
      const tokens = await oidc.authorizationCodeGrant(configuration, new URL(`${this.#redirectUri}?${query}`), {
        expectedState: attempt.state,
        expectedNonce: attempt.nonce,
        pkceCodeVerifier: attempt.verifier,
        idTokenExpected: true,
      });
      const identity = this.#identityOf(tokens.claims());
      // Without a new proof of identity, somebody could pass with a session that another person left open.
      if (attempt.again && identity.provedAt < attempt.startedAt - skewMs) throw notAskedAgain();
      if (!this.#attempts.use(attempt)) throw hasEnded();
      return { identity, session: attempt.session, page: attempt.page };
    } catch (error) {
      throw refusalOf(error);
    }
  }

  /**
   * Who somebody is now, with the rights in force. It is asked at each request: rights that were taken end at once.
   * @throws Refused `conflict` if the list of people fails verification
   */
  async whoIs(admin: Pick<AdminContext, "database" | "systemKeys">, identity: Identity): Promise<Who> {
    const { persons, ...rights } = await rightsInForce(this.#watch, admin, (all) => personsSignedIn(all, identity));
    const { issuer, subject } = identity;
    return {
      actor: { type: "person", name: persons[0]?.name ?? "", from: { issuer, subject } },
      ...rights,
    };
  }

  #identityOf(claims: oidc.IDToken | undefined): Identity {
    if (claims === undefined) throw new TypeError("there is no ID token");
    const label = claims["email"] ?? claims["preferred_username"] ?? claims["name"];
    const groups = Array.isArray(claims["groups"]) ? claims["groups"] : [];
    return {
      issuer: claims.iss,
      subject: claims.sub,
      label: printable(typeof label === "string" ? label : claims.sub),
      groups: groups.filter((group) => typeof group === "string").slice(0, groupsMax),
      provedAt: this.#provedAt(claims),
    };
  }

  /** A moment in the future would stay fresh for hours, so it counts as none. */
  #provedAt({ auth_time: provedS, iat }: oidc.IDToken): number {
    if (typeof provedS !== "number") return 0;
    const now = this.#now();
    if (Math.max(provedS, iat) * 1000 <= now + skewMs) return Math.min(provedS * 1000, now);
    if (!this.#saidAhead) this.#report(clockAhead());
    this.#saidAhead = true;
    return 0;
  }

  get #redirectUri(): string {
    return `${this.#origin}/signed-in`;
  }

  /** What the provider publishes, found when it is first needed: the dashboard starts without it. */
  async #configure(): Promise<oidc.Configuration> {
    const now = this.#now();
    if (this.#configuration === undefined || this.#configuration.endsAt <= now) {
      this.#configuration = { found: discover(this.#provider), endsAt: now + configurationMs };
    }
    try {
      return await this.#configuration.found;
    } catch (error) {
      this.#configuration = undefined;
      throw refusalOf(error);
    }
  }
}

/** How far the clocks of provider and dashboard may differ. */
const skewMs = 60_000;

async function discover({ issuer, clientId, clientSecret }: Provider): Promise<oidc.Configuration> {
  const authentication = clientSecret === undefined ? oidc.None() : oidc.ClientSecretBasic(clientSecret);
  const configuration = await oidc.discovery(new URL(issuer), clientId, {}, authentication, {
    [oidc.customFetch]: boundedFetch,
    timeout: 5,
    // The signature of the ID token is verified, though it comes over TLS.
    execute: [oidc.enableNonRepudiationChecks, ...(issuer.startsWith("http:") ? [oidc.allowInsecureRequests] : [])],
  });
  if (configuration.serverMetadata().issuer !== issuer) throw new Refused("forbidden", "another issuer");
  return configuration;
}

/** Our own fetch: no redirects, https or this machine, and at most 256 KiB. */
const boundedFetch: oidc.CustomFetch = async (url, options) => {
  if (!mayAsk(url)) throw new TypeError("the provider names an address without https");
  const response = await guardedFetch(url, {
    ...(options as RequestInit),
    headers: Object.fromEntries(new Headers(options.headers as Record<string, string>)),
    redirect: "manual",
    ...(options.signal && { signal: options.signal }),
  });
  const body = await readAtMost(response, answerBytesMax);
  if (body === undefined) throw new TypeError("the provider's answer is longer than 256 KiB");
  return new Response(body.size === 0 ? null : body, { status: response.status, headers: response.headers });
};

const answerBytesMax = 256 * 1024;
const groupsMax = 1000;

/** In our own words: what the provider says may hold anything. */
function refusalOf(error: unknown): Refused {
  if (error instanceof Refused) return error;
  const isAway =
    error instanceof oidc.ClientError && ["OAUTH_TIMEOUT", "OAUTH_RESPONSE_IS_NOT_CONFORM"].includes(error.code ?? "");
  const isNetwork = error instanceof TypeError || (error as { code?: unknown }).code === "ConnectionRefused";
  if (isAway || isNetwork) {
    const words = "The identity provider did not answer as it should. Try again later.";
    return new Refused("unavailable", words, { cause: error });
  }
  return new Refused("forbidden", "The identity provider did not sign you in.", { cause: error });
}

function hasEnded(): Refused {
  return new Refused("forbidden", "This sign-in has ended, or began in another browser. Nobody was signed in.");
}

function notAskedAgain(): Refused {
  const words = "The identity provider does not say that it asked again who you are. Nobody was signed in.";
  return new Refused("forbidden", words);
}

function clockAhead(): Refused {
  return new Refused(
    "conflict",
    "The identity provider's ID tokens name a moment that is more than a minute ahead of this machine's clock. Their sign-ins never count as recent, so nobody sees values of production: set the clocks.",
  );
}
