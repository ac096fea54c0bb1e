import { Deadline } from "../../core/deadline.ts";
import { guardedFetch } from "../../core/guarded-fetch.ts";
import { networkFailureOf, readAtMost } from "../../core/json-request.ts";
import { configProblem } from "../../core/problem.ts";
import type { WitnessSetting } from "../../core/settings/settings.ts";
import { cosignedAt, noteBytesMax, parseWitness, type Verifier } from "../note.ts";
import { type NotedHead, openTreeHead, witnessedPath } from "../tree-note.ts";

/** A witness: where it is, and the key that its signatures count by. */
export type Witness = { readonly url: string; readonly key: string; readonly verifier: Verifier };
/** Why each witness that is away did not answer well, by its name. */
export type Away = Readonly<Record<string, string>>;

/** A memory that the database is compared with: the size of its head, 0 if it has none, or why it was not compared. */
export type HeadComparison = { readonly with: string; readonly size?: number; readonly reason?: string };

/** @throws Problem if a key is not that of a witness */
export function openWitnesses(settings: readonly WitnessSetting[] = []): Witness[] {
  return settings.map(({ url, key }) => {
    const verifier = parseWitness(key);
    if (verifier === undefined) {
      throw configProblem("KEYHOLE_WITNESS: the text after # must be a witness's verifier key, for Ed25519.");
    }
    return { url: url.replace(/\/$/, ""), key, verifier };
  });
}

/**
 * The newest heads that the witnesses remember of this log, as far as they say so. A head counts if the log and the
 * witness have both signed it, so a witness that lies can show none that this log did not sign. One that does not answer
 * well shows nothing, and is only said to be away.
 */
export class WitnessedHeads {
  readonly witnesses: readonly Witness[];
  readonly #heads = new Map<Witness, NotedHead>();
  readonly #away = new Map<Witness, string>();
  /** Those that have answered well, if only that they remember no head. */
  readonly #answered = new Set<Witness>();
  #askedWith = "";
  #askedAtMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<unknown> = Promise.resolve();
  #isAwaited = false;
  /** Whether the answers of the last time are still waited for, after one wait that was too long. */
  #isLate = false;
  readonly #askEveryMs: number;
  readonly #deadline: Pick<Deadline, "of">;

  /** @throws Problem if a key is not that of a witness */
  constructor(
    settings: readonly WitnessSetting[] | undefined,
    askEveryMs = 60_000,
    answersWithin: Pick<Deadline, "of"> = deadline,
  ) {
    this.witnesses = openWitnesses(settings);
    this.#askEveryMs = askEveryMs;
    this.#deadline = answersWithin;
  }

  /** What each witness has shown until now, in the order of the settings. */
  get heads(): { readonly from: string; readonly head: NotedHead }[] {
    return this.witnesses.flatMap((one) => {
      const head = this.#heads.get(one);
      return head === undefined ? [] : [{ from: `the witness ${one.verifier.name}`, head }];
    });
  }

  /** How large the tree is by the newest head of each; 0 if it has shown none. */
  get sizes(): [witness: string, size: number][] {
    return this.witnesses.map((one) => [one.verifier.name, this.#heads.get(one)?.size ?? 0]);
  }

  get away(): Away {
    return Object.fromEntries([...this.#away].map(([{ verifier }, why]) => [verifier.name, why]));
  }

  /** What came of asking each witness. */
  get comparisons(): HeadComparison[] {
    return this.witnesses.map((one) => {
      const reason = this.#away.get(one) ?? (this.#answered.has(one) ? undefined : "it has not answered yet");
      const size = this.#heads.get(one)?.size;
      return { with: `the witness ${one.verifier.name}`, ...(reason === undefined ? { size: size ?? 0 } : { reason }) };
    });
  }

  /**
   * Asks all of them, unless they were asked within the last minute. Waits up to 2 s for answers. If a witness was away
   * last time or is late, does not wait. Late answers still count.
   * @param log - the keys that may have signed
   */
  async refresh(log: readonly Verifier[]): Promise<void> {
    const [newest] = log;
    if (newest === undefined || this.witnesses.length === 0) return;
    const keys = log.map(({ id }) => id.toString("hex")).join();
    if (performance.now() - this.#askedAtMs > this.#askEveryMs || keys !== this.#askedWith) {
      this.#askedWith = keys;
      this.#askedAtMs = performance.now();
      this.#isAwaited = this.#away.size === 0 && !this.#isLate;
      const asking = Promise.all(this.witnesses.map((one) => this.#take(one, newest.name, log)));
      this.#asking = asking.finally(() => {
        this.#isLate = false;
      });
    }
    if (!this.#isAwaited) return;
    await this.#deadline.of(this.#asking).catch(() => {
      this.#isAwaited = false;
      this.#isLate = true;
    });
  }

  async #take(witness: Witness, origin: string, log: readonly Verifier[]): Promise<void> {
    const why = await this.#read(witness, origin, log).catch(whyNoAnswer);
    if (why !== undefined) this.#away.set(witness, why);
    else {
      this.#away.delete(witness);
      this.#answered.add(witness);
    }
  }

  /** @returns why the answer does not count; undefined if it does, or if the witness shows no heads of this log */
  async #read(witness: Witness, origin: string, log: readonly Verifier[]): Promise<string | undefined> {
    const { status, body } = await askWitness(`${witness.url}${witnessedPath(origin)}`, {});
    if (status === 404) return undefined;
    if (status !== 200) return `it answered ${status}`;
    const head = openTreeHead(body, log);
    if (head === undefined || cosignedAt(body, witness.verifier) === undefined) {
      return "it shows a head that it and this log have not both signed";
    }
    const known = this.#heads.get(witness);
    if (known === undefined || isNewer(head, known)) this.#heads.set(witness, head);
    return undefined;
  }
}

/** An older head that comes later, such as from a cache, takes nothing back. */
function isNewer(head: NotedHead, known: NotedHead): boolean {
  return head.acceptedAt === known.acceptedAt ? head.size > known.size : head.acceptedAt > known.acceptedAt;
}

/** Sends a request to a witness. Its answer is read up to the length of a note, within 5 s; redirects are not followed. */
export async function askWitness(url: string, { signal, ...init }: BunFetchRequestInit) {
  const limit = AbortSignal.timeout(answerWithinMs);
  const response = await guardedFetch(url, {
    ...init,
    redirect: "manual",
    signal: signal ? AbortSignal.any([limit, signal]) : limit,
    ...(url.startsWith("http:") && { proxy: false as never }),
  });
  const body = await readAtMost(response, noteBytesMax);
  return { status: response.status, body: (await body?.text()) ?? "" };
}

/** Why {@link askWitness} failed. The runtime's own words may quote the answer. */
export function whyNoAnswer(error: unknown): string {
  const { name, code } = error as { readonly name?: string; readonly code?: unknown };
  if (name === "TimeoutError") return `it did not answer within ${answerWithinMs / 1000} s`;
  const isCode = typeof code === "string" && /^\w{1,60}$/.test(code);
  return isCode ? `it cannot be asked: ${networkFailureOf(code)}` : "it cannot be asked";
}

const answerWithinMs = 5000;
const deadline = new Deadline(2000, () => new Error("no answer"));
