import { BoundedMap } from "../../core/bounded-map.ts";
import { atMost } from "../../core/deadline.ts";
import { mayAsk } from "../../core/json-request.ts";
import { Waiters } from "../../core/waiters.ts";
import { type KeySet, parseKeySet } from "./token.ts";

/**
 * Fetches a JSON document for an issuer, bounded in size and time, and follows no redirect. Its errors say what was wrong.
 * @param isPublic - whether it must be on the internet, because no operator made a trust that names it
 */
export type FetchJson = (url: string, isPublic: boolean) => Promise<unknown>;

/** Says in the log that an issuer's keys were fetched after a failure, or why they could not be. */
export type NoteIssuer = (issuer: string, failure: string | undefined) => void;

const refreshAfterMs = 50 * 60_000;
const attemptEveryMs = 30_000;
const usableMs = 24 * 3_600_000;
const issuersMax = 10_000;

/**
 * Asks an issuer for its keys by OpenID Connect Discovery.
 * @throws Error whose message says what is wrong
 * @see https://openid.net/specs/openid-connect-discovery-1_0.html
 */
export async function discoverKeys(issuer: string, fetchJson: (url: string) => Promise<unknown>): Promise<KeySet> {
  if (!mayAsk(issuer)) throw new Error("the issuer is not an https URL");
  const document = await fetchJson(`${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`);
  const { issuer: named, jwks_uri: url } = (document ?? {}) as {
    readonly issuer?: unknown;
    readonly jwks_uri?: unknown;
  };
  if (named !== issuer) throw new Error("its discovery document is another issuer's");
  const isWeaker = issuer.startsWith("https:") && !String(url).startsWith("https:");
  if (typeof url !== "string" || !mayAsk(url) || isWeaker) throw new Error("its jwks_uri is not an https URL");
  return parseKeySet(await fetchJson(url));
}

/**
 * The keys that issuers publish, fetched when a trust needs them. A set is replaced as a whole: in the background if it
 * is 50 minutes old, and when it does not verify a token: issuers replace keys, some under the same `kid` or without one.
 * Each issuer is asked at most every 30 s, whatever tokens say.
 */
export class IssuerKeys {
  readonly #fetchJson: FetchJson;
  readonly #note: NoteIssuer;
  readonly #nowMs: () => number;
  readonly #waitMsMax: number;
  readonly #issuers = new BoundedMap<IssuerState>(issuersMax);

  /** @param nowMs - monotonic milliseconds @param waitMsMax - how long a request waits for an issuer */
  constructor(fetchJson: FetchJson, note: NoteIssuer, nowMs: () => number, waitMsMax = 2000) {
    this.#fetchJson = fetchJson;
    this.#note = note;
    this.#nowMs = nowMs;
    this.#waitMsMax = waitMsMax;
  }

  /**
   * The keys of an issuer that a trust names. Waits for a fetch only if they are not known.
   * @param isPublic - as for {@link FetchJson}: what it may not reach says nothing of what an operator's trusts may
   * @param unfit - keys that did not verify a token: then newer ones are wanted
   * @throws Fault `rate_limited` if too many wait for this issuer already
   */
  async find(issuer: string, isPublic: boolean, unfit?: KeySet): Promise<KeySet | undefined> {
    const state = this.#stateOf(issuer, isPublic);
    const keys = this.#usable(state);
    const isWanted = keys === undefined || keys === unfit;
    const isDue = isWanted || this.#nowMs() - state.fetchedAtMs >= refreshAfterMs;
    const attempt = isDue ? this.#refresh(state) : undefined;
    if (isWanted && attempt) await state.waiters.wait(() => atMost(this.#waitMsMax, attempt));
    return this.#usable(state);
  }

  #usable({ keys, fetchedAtMs }: IssuerState): KeySet | undefined {
    return this.#nowMs() - fetchedAtMs < usableMs ? keys : undefined;
  }

  #stateOf(issuer: string, isPublic: boolean): IssuerState {
    const name = `${isPublic} ${issuer}`;
    let state = this.#issuers.get(name);
    if (state === undefined) {
      state = { ...unknown, issuer, isPublic, waiters: new Waiters() };
      this.#issuers.set(name, state);
    }
    return state;
  }

  /** The fetch that is under way, or is due and begins. It resolves when it has ended, well or not. */
  #refresh(state: IssuerState): Promise<void> | undefined {
    if (state.attempt === undefined && this.#nowMs() - state.triedAtMs >= attemptEveryMs) {
      state.triedAtMs = this.#nowMs();
      state.attempt = this.#fetch(state).finally(() => {
        state.attempt = undefined;
      });
    }
    return state.attempt;
  }

  async #fetch(state: IssuerState): Promise<void> {
    const { issuer, isPublic } = state;
    try {
      const startedAtMs = this.#nowMs();
      state.keys = await discoverKeys(issuer, (url) => this.#fetchJson(url, isPublic));
      state.fetchedAtMs = startedAtMs;
      if (state.failed) this.#note(issuer, undefined);
      state.failed = false;
    } catch (error) {
      if (!state.failed) this.#note(issuer, error instanceof Error ? error.message : "no reason given");
      state.failed = true;
    }
  }
}

const never = Number.NEGATIVE_INFINITY;
const unknown = { keys: undefined, fetchedAtMs: never, triedAtMs: never, failed: false, attempt: undefined };

type IssuerState = {
  readonly issuer: string;
  readonly isPublic: boolean;
  keys: KeySet | undefined;
  fetchedAtMs: number;
  triedAtMs: number;
  failed: boolean;
  attempt: Promise<void> | undefined;
  readonly waiters: Waiters;
};
