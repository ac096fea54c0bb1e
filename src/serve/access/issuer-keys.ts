import { atMost } from "../../core/deadline.ts";
import { mayAsk } from "../../core/json-request.ts";
import { Waiters } from "../../core/waiters.ts";
import { type KeySet, parseKeySet } from "./token.ts";

/** Fetches a JSON document for an issuer, bounded in size and time, and follows no redirect. Its errors say what was wrong. */
export type FetchJson = (url: string, issuer: string) => Promise<unknown>;

/** Says in the log that an issuer's keys were fetched after a failure, or why they could not be. */
export type NoteIssuer = (issuer: string, failure: string | undefined) => void;

const refreshAfterMs = 50 * 60_000;
const attemptEveryMs = 30_000;
const usableMs = 24 * 3_600_000;

/**
 * Asks an issuer for its keys by OpenID Connect Discovery.
 * @throws Error whose message says what is wrong
 * @see https://openid.net/specs/openid-connect-discovery-1_0.html
 */
export async function discoverKeys(issuer: string, fetchJson: FetchJson): Promise<KeySet> {
  if (!mayAsk(issuer)) throw new Error("the issuer is not an https URL");
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, issuer);
  const { issuer: named, jwks_uri: url } = (document ?? {}) as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  if (named !== issuer) throw new Error("its discovery document is another issuer's");
  const isWeaker = issuer.startsWith("https:") && !String(url).startsWith("https:");
  if (typeof url !== "string" || !mayAsk(url) || isWeaker) throw new Error("its jwks_uri is not an https URL");
  return parseKeySet(await fetchJson(url, issuer));
}

/**
 * The keys that issuers publish, fetched in the background. A set is replaced as a whole, at least hourly, and when it
 * does not verify a token: issuers replace keys, some under the same `kid` or without one. Each issuer is asked at most
 * every 30 s, whatever tokens say.
 */
export class IssuerKeys {
  readonly #fetchJson: FetchJson;
  readonly #note: NoteIssuer;
  readonly #nowMs: () => number;
  readonly #waitMsMax: number;
  readonly #issuers = new Map<string, IssuerState>();

  /** @param nowMs - monotonic milliseconds @param waitMsMax - how long a request waits for an issuer */
  constructor(fetchJson: FetchJson, note: NoteIssuer, nowMs: () => number, waitMsMax = 2000) {
    this.#fetchJson = fetchJson;
    this.#note = note;
    this.#nowMs = nowMs;
    this.#waitMsMax = waitMsMax;
  }

  /** Refreshes those sets of these issuers that are due, and forgets all others. Returns at once. */
  keep(issuers: Iterable<string>): void {
    const kept = new Set(issuers);
    for (const issuer of this.#issuers.keys()) if (!kept.has(issuer)) this.#issuers.delete(issuer);
    for (const issuer of kept) {
      if (this.#nowMs() - this.#stateOf(issuer).fetchedAtMs >= refreshAfterMs) void this.#refresh(issuer);
    }
  }

  /**
   * The keys of an issuer that a trust names. Waits for a fetch only if they are not known.
   * @param unfit - keys that did not verify a token: then newer ones are wanted
   * @throws Fault `rate_limited` if too many wait for this issuer already
   */
  async find(issuer: string, unfit?: KeySet): Promise<KeySet | undefined> {
    const state = this.#stateOf(issuer);
    const keys = this.#usable(state);
    const attempt = keys === undefined || keys === unfit ? this.#refresh(issuer) : undefined;
    if (attempt) await state.waiters.wait(() => atMost(this.#waitMsMax, attempt));
    return this.#usable(state);
  }

  #usable({ keys, fetchedAtMs }: IssuerState): KeySet | undefined {
    return this.#nowMs() - fetchedAtMs < usableMs ? keys : undefined;
  }

  #stateOf(issuer: string): IssuerState {
    let state = this.#issuers.get(issuer);
    if (state === undefined) {
      const never = Number.NEGATIVE_INFINITY;
      const waiters = new Waiters();
      state = { keys: undefined, fetchedAtMs: never, triedAtMs: never, failed: false, attempt: undefined, waiters };
      this.#issuers.set(issuer, state);
    }
    return state;
  }

  /** The fetch that is under way, or is due and begins. It resolves when it has ended, well or not. */
  #refresh(issuer: string): Promise<void> | undefined {
    const state = this.#stateOf(issuer);
    if (state.attempt === undefined && this.#nowMs() - state.triedAtMs >= attemptEveryMs) {
      state.triedAtMs = this.#nowMs();
      state.attempt = this.#fetch(issuer, state).finally(() => {
        state.attempt = undefined;
      });
    }
    return state.attempt;
  }

  async #fetch(issuer: string, state: IssuerState): Promise<void> {
    try {
      const startedAtMs = this.#nowMs();
      state.keys = await discoverKeys(issuer, this.#fetchJson);
      state.fetchedAtMs = startedAtMs;
      if (state.failed) this.#note(issuer, undefined);
      state.failed = false;
    } catch (error) {
      if (!state.failed) this.#note(issuer, error instanceof Error ? error.message : "no reason given");
      state.failed = true;
    }
  }
}

type IssuerState = {
  keys: KeySet | undefined;
  fetchedAtMs: number;
  triedAtMs: number;
  failed: boolean;
  attempt: Promise<void> | undefined;
  readonly waiters: Waiters;
};
