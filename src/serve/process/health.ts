import { Deadline } from "../../core/deadline.ts";
import type { Log } from "../../core/log.ts";
import { systemKeyRows } from "../../installation/system-keys.ts";
import type { RunningNotary } from "../../record/notary/link.ts";
import type { NewestCheckpoint } from "../../record/notary/newest-checkpoint.ts";
import type { Away } from "../../record/notary/witnessed-heads.ts";
import type { Keyring } from "../../seal/keyring.ts";
import { type Database, isStandby, warm } from "../../store/database.ts";

/** Whether this server should get requests, and which checks passed. */
export type Readiness = {
  readonly ready: boolean;
  readonly draining: boolean;
  readonly checks: Readonly<Record<string, boolean>>;
  /** Witnesses that are away. Requests do not need them. */
  readonly away: Away;
  /** Why the database is not used, in a sentence, if that is known. */
  readonly reason?: string | undefined;
};

/**
 * Runs all checks at once. A check fails if it rejects, resolves to false or takes longer than 2.5 s.
 * @param told - checks that requests do not need: if one fails, that is only said
 */
export function watchReadiness(
  checks: Readonly<Record<string, () => Promise<boolean>>>,
  draining: () => boolean,
  log: Log,
  away: () => Away = () => ({}),
  reason: () => string | undefined = () => undefined,
  told: readonly string[] = [],
): () => Promise<Readiness> {
  const deadline = new Deadline(checkDeadlineMs, () => new Error("no answer"));
  let last = "";
  return async () => {
    const entries = Object.entries(checks).map(async ([name, check]) => {
      return [name, await deadline.of(check()).catch(() => false)] as const;
    });
    const results = Object.fromEntries(await Promise.all(entries));
    const failed = failedOf(results);
    const ready = !draining() && failed.every((name) => told.includes(name));
    if (failed.join() !== last) log({ event: "readiness", ready, failed, reason: reason() });
    last = failed.join();
    return { ready, draining: draining(), checks: results, away: away(), reason: reason() };
  };
}

/** A check of servers that requests do not need: without its notary, a server that is asked must go on to answer. */
export const notaryCheck = "notary";

/** Whether one of the last three rounds, one a minute, was complete. @param now - epoch milliseconds */
export function isInTime({ completeAt }: Pick<RunningNotary, "completeAt">, now = Date.now()): boolean {
  return now - completeAt < 200_000;
}

/** The checks of a server. */
export function readinessChecks(needs: {
  readonly database: Database;
  readonly lookups: Database;
  readonly keyring: Keyring;
  readonly journal: { check(): Promise<boolean> };
  readonly checkpoint: Pick<NewestCheckpoint, "putBack" | "isUncompared" | "unsigned">;
  /** That of the embedded database. */
  readonly notary?: (() => RunningNotary | undefined) | undefined;
  readonly isMigrated: (database: Database) => Promise<boolean>;
}) {
  const { database, lookups, keyring, journal, checkpoint, isMigrated, notary } = needs;
  return {
    // A standby passes this check and fails `primary`.
    database: () => Promise.all([warm(lookups), warm(database)]).then(yes, isStandby),
    primary: () => warm(database).then(yes),
    migrations: () => isMigrated(database),
    root_key: async () => {
      const rows = await systemKeyRows(database);
      for (const row of rows.values()) keyring.unwrapSystemKey(row.purpose, row.rootId, row.wrapped).fill(0);
      return rows.size > 0;
    },
    audit: () => journal.check(),
    /** Fails while the database is one that was put back. */
    history: async () => checkpoint.putBack === undefined,
    /** Fails while it cannot be compared with the file or the witnesses that are set. */
    comparison: async () => !checkpoint.isUncompared,
    /** Fails while entries wait for a signed head for too long. */
    [notaryCheck]: async () => {
      const own = notary?.();
      return checkpoint.unsigned === undefined && (own === undefined || isInTime(own));
    },
  };
}

const yes = () => true;
const checkDeadlineMs = 2500;
export function failedOf(checks: Readiness["checks"]): string[] {
  return Object.keys(checks).filter((name) => !checks[name]);
}
