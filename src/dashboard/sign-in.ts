import * as oidc from "openid-client";
import { Refused } from "../core/refused.ts";
import type { AdminContext, Who } from "../people/desk/context.ts";
import { RosterWatch, rightsInForce } from "../people/desk/roster.ts";
import { printable } from "../record/entry.ts";
import { personsSignedIn } from "../serve/access/roster.ts";
import { type Attempt, Attempts } from "./attempts.ts";
import { type Claims, IdentityProvider, notSignedIn, type Provider, shown } from "./provider.ts";

/*
 * Signing in with the company's identity provider: authorization code with PKCE, state and nonce. An attempt is bound to
 * a browser by a cookie and used once, so nobody is signed in by a link that somebody else sent. `provider.ts` asks the
 * provider and verifies what it says.
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

/** The team's entrance to the dashboard. */
export class SignIn {
  readonly #provider: IdentityProvider;
  readonly #origin: string;
  readonly #now: () => number;
  readonly #report: (error: unknown) => void;
  readonly #attempts: Attempts;
  readonly #watch = new RosterWatch();
  #saidAhead = false;

  /** @param report - takes what an operator must know */
  constructor(provider: Provider, origin: string, now: () => number, report: (error: unknown) => void) {
    this.#provider = new IdentityProvider(provider, now);
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
    const verifier = oidc.randomPKCECodeVerifier();
    const startedAt = this.#now();
    const random = { state: oidc.randomState(), nonce: oidc.randomNonce(), verifier };
    const attempt = { ...random, again, session, page, startedAt };
    const to = await this.#provider.authorizationUrl({
      redirect_uri: this.#redirectUri,
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
    const { claims, userInfo } = await this.#provider.finish(new URL(`${this.#redirectUri}?${query}`), attempt);
    const identity = this.#identityOf(claims, await userInfo());
    // Without a new proof of identity, somebody could pass with a session that another person left open.
    if (attempt.again && identity.provedAt < attempt.startedAt - skewMs) throw notAskedAgain(claims, attempt);
    if (!this.#attempts.use(attempt)) throw hasEnded();
    return { identity, session: attempt.session, page: attempt.page };
  }

  /**
   * Who somebody is now, with the rights in force. It is asked at each request: rights that were taken end at once.
   * @throws Refused `conflict` if the list of people fails verification
   */
  async whoIs(admin: Pick<AdminContext, "database" | "systemKeys">, identity: Identity): Promise<Who> {
    const own = await rightsInForce(this.#watch, admin, (all) => personsSignedIn(all, identity));
    const { issuer, subject } = identity;
    return { actor: { type: "person", name: own.entries[0] ?? "", from: { issuer, subject } }, ...own };
  }

  /** @param more - what the provider says elsewhere of the same subject; undefined if it was not asked, or did not say */
  #identityOf(claims: Claims, more: Readonly<Record<string, unknown>> | Refused | undefined): Identity {
    if (more instanceof Refused) this.#report(more);
    const all = { ...(more instanceof Refused ? undefined : more), ...claims };
    const label = all["email"] ?? all["preferred_username"] ?? all["name"];
    return {
      issuer: claims.iss,
      subject: claims.sub,
      label: printable(typeof label === "string" ? label : claims.sub),
      groups: groupsOf(all["groups"]),
      provedAt: this.#provedAt(claims),
    };
  }

  /** A moment in the future would stay fresh for hours, so it counts as none. */
  #provedAt({ auth_time: provedS, iat }: Claims): number {
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
}

/** How far the clocks of provider and dashboard may differ. */
const skewMs = 60_000;
const groupsMax = 1000;

/** The names of groups. One text is one name, whatever it contains: some providers send that for a single group. */
function groupsOf(claim: unknown): readonly string[] {
  const names: readonly unknown[] = Array.isArray(claim) ? claim : [claim];
  return names.filter((name) => typeof name === "string").slice(0, groupsMax);
}

function hasEnded(): Refused {
  return new Refused("forbidden", "This sign-in has ended, or began in another browser. Nobody was signed in.");
}

function notAskedAgain({ auth_time: provedS }: Claims, { startedAt }: Attempt): Refused {
  const words = "The identity provider does not say that it asked again who you are. Nobody was signed in.";
  const asked = "and max_age=0 asks for one from";
  const is = provedS === undefined ? "has no auth_time" : `has the auth_time ${shown(provedS)}`;
  const why = `the ID token ${is}, ${asked} ${Math.floor(startedAt / 1000)} on. Let the provider send auth_time, as a number, and ask people again`;
  return notSignedIn(why, "forbidden", words);
}

function clockAhead(): Refused {
  return new Refused(
    "conflict",
    "The identity provider's ID tokens name a moment that is more than a minute ahead of this machine's clock. Their sign-ins never count as recent, so nobody sees values of production: set the clocks.",
  );
}
