import type { Log } from "../../core/log.ts";
import type { WitnessSetting } from "../../core/settings/settings.ts";
import type { Database } from "../../store/database.ts";
import { cosignedAt } from "../note.ts";
import { addCosignature, newestCosigned } from "../store/tree.ts";
import { readNodes, type SignedHead, treeEnd } from "../store/tree-end.ts";
import { proveConsistency } from "../tree.ts";
import { encodeSubmission, submissionPath } from "../witness.ts";
import { type Away, askWitness, openWitnesses, type Witness, whyNoAnswer } from "./witnessed-heads.ts";

/**
 * Shows each witness the newest signed head, with the proof that it goes on from what the witness signed before, and
 * keeps its signature. One that does not sign is asked again in the next round.
 */
export class Witnesses {
  readonly #database: Database;
  readonly #witnesses: readonly Witness[];
  readonly #log: Log;
  /** Why each one that is away did not sign, by its name. */
  readonly #away = new Map<string, string>();
  readonly #end = new AbortController();

  /** @throws Problem if a key is not that of a witness */
  constructor(database: Database, settings: readonly WitnessSetting[] | undefined, log: Log) {
    this.#database = database;
    this.#witnesses = openWitnesses(settings);
    this.#log = log;
  }

  /** Which have not signed the newest head. */
  get away(): Away {
    return Object.fromEntries(this.#away);
  }

  /** Asks all at once. Takes 10 s at most, and never rejects because of a witness. */
  async ask(): Promise<void> {
    if (this.#witnesses.length === 0) return;
    const { head } = await treeEnd(this.#database);
    if (head === undefined) return;
    const known = await newestCosigned(this.#database, head.size);
    await Promise.all(
      this.#witnesses.map(async (witness) => {
        const { name } = witness.verifier;
        const why = await this.#sign(witness, head, known.get(witness.key) ?? 0).catch(whyNoAnswer);
        if (this.#end.signal.aborted) return;
        if (why !== this.#away.get(name) && why !== undefined) {
          this.#log({ event: "witness_away", witness: name, reason: why });
        }
        if (why === undefined) this.#away.delete(name);
        else this.#away.set(name, why);
      }),
    );
  }

  /** Waits for no answer any more. */
  stop(): void {
    this.#end.abort();
  }

  /** @param known - the size that it signed last @returns why there is no signature; undefined if there is one */
  async #sign({ url, key, verifier }: Witness, head: SignedHead, known: number): Promise<string | undefined> {
    if (known === head.size) return undefined;
    let answer = await this.#submit(url, known, head);
    const asked = answer.status === 409 && /^(0|[1-9]\d{0,15})\n$/.test(answer.body) ? Number(answer.body) : undefined;
    if (asked !== undefined && asked > head.size) {
      return `it has signed ${asked} segments, and the newest head has ${head.size}`;
    }
    if (asked !== undefined && asked !== known) answer = await this.#submit(url, asked, head);
    if (answer.status === 409 && asked === head.size) return `it has signed another tree of ${asked} leaves`;
    if (answer.status !== 200) return `it answered ${answer.status}`;
    const lines = answer.body.split("\n").map((line) => `${line}\n`);
    const signed = lines.map((line) => ({ line, at: cosignedAt(`${head.note}${line}`, verifier) }));
    const found = signed.find(({ at }) => at !== undefined);
    if (found?.at === undefined) return "its answer has no signature by its key";
    await addCosignature(this.#database, { size: head.size, witness: key, at: found.at, line: found.line });
    this.#log({ event: "cosigned", witness: verifier.name, size: head.size });
    return undefined;
  }

  async #submit(url: string, oldSize: number, { size, note }: SignedHead) {
    const read = (nodes: Parameters<typeof readNodes>[1]) => readNodes(this.#database, nodes);
    const proof = oldSize === 0 || oldSize === size ? [] : await proveConsistency(oldSize, size, read);
    const body = encodeSubmission(oldSize, proof, note);
    return askWitness(`${url}${submissionPath}`, { method: "POST", body, signal: this.#end.signal });
  }
}
