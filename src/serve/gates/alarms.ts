import { BoundedMap } from "../../core/bounded-map.ts";
import type { Log } from "../../core/log.ts";
import {
  type Actor,
  type AuditEntry,
  canaryActions,
  elsewhereAction,
  overuseAction,
  printable,
} from "../../record/entry.ts";
import type { AlarmingRefusal, KeyRow } from "../access/authenticate.ts";
import type { Exchange } from "./exchange.ts";

/**
 * The alarms of this process: uses of canaries, keys from elsewhere, and jobs that ask for more answers than their trust
 * allows. A request only notes one: {@link Alarms.flush} logs and records it, at most a second later. Done at once, that
 * work made the answer to a canary measurably slower than the answer to any other key, and the next request's answer, too.
 *
 * An entry is written for each refused request that the limiter of unrecognized keys lets pass: ten at once for each
 * text, and ten a minute. So a flood neither fills the journal nor slows others. The counts have all of them.
 */
export class Alarms {
  /** Requests with a canary key, and reads of canaries. */
  readonly canaries = { key: 0, read: 0 };
  /** Requests with a good key or token, from where it may not be used. */
  elsewhere = 0;
  /** Requests of jobs that had all their answers. */
  overuses = 0;
  readonly #record: (entries: readonly AuditEntry[]) => Promise<unknown>;
  readonly #log: Log;
  /** Digests of alarming keys, oldest first. Each was found in the database, so strangers cannot fill it. */
  readonly #known = new BoundedMap<AlarmingRefusal["kind"]>(knownMax);
  #noted: (KeyUse | AuditEntry)[] = [];
  #waiting: AuditEntry[] = [];

  /** @param record - puts entries on record */
  constructor(record: (entries: readonly AuditEntry[]) => Promise<unknown>, log: Log) {
    this.#record = record;
    this.#log = log;
  }

  /**
   * Notes a request with a canary key, or with a key from elsewhere.
   * @param clientAddress - the socket says it only as long as the request lasts
   * @param passed - whether the limiter let it pass
   */
  noteKey(
    { requestId, userAgent }: Pick<Exchange, "requestId" | "userAgent">,
    clientAddress: string,
    { kind, row }: AlarmingRefusal,
    digest: string,
    passed: boolean,
  ): void {
    this.#count(kind);
    this.#known.set(digest, kind);
    if (!passed || this.#noted.length >= waitingMax) return;
    const { keyId, trust, from, organizationId, organizationSlug } = row;
    const by = { type: trust === null ? "key" : "trust", id: keyId } as const;
    this.#noted.push({ kind, by, from, organizationId, organizationSlug, requestId, clientAddress, userAgent });
  }

  /** Counts a request that the limiter refused before its key was looked up, if its key sounded an alarm before. */
  noteLimited(digest: string): void {
    const kind = this.#known.get(digest);
    if (kind !== undefined) this.#count(kind);
  }

  #count(kind: AlarmingRefusal["kind"]): void {
    if (kind === "canary") this.canaries.key += 1;
    else this.elsewhere += 1;
  }

  /** Notes a read of canaries that is on record. */
  noteRead(entry: AuditEntry): void {
    this.canaries.read += 1;
    if (this.#noted.length < waitingMax) this.#noted.push(entry);
  }

  /** Notes a request of a job that had all its answers. @param passed - whether the limiter let it pass */
  noteOveruse(entry: AuditEntry, passed: boolean): void {
    this.overuses += 1;
    if (passed && this.#noted.length < waitingMax) this.#noted.push(entry);
  }

  /** Logs what was noted, and writes the entries that wait. Those that could not be written wait for the next call. */
  async flush(): Promise<void> {
    for (const use of this.#noted.splice(0)) {
      if (!("actor" in use)) this.#take(use);
      else {
        this.#log(eventOf(use));
        if (use.action === overuseAction) this.#wait(use);
      }
    }
    const entries = this.#waiting;
    this.#waiting = [];
    await this.#record(entries).catch(() => {
      this.#waiting = [...entries, ...this.#waiting].slice(0, waitingMax);
    });
  }

  #take({ kind, by: actor, from, organizationSlug, userAgent, ...rest }: KeyUse): void {
    const who = { ...rest, userAgent: printable(userAgent) };
    const isCanary = kind === "canary";
    const what = isCanary ? { event: "canary", kind: "key" } : { event: "elsewhere", from };
    this.#log({ ...what, [`${actor.type}Id`]: actor.id, ...who });
    const organization = organizationSlug ?? "";
    const nowhere = { organization, projectId: "", project: "", environment: null } as const;
    const action = isCanary ? canaryActions[0] : elsewhereAction;
    this.#wait({ actor, action, names: [actor.id], ...nowhere, ...who });
  }

  #wait(entry: AuditEntry): void {
    if (this.#waiting.length < waitingMax) this.#waiting.push(entry);
  }
}

/** A request with a key, or a token, that is refused with an alarm. */
type KeyUse = Pick<KeyRow, "from" | "organizationId" | "organizationSlug"> & {
  readonly kind: AlarmingRefusal["kind"];
  readonly by: Extract<Actor, { id: string }>;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly userAgent: string | null;
};

/** Of a read of canaries, or of a job that had its answers. */
function eventOf({ actor, action, canaries, organization, project, environment, ...rest }: AuditEntry) {
  const { requestId, clientAddress, userAgent, names, token } = rest;
  const who = actor.type === "person" ? {} : { [`${actor.type}Id`]: actor.id };
  const what =
    action === overuseAction
      ? { event: "trust_overused", ...who, job: names[0], ...token }
      : { event: "canary", kind: "read", ...who, names: canaries };
  return { ...what, organization, project, environment, requestId, clientAddress, userAgent };
}

const knownMax = 1024;
const waitingMax = 1024;
