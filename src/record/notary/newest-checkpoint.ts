import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { attempt } from "../../core/attempt.ts";
import { Deadline } from "../../core/deadline.ts";
import { Fault } from "../../core/fault.ts";
import { configProblem } from "../../core/problem.ts";
import { conflictOf, HostRefused } from "../../core/refused.ts";
import type { WitnessSetting } from "../../core/settings/settings.ts";
import { shared } from "../../core/shared.ts";
import { writeWholeSync } from "../../core/whole-file.ts";
import { counted } from "../../core/words/text.ts";
import { type Database, warm } from "../../store/database.ts";
import { whyFailed } from "../../store/failures.ts";
import { isSealedHead, isWhole, type LaneEnd } from "../head.ts";
import type { Verifier } from "../note.ts";
import { commandsLane } from "../segment.ts";
import { laneEnd, laneHead } from "../store/lane-end.ts";
import { readNodes, type SignedHead, type TreeEnd, treeEnd } from "../store/tree-end.ts";
import { proveConsistency, verifyConsistency } from "../tree.ts";
import { type NotedHead, openTreeHead } from "../tree-note.ts";
import { firstSigner } from "./signers.ts";
import { type Away, type HeadComparison, WitnessedHeads } from "./witnessed-heads.ts";

type CheckpointOptions = {
  /** Undefined if only the public keys are known. Then the end of people's lane is not verified. */
  readonly auditKey: Uint8Array | undefined;
  /** The keys that may have signed, of this database. */
  readonly signers: (database: Database) => Promise<readonly Verifier[]>;
  /** Where this host keeps the newest note that it has seen; undefined for nowhere. */
  readonly file: string | undefined;
  readonly witnesses?: readonly WitnessSetting[] | undefined;
  /** For how long a running process serves by its last comparison. */
  readonly lateAfterMs?: number;
  /** Monotonic milliseconds. */
  readonly nowMs?: () => number;
};

/** A checkpoint that is known from elsewhere than the database, and where from. */
type Known = { readonly from: string; readonly head: NotedHead; readonly hint?: string };

/**
 * The newest checkpoint of the audit's tree that is known here: from this process's memory, from the file of this host,
 * and from witnesses. A database whose tree does not go on from there was put back, and is not to be served.
 */
export class NewestCheckpoint {
  readonly #options: CheckpointOptions;
  readonly #witnessed: WitnessedHeads;
  #seen: NotedHead | undefined;
  #putBack: string | undefined;
  /** The last entry of people by the sealed head, as look-ups have found it since an operator last accepted what there is. */
  #people = 0;
  #peopleLost: string | undefined;
  readonly #readOnce = shared((readHead: () => Promise<LaneEnd["head"] | undefined>) => readHead());
  /** A number that a row without its seal had lately. */
  #unsealed: number | undefined;
  #acceptedAt = 0;
  #uncompared: string | undefined;
  /** Why the file could not be written the last time, as a sentence. */
  unwritten: string | undefined;
  /** The keys that may have signed, as far as they are known. */
  #signers: readonly Verifier[];
  /** Why the last look did not come about, as a sentence. */
  failure: string | undefined;
  /** The head that the last comparison found. */
  #stored: SignedHead | undefined;
  /** Since when there is an entry of which this process knows, and no signed head. */
  #unsignedAtMs: number | undefined;
  #inFile: HeadComparison | undefined;
  #comparedAtMs = Number.NEGATIVE_INFINITY;
  /** The server that was compared last. */
  #server: string | undefined;
  readonly #lookOnce = shared((database: Database) => this.look(database));

  /** @throws Problem if the file cannot be read, its folder does not exist, or a witness's key is none */
  constructor(options: CheckpointOptions) {
    this.#options = options;
    this.#signers = options.auditKey === undefined ? [] : [firstSigner(options.auditKey)];
    this.#witnessed = new WitnessedHeads(options.witnesses);
    if (options.file !== undefined) requireReadable(options.file);
  }

  /** Why this database is not to be served, as a sentence; undefined if it is. */
  get refusal(): string | undefined {
    return this.putBack ?? this.#uncompared;
  }

  /** Why its tree does not go on from what is known, as a sentence; undefined if it does. */
  get putBack(): string | undefined {
    return this.#putBack ?? this.#peopleLost;
  }

