import { cosignedAt, parseWitness, type Verifier } from "../audit/note.ts";
import { proveConsistency } from "../audit/tree.ts";
import { encodeSubmission, submissionBytesMax, submissionPath } from "../audit/witness.ts";
import { guardedFetch } from "../core/guarded-fetch.ts";
import { readAtMost } from "../core/json-request.ts";
import { configProblem } from "../core/problem.ts";
import type { WitnessSetting } from "../core/settings.ts";
import type { Database } from "../store/database.ts";
import { addCosignature, newestCosigned, readNodes, type SignedHead, treeEnd } from "../store/tree.ts";
import type { Log } from "./log.ts";

/** A witness: where it is, and the key that its signatures count by. */
type Witness = { readonly url: string; readonly key: string; readonly verifier: Verifier };

/**
 * Shows each witness the newest signed head, with the proof that it goes on from what the witness signed before, and
 * keeps its signature. One that does not sign is asked again in the next round.
 */
export class Witnesses {
  readonly #database: Database;
  readonly #witnesses: readonly Witness[];
  readonly #log: Log;
  /** Why each one that is away did not sign, by its key. */
  readonly #away = new Map<string, string>();
  readonly #end = new AbortController();

  /** @throws Problem if a key is not that of a witness */
  constructor(database: Database, settings: readonly WitnessSetting[], log: Log) {
    this.#database = database;
    this.#witnesses = openWitnesses(settings);
    this.#log = log;
  }

  /** How many have not signed the newest head. */
  get away(): number {
    return this.#away.size;
  }

  /** Asks all at once. Takes 10 s at most, and never rejects because of a witness. */
  async ask(): Promise<void> {
    if (this.#witnesses.length === 0) return;
    const { head } = await treeEnd(this.#database);
    if (head === undefined) return;
    await Promise.all(
      this.#witnesses.map(async (witness) => {
        const why = await this.#sign(witness, head).catch(reasonOf);
        if (this.#end.signal.aborted) return;
        if (why !== this.#away.get(witness.key) && why !== undefined) {
          this.#log({ event: "witness_away", witness: witness.verifier.name, reason: why });
        }
        if (why === undefined) this.#away.delete(witness.key);
        else this.#away.set(witness.key, why);
      }),
    );
  }

  /** Waits for no answer any more. */
  stop(): void {
    this.#end.abort();
  }

  /** @returns why there is no signature; undefined if there is one */
  async #sign({ url, key, verifier }: Witness, head: SignedHead): Promise<string | undefined> {
    const database = this.#database;
    const known = (await newestCosigned(database, key, head.size)) ?? 0;
    if (known === head.size) return undefined;
    let answer = await this.#submit(url, known, head);
    const asked = answer.status === 409 && /^(0|[1-9]\d{0,15})\n$/.test(answer.body) ? Number(answer.body) : undefined;
    if (asked !== undefined && asked > head.size) {
      return `it has signed ${asked} segments, and the newest head has ${head.size}`;
    }
    if (asked !== undefined && asked !== known) answer = await this.#submit(url, asked, head);
    if (answer.status !== 200) return `it answered ${answer.status}`;
    const lines = answer.body.split("\n").map((line) => `${line}\n`);
    const signed = lines.map((line) => ({ line, at: cosignedAt(`${head.note}${line}`, verifier) }));
    const found = signed.find(({ at }) => at !== undefined);
    if (found?.at === undefined) return "its answer has no signature by its key";
    await addCosignature(database, { size: head.size, witness: key, at: found.at, line: found.line });
    this.#log({ event: "cosigned", witness: verifier.name, size: head.size });
    return undefined;
  }

  async #submit(url: string, oldSize: number, { size, note }: SignedHead) {
    const read = (nodes: Parameters<typeof readNodes>[1]) => readNodes(this.#database, nodes);
    const proof = oldSize === 0 || oldSize === size ? [] : await proveConsistency(oldSize, size, read);
    const response = await guardedFetch(`${url}${submissionPath}`, {
      method: "POST",
      body: encodeSubmission(oldSize, proof, note),
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(answerWithinMs), this.#end.signal]),
      ...(url.startsWith("http:") && { proxy: false as never }),
    });
    const body = await readAtMost(response, submissionBytesMax);
    return { status: response.status, body: (await body?.text()) ?? "" };
  }
}

/** @throws Problem if a key is not that of a witness */
export function openWitnesses(settings: readonly WitnessSetting[]): Witness[] {
  return settings.map(({ url, key }) => {
    const verifier = parseWitness(key);
    if (verifier === undefined) {
      throw configProblem("KEYHOLE_WITNESS: what is after # must be a witness's verifier key, for Ed25519.");
    }
    return { url: url.replace(/\/$/, ""), key, verifier };
  });
}

/** The runtime's own words may quote the answer. */
function reasonOf(error: unknown): string {
  const { name, code } = error as { readonly name?: string; readonly code?: unknown };
  if (name === "TimeoutError") return `it did not answer within ${answerWithinMs / 1000} s`;
  return typeof code === "string" && /^\w{1,60}$/.test(code) ? `it cannot be asked: ${code}` : "it cannot be asked";
}

const answerWithinMs = 5000;
