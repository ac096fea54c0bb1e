import { Fault } from "../core/fault.ts";
import { Refused } from "../core/refused.ts";
import { databaseErrorCode, isConnectionFailure, queryDeadlineMs } from "./database.ts";

/*
 * A workaround for postgres.js 3.4.9. Its connections do not recover from failures:
 *
 * - After an error it goes on counting rows where the answer broke off, so the next answer begins with holes.
 * - If the peer of a connection vanished silently, it waits forever.
 * - If none of several hosts accepts it, it tries them in turn without pause or end, even after `end`.
 *
 * (The patch beside this file mends others. It signs in by `sign-in.ts`, and bounds what a server may send. A connection
 * that closed keeps nothing for the next one: neither rows, nor unsent bytes, nor the statements of a transaction.)
 *
 * So a client has one host. Once one of its connections fails or is too slow, no answer of that client counts, and its
 * queries go to a new client.
 *
 * This file can go when postgres.js forgets an unfinished answer as its connection closes or fails (`closed` and
 * `errored` in its connection.js) and `test/blackbox/faults.test.ts` ("a PostgreSQL that fails") passes without it.
 */

/** A driver's client, and its successors. */
export class Clients<Client extends { end(options: { timeout: number }): Promise<void> }> {
  readonly #connect: (closed: () => void, elsewhere: boolean) => Client;
  readonly #onAnswer: () => void;
  /** Throws a Refused if nothing may be asked. */
  readonly check: (client: Client) => Promise<void>;
  readonly #news: News;
  readonly #checks = new WeakMap<Client, { readonly passed: Promise<void>; untilMs: number }>();
  #client: Client;
  #distrusted = false;
  #answered = false;
  #closed = false;
  #madeAt = performance.now();

  /**
   * @param connect - makes a client that calls `closed` at once when one of its connections closes. `elsewhere` is true
   *   if the last client gave no answer, or stopped answering: another host may do better. Throws if none may be made.
   * @param onAnswer - called at the first answer of each client
   * @param check - runs before the first query of each client, and again when it last passed a minute ago
   */
  constructor(
    connect: (closed: () => void, elsewhere: boolean) => Client,
    onAnswer = () => {},
    check: (client: Client) => Promise<void> = async () => {},
    news: News = { refused: () => {}, lost: () => {} },
  ) {
    this.#news = news;
    this.#connect = connect;
    this.#onAnswer = onAnswer;
    this.check = check;
    this.#client = this.#make(false);
  }

  /** A client that is trusted, on the same host, for what is never asked again: a command's transactions. */
  get client(): Client {
    if (this.#distrusted && !this.#closed) this.#renew(false);
    return this.#client;
  }

  /**
   * Asks, and asks again if a connection fails.
   * @returns the answer, and a way to give it up: then it is not asked again, and its client is no longer trusted. The
   *   answer rejects as the query does, or with Fault `unavailable` if no attempt counts
   */
  ask<T>(attempts: number, query: (client: Client) => PromiseLike<T>) {
    let asked: Client | undefined;
    let givenUp = false;
    const giveUp = () => {
      givenUp = true;
      if (asked !== this.#client) return;
      this.#distrusted = true;
      this.#answered = false;
    };
    const ask = async (): Promise<T> => {
      for (let attempt = 1; ; attempt++) {
        const client = this.#distrusted ? await this.#next() : this.#client;
        if (givenUp) throw new Fault("unavailable", "the query was given up");
        asked = client;
        try {
          const checked = this.#checked(client);
          if (checked !== undefined) await checked;
          const answer = await query(client);
          if (client === this.#client && !this.#distrusted) {
            const first = !this.#answered;
            this.#answered = true;
            if (first) this.#onAnswer();
            return answer;
          }
          if (attempt >= attempts)
            throw new Fault("unavailable", "a connection to the database closed during the request");
        } catch (error) {
          if (error instanceof Fault || error instanceof Refused) throw error;
          const code = databaseErrorCode(error);
          const isRefused = /^(?:28\w{3}|SIGN_IN_\w+)$/.test(code);
          if (isRefused && client === this.#client) this.#news.refused(code);
          // A client that is no longer trusted may report another query's failure.
          const doubtful = client !== this.#client || this.#distrusted || isConnectionFailure(error);
          if (client === this.#client) {
            // PostgreSQL says that it ends (57P01) before the connection closes.
            if (isConnectionFailure(error)) this.#lose();
            else this.#distrusted = true;
          }
          if (!doubtful || attempt >= attempts) throw error;
        }
      }
    };
    return { answer: ask(), giveUp };
  }

  /** What a query waits for; undefined if the last check is young enough. Queries that wait at once share a check. */
  #checked(client: Client): Promise<void> | undefined {
    const last = this.#checks.get(client);
    if (last && performance.now() < last.untilMs) return undefined;
    if (last?.untilMs === checkUnderWay) return last.passed;
    const check = { passed: this.check(client), untilMs: checkUnderWay };
    this.#checks.set(client, check);
    check.passed.then(
      () => {
        check.untilMs = performance.now() + checkEveryMs;
      },
      () => this.#checks.delete(client),
    );
    return check.passed;
  }

  /** Another host answers: queries that wait here go there at once, not after their deadlines. */
  leave(): void {
    this.#distrusted = true;
    void this.#client.end({ timeout: 0 }).catch(() => {});
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#client.end({ timeout: 1 });
  }

  /** The next client. While the database is away every query fails, and all share one new client per interval. */
  async #next(): Promise<Client> {
    // Timers may fire a little early, so the clock is read again.
    while (this.#distrusted) {
      if (this.#closed) throw new Fault("unavailable", "the database was closed during the request");
      const youngMs = renewEveryMs - (performance.now() - this.#madeAt);
      if (youngMs > 0) {
        await Bun.sleep(Math.ceil(youngMs));
        continue;
      }
      this.#renew(!this.#answered);
    }
    return this.#client;
  }

  #renew(elsewhere: boolean): void {
    const old = this.#client;
    this.#client = this.#make(elsewhere);
    // Later, so that queries that still wait on it end at their own deadlines.
    setTimeout(() => void old.end({ timeout: 0 }).catch(() => {}), queryDeadlineMs).unref();
  }

  /** A connection of the client broke. */
  #lose(): void {
    if (this.#answered && !this.#distrusted && !this.#closed) this.#news.lost();
    this.#distrusted = true;
  }

  #make(elsewhere: boolean): Client {
    const client: Client = this.#connect(() => {
      if (client === this.#client) this.#lose();
    }, elsewhere);
    this.#distrusted = false;
    this.#madeAt = performance.now();
    this.#answered = false;
    return client;
  }
}

/** What becomes of clients. */
type News = {
  /** The host refused the user or the password. @param code - SQLSTATE, or one of `signInFailures` */
  readonly refused: (code: string) => void;
  /** A connection of a client that answered closed. */
  readonly lost: () => void;
};

const renewEveryMs = 100;
const checkEveryMs = 60_000;
const checkUnderWay = -1;
