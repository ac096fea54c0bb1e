import { Deadline } from "../../src/core/deadline.ts";
import { Fault } from "../../src/core/fault.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { type Append, entriesMax, Journal, type LaneCheckpoint } from "../../src/record/journal.ts";
import { entriesRoom } from "../../src/serve/limit/budget.ts";
import type { World } from "./world.ts";

/** The key of journals that have no installation. */
export const auditKey = new Uint8Array(32).fill(7);

/** An entry to begin with. */
export const entry: AuditEntry = {
  actor: { type: "key", id: "key-1" },
  organizationId: "organization-1",
  organization: "acme",
  projectId: "project-1",
  project: "web",
  environment: "production",
  action: "variables.read",
  names: ["DATABASE_URL", "é🦔"],
  requestId: "request-1",
  clientAddress: "127.0.0.1",
  userAgent: "curl/8",
};

/** A journal with a deadline of 20 s and {@link auditKey}, unless told otherwise. */
export function journalOn(append: Append, options: Partial<ConstructorParameters<typeof Journal>[0]> = {}): Journal {
  const deadline = new Deadline(20_000, () => new Fault("unavailable", "late"));
  const claim = entriesRoom(entriesMax, 20_000);
  return new Journal({ append, auditKey, now: Date.now, checkpoint: () => {}, deadline, claim, ...options });
}

/** Writes batches of entries into a new lane of a world. @param at - their moment, or that of each. @returns its end */
export async function writeLane(
  { installation }: Pick<World, "installation">,
  batches: readonly (readonly AuditEntry[])[],
  at: number | ((batch: number) => number) = Date.now(),
): Promise<LaneCheckpoint> {
  const store = installation.openJournal();
  const ends: LaneCheckpoint[] = [];
  let nowMs = 0;
  const checkpoint = (one: LaneCheckpoint) => ends.push(one);
  const auditKey = installation.systemKeys.audit;
  const journal = journalOn(store.append, { auditKey, now: () => nowMs, checkpoint });
  for (const [n, batch] of batches.entries()) {
    nowMs = typeof at === "number" ? at : at(n);
    await journal.record(batch);
  }
  await journal.close();
  await store.close();
  return ends.at(-1) as LaneCheckpoint;
}
