import type { AuditEntry } from "../../src/audit/entry.ts";
import { type Append, Journal } from "../../src/audit/journal.ts";
import { Deadline } from "../../src/core/deadline.ts";
import { Fault } from "../../src/core/fault.ts";

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
  return new Journal({ append, auditKey, now: Date.now, checkpoint: () => {}, deadline, ...options });
}
