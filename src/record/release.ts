import { type Body, type Held, type Render, renderHeld } from "../core/held.ts";
import type { JobRead } from "../core/names.ts";
import { receiptHeader } from "../core/receipt.ts";
import type { AuditEntry } from "./entry.ts";

/**
 * Gate 10: renders a value, puts its entries on record, and only then returns the body, with a header that names them.
 * The only way out of a {@link Held}. A render that refuses leaves no entry, and too few or too many entries are a bug
 * that leaves no body.
 * @param read - is counted with the entries
 * @throws Overused if its job had its answers; Fault `unavailable` if the entries could not be written, or what the render
 *   throws
 */
export async function release<T>(
  journal: { record(entries: readonly AuditEntry[], read?: JobRead): Promise<string | undefined> },
  entries: readonly AuditEntry[],
  held: Held<T>,
  render: Render<T>,
  read?: JobRead,
): Promise<Body> {
  const body = renderHeld(held, render, entries.length);
  const receipt = await journal.record(entries, read);
  return receipt === undefined ? body : { ...body, headers: { ...body.headers, [receiptHeader]: receipt } };
}
