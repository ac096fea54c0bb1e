import type { FoundSet, StoredSet } from "../access/authenticate.ts";
import type { Entry } from "./kind.ts";
import { Remembered } from "./remembered.ts";
import type { ReadProject, VerifiedSet } from "./verified-set.ts";

/**
 * Verified sets, by what the lookup that judged the key has just read: the version of their row or, on SQLite, the row
 * itself. What was opened is never kept. The oldest goes first.
 */
export class RememberedSets {
  readonly #sets: Remembered<VerifiedSet<Entry>>;

  constructor(bytesMax: number = 64 * 1024 * 1024) {
    this.#sets = new Remembered(bytesMax);
  }

  /** The set, if it is remembered as exactly this row, for this organization and slug. */
  find(
    { id, organizationId, slug }: ReadProject,
    kind: string,
    { environment, rowVersion, row }: FoundSet,
    needsValues: boolean,
  ): VerifiedSet<Entry> | undefined {
    const set = this.#sets.get(`${id} ${kind} ${environment}`);
    if (set === undefined) return undefined;
    const { project, stored } = set;
    const isCurrent = row === null ? stored.rowVersion === rowVersion : isSame(stored, row, needsValues);
    // SQL may have given the project to another organization, or its slug to another project.
    const isOwned = project.organizationId === organizationId && project.slug === slug;
    return isCurrent && isOwned && (!needsValues || stored.sealed !== null) ? set : undefined;
  }

  remember(set: VerifiedSet<Entry>, kind: string): void {
    this.#sets.set(`${set.project.id} ${kind} ${set.environment}`, set, sizeOf(set));
  }
}

/** Whether two rows are the same, byte for byte; their values too if these are needed. */
function isSame(a: StoredSet, b: StoredSet, needsValues: boolean): boolean {
  return (
    a.version === b.version &&
    a.generation === b.generation &&
    a.listing === b.listing &&
    a.rootId === b.rootId &&
    a.sealedBytes === b.sealedBytes &&
    equal(a.listingMac, b.listingMac) &&
    equal(a.wrapped, b.wrapped) &&
    (!needsValues || equal(a.sealed, b.sealed))
  );
}

function equal(a: Buffer | null, b: Buffer | null): boolean {
  return a === b || (a !== null && b !== null && a.equals(b));
}

/** Sealed bytes; the listing as text, as entries, as names, as answers and as audit entries spell it; and the rest. */
function sizeOf({ stored, listing }: VerifiedSet<Entry>): number {
  return (stored.sealed?.length ?? 0) + 8 * listing.length + 2048;
}
