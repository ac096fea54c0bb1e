import { type Held, letGo } from "../held.ts";
import type { AuditEntry } from "./entry.ts";

/**
 * Gate 10: the entries durable, then the value. The only way out of a {@link Held}.
 * @throws Fault `unavailable` where the entries could not be written; the value stays in
 */
export async function release<T>(
  journal: { record(entries: readonly AuditEntry[]): Promise<void> },
  entries: readonly AuditEntry[],
  held: Held<T>,
): Promise<T> {
  await journal.record(entries);
  return letGo(held);
}
