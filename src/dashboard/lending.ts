import { HostRefused } from "../core/refused.ts";
import type { AdminContext } from "../people/desk/context.ts";

export type LentDatabase = AdminContext["database"];

/** Lets some go on at once. The others wait in their order, and no longer than half a minute. */
export class Slots {
  readonly #waiting = new Set<() => void>();
  readonly #refusal: string;
  readonly #waitMsMax: number;
  #free: number;

  /** @param refusal - what somebody is told who waited for too long */
  constructor(count: number, refusal: string, waitMsMax = 30_000) {
    this.#free = count;
    this.#refusal = refusal;
    this.#waitMsMax = waitMsMax;
  }

  /** @returns gives the slot back. @throws HostRefused `unavailable` after half a minute */
  async take(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1;
    else await this.#handedOver();
    return () => {
      const [next] = this.#waiting;
      if (next === undefined) this.#free += 1;
      else next();
    };
  }

  #handedOver(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const go = () => {
      clearTimeout(timer);
      this.#waiting.delete(go);
      resolve();
    };
    const timer = setTimeout(() => {
      this.#waiting.delete(go);
      reject(new HostRefused("unavailable", this.#refusal, { forPersons: this.#refusal }));
    }, this.#waitMsMax);
    this.#waiting.add(go);
    return promise;
  }
}

/**
 * The databases that pages are made with. Each is lent to one request at a time: through a shared one, a page could show
 * what another request has not committed. A connection to PostgreSQL stays open for some seconds, for the next request.
 */
export class Lending {
  readonly #slots: Slots;
  readonly #open: () => LentDatabase;
  readonly #idle: { readonly database: LentDatabase; readonly timer: ReturnType<typeof setTimeout> }[] = [];

  constructor(count: number, open: () => LentDatabase) {
    this.#slots = new Slots(count, "The dashboard is busy with the pages of others. Nothing was done: try again.");
    this.#open = open;
  }

  /** A database whose `close` gives it back. @throws HostRefused `unavailable` if none is free within half a minute */
  async lend(): Promise<LentDatabase> {
    const giveBack = await this.#slots.take();
    try {
      const kept = this.#idle.pop();
      clearTimeout(kept?.timer);
      const database = kept?.database ?? this.#open();
      const close = () => this.#keep(database).finally(giveBack);
      return { ...database, close, [Symbol.asyncDispose]: close };
    } catch (error) {
      giveBack();
      throw error;
    }
  }

  async #keep(database: LentDatabase): Promise<void> {
    // Opening a file costs next to nothing, and shows whether it is still there.
    if (database.dialect === "sqlite") return database.close();
    const timer = setTimeout(() => {
      this.#idle.splice(
        this.#idle.findIndex((kept) => kept.database === database),
        1,
      );
      void database.close().catch(() => {});
    }, idleMsMax);
    timer.unref();
    this.#idle.push({ database, timer });
  }
}

const idleMsMax = 10_000;