  /** What look-ups ask: what is known of people before their statement is sent, and what it brings counts for. */
  ofLookups(lookups: Database, watch: Database) {
    const readHead = laneHead(lookups, commandsLane);
    return {
      people: () => this.#people,
      /** Whether {@link note} would take this at once, as nothing new. */
      isCurrent: (found: { readonly people: number; readonly server: string }) =>
        found.people === this.#people && (this.#server === undefined || found.server === this.#server),
      note: async (found: { readonly people: number; readonly server: string }, before: number) => {
        await this.notePeople(found.people, before, readHead);
        await this.#requireCompared(found.server, watch);
      },
    };
  }

  /**
   * Takes the last entry of people, as a statement brought it that was sent when `before` was known. Another number than
   * that counts if the row that has it is sealed. If it is a smaller one, a failover has lost what people did, such as
   * revoke a key, and this refuses until an operator accepts it.
   */
  async notePeople(seq: number, before: number, readHead: () => Promise<LaneEnd["head"] | undefined>): Promise<void> {
    const { auditKey } = this.#options;
    if (seq === before || seq === this.#unsealed || auditKey === undefined) return;
    const head = await this.#readOnce(readHead);
    // Less is known than when it was sent: an operator accepted what there is meanwhile.
    if (before > this.#people) return;
    if (head == null || !isSealedHead(auditKey, head)) this.#unsealed = seq;
    else if (head.seq >= before) this.#people = Math.max(this.#people, head.seq);
    else
      this.#peopleLost ??= `The database was put back to an earlier state: what people did ends with entry ${head.seq}, and this process has seen entry ${before}. ${advice}`;
  }

  /** Whether a file or a witness is set, and the last comparison with it is too old to serve by. */
  get isUncompared(): boolean {
    return this.#uncompared !== undefined;
  }

  /** Milliseconds since the database was last compared with what is known; infinite before the first time. */
  get ageMs(): number {
    return this.#nowMs() - this.#comparedAtMs;
  }

  /** Takes note of an entry that was sent to the database this long ago, and is stored now. */
  noteEntry(agoMs = 0): void {
    this.#unsignedAtMs ??= this.#nowMs() - agoMs;
  }

  /** The age of the oldest entry of which this process knows, and no signed head: milliseconds, 0 if there is none. */
  get unsignedMs(): number {
    return this.#unsignedAtMs === undefined ? 0 : Math.max(0, this.#nowMs() - this.#unsignedAtMs);
  }

  /** That no notary signs, as a sentence; undefined as long as it may only be late. */
  get unsigned(): string | undefined {
    return this.unsignedMs > unsignedMaxMs ? unsignedWords(this.#stored?.at) : undefined;
  }

  /** How large the tree is by the newest head that is stored. */
  get signedSize(): number {
    return this.#stored?.size ?? 0;
  }

  /** How large it is by the newest head that each witness has shown; 0 if it has shown none. */
  get witnessedSizes(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#witnessed.sizes);
  }

  /** What the last look compared with the database, of all that is set here. */
  get comparisons(): readonly HeadComparison[] {
    const all = [...(this.#inFile ? [this.#inFile] : []), ...this.#witnessed.comparisons];
    return this.failure === undefined ? all : all.map((one) => ({ with: one.with, reason: this.failure as string }));
  }

  /** The verifier keys of the witnesses. */
  get witnesses(): readonly string[] {
    return this.#witnessed.witnesses.map(({ key }) => key);
  }

  /** Which witnesses did not say what they remember. */
  get away(): Away {
    return this.#witnessed.away;
  }

  /**
   * Compares the database with what is known. If it goes on from there, its newest checkpoint is known from then on.
   * @returns where the tree of the database ends, and what was known before. `acceptedAt`: when an operator last accepted
   *   that the database was put back, by any head that is known; 0 if never. `isPart`: whether only a part of the database
   *   was put back: its tree is newer than what people changed
   * @throws if the database does not answer: then nothing changes
   */
  async compare(database: Database, mayWrite = true) {
    // Witnesses are asked before the database, and with keys that need none: it may be what keeps them from being asked.
    await this.#witnessed.refresh(this.#signers);
    await warm(database); // fails on a standby, which may lack the newest checkpoint
    const signers = await this.#options.signers(database);
    this.#signers = signers;
    await this.#witnessed.refresh(signers);
    // What is known is read before the database, which may go on at any moment.
    const seen = this.#seen;
    const file = this.#readFile();
    const kept = file === undefined ? undefined : openTreeHead(file, signers);
    const from = `the file ${this.#options.file}`;
    if (kept) this.#inFile = { with: from, size: kept.size };
    else if (this.#options.file) this.#inFile = { with: from, reason: "it has no checkpoint of this audit yet" };
    const known: Known[] = [
      ...(seen ? [{ from: "this process", head: seen }] : []),
      ...(kept ? [{ from, head: kept }] : []),
      ...this.#witnessed.heads.map((one) => ({ ...one, hint: byCopy })),
    ];
    const end = await treeEnd(database);
    const opened = end.head && openTreeHead(end.head.note, signers);
    const isOpened = opened?.size === end.head?.size && end.head?.root.equals(opened?.root ?? Buffer.alloc(0));
    const signed = isOpened ? opened : undefined;
    const acceptedAt = Math.max(...[signed, ...known.map(({ head }) => head)].map((head) => head?.acceptedAt ?? 0));
    const part = await this.#partPutBack(database, end, signed?.commands ?? 0);
    const compared = { ...end, signed, acceptedAt, isPart: part !== undefined };
    const refusal =
      file !== undefined && kept === undefined
        ? `The file ${this.#options.file} has a checkpoint that no notary of this database signed. ${advice}`
        : ((await judge(database, end, signed, known)) ?? part);
    // A late answer must not take the place of what was seen since.
    if (this.#seen !== seen) return compared;
    if (signed !== undefined) this.#accept(signed);
    this.#putBack = refusal;
    this.#uncompared = undefined;
    this.#unsealed = undefined;
    this.#comparedAtMs = this.#nowMs();
    this.#server = end.server;
    this.#noteSigned(end, signed);
    if (refusal === undefined && signed !== undefined && end.head !== undefined) {
      this.#seen = signed;
      // If another process wrote the file since, it may be newer.
      if (mayWrite && file !== end.head.note && file === this.#readFile()) this.#writeFile(end.head.note);
    }
    return compared;
  }

  /**
   * Why what people changed is older than the tree; undefined if it is not. The end of their lane is sealed, and the
   * signed head says what it was at least.
   * @param known - the last entry of their lane that the tree has
   */
  async #partPutBack(database: Database, { commands }: TreeEnd, known: number): Promise<string | undefined> {
    const { auditKey, file } = this.#options;
    const last = commands?.seq ?? 0;
    if (last < known) {
      return `A part of the database was put back: the tree has entry ${known} of commands, and the newest one is ${last}. ${whole}`;
    }
    if (known === 0 || auditKey === undefined || (file === undefined && this.witnesses.length === 0)) return undefined;
    // A server's role on PostgreSQL cannot read the lane itself.
    const isFit =
      database.dialect === "sqlite"
        ? isWhole(auditKey, await laneEnd(database, commandsLane))
        : isSealedHead(auditKey, commands);
    return isFit ? undefined : `A part of the database was put back or changed: the row of audit_heads. ${whole}`;
  }

  /** A new head has all but the newest entries, and says how far those of people are in it. */
  #noteSigned({ head, commands }: TreeEnd, signed: NotedHead | undefined): void {
    if (head?.note !== this.#stored?.note) this.#unsignedAtMs = undefined;
    this.#stored = head;
    if ((commands?.seq ?? 0) > (signed?.commands ?? 0)) this.noteEntry();
  }

  /** Once an operator has accepted what there is, what people did before that may be lost. */
  #accept({ acceptedAt }: NotedHead): void {
    if (acceptedAt <= this.#acceptedAt) return;
    this.#acceptedAt = acceptedAt;
    this.#people = 0;
    this.#peopleLost = undefined;
  }

  /** Takes a checkpoint that was signed in this process, whatever was known before. */
  take(head: NotedHead, note: string): void {
    this.#accept(head);
    this.#seen = head;
    this.#putBack = undefined;
    this.#uncompared = undefined;
    this.#writeFile(note);
  }

  /**
   * Compares again if the last time was over 10 s ago, and refuses a database that was put back.
   * @throws HostRefused `unavailable`
   */
  async requireServed(database: Database): Promise<void> {
    if (this.ageMs > compareEveryMs) await this.look(database);
    this.requireGoingOn();
  }

  /**
   * Compares if this is another server than before, such as after a failover: until then nothing that it says counts.
   * @param server - has answered now
   * @throws Fault `unavailable` if it could not be compared
   */
  async #requireCompared(server: string, database: Database): Promise<void> {
    const before = this.#server;
    if (before === undefined || before === server) return;
    await this.#lookOnce(database);
    if (this.#server === server) return;
    this.#uncompared ??= `Another database server answers, and cannot be compared with what was seen of the one before. ${this.failure ?? ""}`;
    throw new Fault("unavailable", this.#uncompared);
  }

  /** @throws HostRefused `unavailable` if the database did not go on from what is known, when that was compared last */
  requireGoingOn(): void {
    if (this.refusal !== undefined) throw new HostRefused("unavailable", this.refusal, { forPersons });
  }

  /**
   * Compares, and does not throw if the database does not answer: reading from it fails anyway. But if a file or a witness
   * is set, a failed comparison is a refusal: the first one at once, a later one after a minute.
   * @param mayWrite - whether the file gets a newer head: it then belongs to the account of this process
   * @returns whether it answered
   */
  async look(database: Database, mayWrite = true): Promise<boolean> {
    try {
      await deadline.of(this.compare(database, mayWrite));
      this.failure = undefined;
      return true;
    } catch (error) {
      this.failure = whyFailed(error);
      const { file } = this.#options;
      if (file !== undefined) this.#inFile ??= { with: `the file ${file}` };
      const isSet = file !== undefined || this.witnesses.length > 0;
      if (isSet && this.ageMs > (this.#options.lateAfterMs ?? minuteMs)) {
        this.#uncompared = `The database cannot be compared with what this host and its witnesses have seen of it. ${this.failure}`;
      }
      return false;
    }
  }

  #nowMs(): number {
    return this.#options.nowMs?.() ?? performance.now();
  }

  #readFile(): string | undefined {
    const { file } = this.#options;
    return file === undefined ? undefined : attempt(() => readFileSync(file, "utf8"));
  }

  #writeFile(note: string): void {
    const { file } = this.#options;
    if (file === undefined) return;
    try {
      writeWholeSync("checkpoint", file, true, Buffer.from(note));
      this.unwritten = undefined;
    } catch (error) {
      this.unwritten = (error as Error).message;
    }
  }
}

/** Why the database is not to be served; undefined if it goes on from all that is known. */
async function judge(database: Database, { size }: TreeEnd, signed: NotedHead | undefined, known: readonly Known[]) {
  for (const one of known) {
    const why = await whyPutBack(database, one, signed);
    const words = `The database was put back to an earlier state: ${why} ${one.hint ?? ""}`.trimEnd();
    if (why !== undefined) return `${words} ${advice}`;
  }
  if (known.length > 0 && size !== (signed?.size ?? 0)) return `The tree does not end with its newest head. ${whole}`;
  return undefined;
}

function requireReadable(file: string): void {
  try {
    readFileSync(file);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" && statSync(dirname(file), { throwIfNoEntry: false })?.isDirectory()) return;
    throw configProblem(`KEYHOLE_CHECKPOINT_FILE: ${file} cannot be read (${code}).`);
  }
}

/** Why the stored tree does not go on from a known head; undefined if it does, or if its loss was accepted. */
async function whyPutBack(database: Database, { from, head }: Known, stored: NotedHead | undefined) {
  if (stored === undefined)
    return `it has no signed checkpoint, and ${from} has seen one of ${counted(head.size, "leaf", "leaves")}.`;
  if (stored.acceptedAt > head.acceptedAt) return undefined;
  if (stored.acceptedAt < head.acceptedAt || stored.size < head.size) {
    return `its tree has ${counted(stored.size, "leaf", "leaves")}, and ${from} has seen ${counted(head.size, "leaf", "leaves")}.`;
  }
  if (head.size === 0) return undefined;
  try {
    const proof = await proveConsistency(head.size, stored.size, (nodes) => readNodes(database, nodes));
    if (verifyConsistency(head, stored, proof)) return undefined;
  } catch (error) {
    return conflictOf(error);
  }
  return `its tree is another one than ${from} has seen.`;
}

/** That entries are in no signed head. @param at - when the newest one was signed; undefined if there is none */
export function unsignedWords(at: number | undefined): string {
  const newest = at === undefined ? "there is none" : `the newest is of ${new Date(at).toISOString()}`;
  return `Entries that are older than ten minutes are in no signed head; ${newest}. Without a notary nobody notices what is put back.`;
}

/** So long may entries wait for a signed head. */
export const unsignedMaxMs = 600_000;
const whole = "Restore all of it from one backup.";
const byCopy = "Or a copy of it was started with the same KEYHOLE_WITNESS, and had more signed.";
const compareEveryMs = 10_000;
const minuteMs = 60_000;
const deadline = new Deadline(5000, () => new Fault("unavailable", "the tree was not compared within 5 s"));
const forPersons =
  "The database was put back to an earlier state, or cannot be compared with what was seen of it: ask an operator, who sees more with `keyhole audit verify`.";
const advice = "If that was meant, an operator accepts it with `keyhole audit accept-restore`.";
