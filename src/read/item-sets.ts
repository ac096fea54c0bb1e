import { Fault } from "../fault.ts";
import { type ItemEntry, type ItemSetPlace, itemListing, openItemSet } from "../seal/item-set.ts";
import type { DataKeys } from "./source.ts";

/**
 * The set seal of accounts and files: that these are all there are, each as it was last written. What reads all of an
 * environment holds it against the seal of the same snapshot; what asks for some by name does not.
 *
 * @param sealed - the seal's row, or nothing where there is none
 * @throws Fault `decryption_failed`
 */
export function holdAgainstItemSet(
  dataKeys: DataKeys,
  place: ItemSetPlace,
  sealed: Uint8Array | null | undefined,
  entries: readonly ItemEntry[],
): void {
  const { projectId, kind, environment } = place;
  if (!sealed) throw new Fault("decryption_failed", `the set of ${kind} of ${projectId} ${environment} is gone`);
  try {
    openItemSet((generation) => dataKeys.of(generation), place, itemListing(entries), sealed);
  } catch (error) {
    const rows = `the ${kind} of ${projectId} ${environment} are not those of their set`;
    throw error instanceof Fault ? new Fault(error.code, rows) : error;
  }
}
