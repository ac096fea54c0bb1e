import { BoundedMap } from "../../core/bounded-map.ts";
import type { FoundSet, StoredSet } from "../../core/set-rows.ts";
import type { FileContent } from "../../seal/file-content.ts";
import type { ContentEntry } from "./kind.ts";
import type { ReadProject, VerifiedSet } from "./verified-set.ts";

/* Memory of what has been verified, still sealed. Opened values are never kept. */

/** Cache of verified sets. A set is found by its row version or, on SQLite, by comparing the row itself. */
export class RememberedSets {
  readonly #sets: BoundedMap<VerifiedSet>;

  constructor(bytesMax: number = 64 * 1024 * 1024) {
    this.#sets = new BoundedMap(bytesMax, sizeOf);
  }

  /** The set, if it is remembered as exactly this row, for this organization and slug. */
  find(
    { id, organizationId, slug }: ReadProject,
    kind: string,
    { environment, rowVersion, row }: FoundSet,
    needsValues: boolean,
  ): VerifiedSet | undefined {
    const set = this.#sets.get(`${id} ${kind} ${environment}`);
    if (set === undefined) return undefined;
    const { project, stored } = set;
    const isCurrent = row === null ? stored.rowVersion === rowVersion : isSame(stored, row, needsValues);
    // SQL may have given the project to another organization, or its slug to another project.
    const isOwned = project.organizationId === organizationId && project.slug === slug;
    return isCurrent && isOwned && (!needsValues || stored.sealed !== null) ? set : undefined;
  }

  /** Remembers a set, unless it is there with its values and `set` has none. */
  remember(set: VerifiedSet, kind: string): void {
    const { project, stored } = set;
    const row = stored.rowVersion === "" ? stored : null;
    const known = stored.sealed === null ? this.find(project, kind, { ...stored, row }, false) : undefined;
    if (known !== undefined && known.stored.sealed !== null) return;
    this.#sets.set(`${set.project.id} ${kind} ${set.environment}`, set);
  }
}

/**
 * Sealed file contents that have opened once, by the versions of their row and their data key's. SQLite has no row
 * versions, so none of its contents is remembered.
 */
export class RememberedContents {
  readonly #contents = new BoundedMap<RememberedContent>(32 * 1024 * 1024, ({ size }) => size + 1024);

  /** The content of a listed file, if it is remembered as this very row. */
  find(projectId: string, entry: ContentEntry, rowVersion: string): FileContent | undefined {
    const found = this.#contents.get(keyOf(projectId, entry));
    return found?.rowVersion === rowVersion ? found.content : undefined;
  }

  remember(projectId: string, entry: ContentEntry, rowVersion: string, content: FileContent): void {
    this.#contents.set(keyOf(projectId, entry), { rowVersion, content, size: entry.size });
  }
}

type RememberedContent = { readonly rowVersion: string; readonly content: FileContent; readonly size: number };

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
function sizeOf({ stored, listing }: VerifiedSet): number {
  return (stored.sealed?.length ?? 0) + 8 * listing.length + 2048;
}

/**
 * Everything in its associated data. With the same checksum it is the same content, even if a standby that lost
 * writes gives another row the same row version.
 */
function keyOf(projectId: string, { id, size, sha256 }: ContentEntry): string {
  return `${projectId} ${id} ${size} ${sha256}`;
}
