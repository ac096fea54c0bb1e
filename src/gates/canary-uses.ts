import type { KeyRow } from "../access/authenticate.ts";
import { type AuditEntry, printable } from "../audit/entry.ts";
import type { Exchange } from "./exchange.ts";

/**
 * The uses of canaries that this process sees. No request waits for what is done here, so an answer takes no longer if a
 * canary was used.
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
   * @param passed - whether the limiter let it pass
   */
  noteKey({ requestId, clientAddress, userAgent }: Exchange, row: KeyRow, digest: string, passed: boolean): void {
    this.counts.key += 1;
    this.#known.add(digest);
    if (this.#known.size > knownMax) this.#known.delete(this.#known.values().next().value as string);
    if (!passed) return;
    const { keyId, organizationId, organizationSlug } = row;
    const who = { organizationId, requestId, clientAddress: clientAddress(), userAgent: printable(userAgent) };
    this.#log({ event: "canary", kind: "key", keyId, ...who });
    const organization = organizationSlug ?? "";
    const nowhere = { organization, projectId: "", project: "", environment: null } as const;
    const actor = { type: "key", id: keyId } as const;
    if (this.#waiting.length < waitingMax) {
      this.#waiting.push({ actor, action: "canary.key", names: [keyId], ...nowhere, ...who });
    }
    void this.flush();
  }

  /** Counts a request that the limiter refused before its key was looked up, if its key is a canary. */
  noteLimited(digest: string): void {
    if (this.#known.has(digest)) this.counts.key += 1;
  }

  /** Notes a read of canaries that is on record. */
  noteRead({
    actor,
    canaries,
    organization,
    project,
    environment,
    requestId,
    clientAddress,
    userAgent,
  }: AuditEntry): void {
    this.counts.read += 1;
    const who = actor.type === "person" ? {} : { [`${actor.type}Id`]: actor.id };
    const what = { names: canaries, organization, project, environment };
    this.#log({ event: "canary", kind: "read", ...who, ...what, requestId, clientAddress, userAgent });
  }

  /** Writes the entries that wait. Those that could not be written wait for the next call. */
  async flush(): Promise<void> {
    const entries = this.#waiting;
    this.#waiting = [];
    await this.#record(entries).catch(() => {
      this.#waiting = [...entries, ...this.#waiting].slice(0, waitingMax);
    });
  }
}

const knownMax = 1024;
const waitingMax = 1024;
