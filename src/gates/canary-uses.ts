import type { KeyRow } from "../access/authenticate.ts";
import { type AuditEntry, printable } from "../audit/entry.ts";
import type { Exchange } from "./exchange.ts";

/**
 * The uses of canaries that this process sees. A request only notes its use: the log and the journal get it from
 * {@link CanaryUses.flush}, at most a second later. Done at once, that work made the answer to a canary measurably later
 * than the answer to any other key, and the answer to the request behind it, too.
 *
 * An entry is written for each request with a canary key that the limiter of unrecognized keys lets pass: ten at once,
 * and ten a minute. So a flood neither fills the journal nor slows others. The counts have all of them.
 */
export class CanaryUses {
  /** Requests with a canary key, and reads of canaries. */
  readonly counts = { key: 0, read: 0 };
  readonly #record: (entries: readonly AuditEntry[]) => Promise<unknown>;
  readonly #log: (event: Readonly<Record<string, unknown>>) => void;
  /** The digests of canary keys, oldest first. Each was found in the database, so strangers cannot fill it. */
  readonly #known = new Set<string>();
  #noted: (KeyUse | ReadUse)[] = [];
  #waiting: AuditEntry[] = [];

  /** @param record - puts entries on record */
  constructor(
    record: (entries: readonly AuditEntry[]) => Promise<unknown>,
    log: (event: Readonly<Record<string, unknown>>) => void,
  ) {
    this.#record = record;
    this.#log = log;
  }

  /**
   * Notes a request with a canary key.
   * @param clientAddress - the socket says it only as long as the request lasts
   * @param passed - whether the limiter let it pass
   */
  noteKey(
    { requestId, userAgent }: Pick<Exchange, "requestId" | "userAgent">,
    clientAddress: string,
    { keyId, organizationId, organizationSlug }: KeyRow,
    digest: string,
    passed: boolean,
  ): void {
    this.counts.key += 1;
    this.#known.add(digest);
    if (this.#known.size > knownMax) this.#known.delete(this.#known.values().next().value as string);
    if (!passed || this.#noted.length >= waitingMax) return;
    this.#noted.push({ keyId, organizationId, organizationSlug, requestId, clientAddress, userAgent });
  }

  /** Counts a request that the limiter refused before its key was looked up, if its key is a canary. */
  noteLimited(digest: string): void {
    if (this.#known.has(digest)) this.counts.key += 1;
  }

  /** Notes a read of canaries that is on record. */
  noteRead(entry: AuditEntry): void {
    this.counts.read += 1;
    if (this.#noted.length < waitingMax) this.#noted.push(entry);
  }

  /** Logs what was noted, and writes the entries that wait. Those that could not be written wait for the next call. */
  async flush(): Promise<void> {
    for (const use of this.#noted.splice(0)) {
      if ("actor" in use) this.#log(readEvent(use));
      else this.#take(use);
    }
    const entries = this.#waiting;
    this.#waiting = [];
    await this.#record(entries).catch(() => {
      this.#waiting = [...entries, ...this.#waiting].slice(0, waitingMax);
    });
  }

  #take({ keyId, organizationSlug, userAgent, ...rest }: KeyUse): void {
    const who = { ...rest, userAgent: printable(userAgent) };
    this.#log({ event: "canary", kind: "key", keyId, ...who });
    const organization = organizationSlug ?? "";
    const nowhere = { organization, projectId: "", project: "", environment: null } as const;
    const actor = { type: "key", id: keyId } as const;
    if (this.#waiting.length < waitingMax) {
      this.#waiting.push({ actor, action: "canary.key", names: [keyId], ...nowhere, ...who });
    }
  }
}

/** A request with a canary key. */
type KeyUse = Pick<KeyRow, "keyId" | "organizationId" | "organizationSlug"> & {
  readonly requestId: string;
  readonly clientAddress: string;
  readonly userAgent: string | null;
};
/** A read of canaries, as it is on record. */
type ReadUse = AuditEntry;

function readEvent({ actor, canaries, organization, project, environment, ...rest }: ReadUse) {
  const { requestId, clientAddress, userAgent } = rest;
  const who = actor.type === "person" ? {} : { [`${actor.type}Id`]: actor.id };
  const what = { names: canaries, organization, project, environment };
  return { event: "canary", kind: "read", ...who, ...what, requestId, clientAddress, userAgent };
}

const knownMax = 1024;
const waitingMax = 1024;
