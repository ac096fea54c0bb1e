import { randomBytes } from "node:crypto";
import { isSameMac, sha256Of } from "../core/hash.ts";
import { Slots } from "./lending.ts";
import type { Notice } from "./parts/route.ts";
import { type Choices, Drafts } from "./parts/visit.ts";
import type { Identity } from "./sign-in.ts";

/** A browser that signed in. Sessions are in memory only, so they end with the process. */
export type Session = {
  /** Whom the identity provider signed in; undefined for a person with the printed link. */
  readonly identity: Identity | undefined;
  readonly startedAt: number;
  usedAt: number;
  /** Until when the sign-in is a recent one; undefined for a person with the printed link, whose is for ever. */
  freshUntil: number | undefined;
  readonly drafts: Drafts;
  readonly choices: Choices;
  /** What a page says, once, by its path and query: other tabs load other pages. */
  readonly notices: Map<string, Notice>;
  /** Resolves when the requests so far have been answered. */
  turn: Promise<unknown>;
  /** For pages that may take minutes: one at a time, and no other page waits for it. */
  readonly longPages: Slots;
};

/**
 * Waits until the earlier requests of a session have been answered: many at once keep nobody else waiting.
 * @param turnMsMax - after it, one that hangs keeps the next ones no longer waiting
 * @returns what ends the turn of this one. Before the next one begins, requests of others do
 */
export async function turnOf(session: Pick<Session, "turn">, turnMsMax = 30_000): Promise<() => void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const before = session.turn;
  session.turn = promise.then(() => new Promise(setImmediate));
  await before;
  setTimeout(resolve, turnMsMax).unref();
  return resolve;
}

const idleMs = 15 * 60_000;
const wholeMs = 8 * 3_600_000;
/** How long a sign-in is a recent one without use. Each use begins this time again. */
const freshMs = 10 * 60_000;
const codeMs = 5 * 60_000;
const triesMax = 10;

/** The sessions, by the digest of the token in the cookie. */
export class Sessions {
  readonly #sessions: Map<string, Session>;
  readonly #now: () => number;
  readonly #freshMsMax: number;

  /**
   * @param now - epoch milliseconds
   * @param freshMsMax - how long a sign-in is a recent one, however much it is used
   * @param sessions - those that go on. No part of the program gives any: they end with its process
   */
  constructor(now: () => number, freshMsMax = 30 * 60_000, sessions = new Map<string, Session>()) {
    this.#sessions = sessions;
    this.#now = now;
    this.#freshMsMax = freshMsMax;
  }

  /**
   * Begins a session in place of another. If that is the same person's, what they have begun goes on in it.
   * @param before - the token of the other
   * @returns what the cookie holds: 256 random bits
   */
  begin(identity?: Identity, before = ""): string {
    const token = randomBytes(32).toString("base64url");
    const now = this.#now();
    const earlier = this.#sessions.get(sha256Of(before));
    const isSame =
      earlier !== undefined &&
      !this.#hasEnded(earlier) &&
      earlier.identity?.issuer === identity?.issuer &&
      earlier.identity?.subject === identity?.subject;
    const begun = isSame ? earlier : nothingBegun();
    if (isSame) this.#sessions.delete(sha256Of(before));
    else this.end(before);
    for (const [id, session] of this.#sessions) if (this.#hasEnded(session)) this.#end(id);
    const freshUntil = identity && identity.provedAt + freshMs;
    this.#sessions.set(sha256Of(token), { ...begun, identity, startedAt: now, usedAt: now, freshUntil });
    return token;
  }

  /** The session of a cookie, used now; undefined if there is none or it has ended. */
  use(token: string | undefined): Session | undefined {
    const id = sha256Of(token ?? "");
    const session = this.#sessions.get(id);
    if (session === undefined) return undefined;
    if (this.#hasEnded(session)) {
      this.#end(id);
      return undefined;
    }
    const now = this.#now();
    session.usedAt = now;
    const { identity, freshUntil } = session;
    // What has ended does not begin again.
    if (identity !== undefined && freshUntil !== undefined && now < freshUntil) {
      session.freshUntil = Math.min(now + freshMs, identity.provedAt + this.#freshMsMax);
    }
    return session;
  }

  end(token: string): void {
    this.#end(sha256Of(token));
  }

  #hasEnded({ startedAt, usedAt }: Session): boolean {
    return this.#now() >= Math.min(startedAt + wholeMs, usedAt + idleMs);
  }

  #end(id: string): void {
    this.#sessions.get(id)?.drafts.clear();
    this.#sessions.delete(id);
  }
}

/** What a new session holds. */
export function nothingBegun(): Pick<Session, "drafts" | "choices" | "notices" | "turn" | "longPages"> {
  const longPages = new Slots(
    1,
    "Another long page of yours is still being made: close it, or wait for it. Try again.",
  );
  return { drafts: new Drafts(), choices: {}, notices: new Map(), turn: Promise.resolve(), longPages };
}

/** The code in the printed link. It opens one session, within five minutes and ten tries. */
export class SignInCode {
  readonly #now: () => number;
  #code: { readonly digest: string; readonly endsAt: number; tries: number } | undefined;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A new code, in place of the one before. */
  make(): string {
    const code = randomBytes(16).toString("base64url");
    this.#code = { digest: sha256Of(code), endsAt: this.#now() + codeMs, tries: 0 };
    return code;
  }

  /** Whether this is the code. If so, it is used up. */
  take(text: string): boolean {
    const code = this.#code;
    if (code === undefined || this.#now() >= code.endsAt || ++code.tries > triesMax) return false;
    if (!isSameMac(Buffer.from(sha256Of(text)), Buffer.from(code.digest))) return false;
    this.#code = undefined;
    return true;
  }
}
