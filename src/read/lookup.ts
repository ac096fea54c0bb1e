import type { Caller, FoundSet, StoredSet } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { type MemoryBudget, type Share, smallBytesMax } from "../limit/budget.ts";
import { type Environment, type EnvironmentMask, environmentMask, environmentsOf } from "../names.ts";
import { overheadBytes } from "../seal/envelope.ts";
import type { FileOpener } from "../seal/file-opener.ts";
import type { Keyring } from "../seal/keyring.ts";
import { type Kind, type KindDescriptor, setBytesMax, setItemsMax } from "../seal/kinds.ts";
import type { ContentQueries } from "../store/contents.ts";
import type { ProjectQueries } from "../store/projects.ts";
import type { Authorized, Standing } from "../store/reach.ts";
import { type SetQueries, setsOf } from "../store/sets.ts";
import { type ReadProject, VerifiedSet } from "./verified-set.ts";

/** What reads need from outside: prepared queries, the keys that open what they find, and memory for it. */
export type Source = {
  readonly keyring: Keyring;
  readonly listingKey: Uint8Array;
  readonly projects: ProjectQueries;
  readonly sets: SetQueries;
  readonly contents: ContentQueries;
  readonly opener: FileOpener;
  readonly memory: MemoryBudget;
  readonly remembered: RememberedSets;
};

/** What is read of a project: a kind, in which environments, and of which of them the values. */
export type Wanted<K extends Kind> = {
  readonly slug: string;
  readonly descriptor: KindDescriptor<K>;
  readonly environments: EnvironmentMask;
  readonly values: EnvironmentMask;
};

/** Verified sets with the memory that they, and what is opened of them, take. The reader gives it back. */
export type ReadSets<K extends Kind> = {
  readonly project: ReadProject;
  readonly sets: readonly VerifiedSet<K>[];
  readonly share: Share;
};

/** How long a read may wait for memory: the request's 5 s include the read itself. */
const waitMsMax = 4000;
/** A set is asked for as a small one, then as large as it is; more often only if it is written meanwhile. */
const triesMax = 4;
/** The most sealed bytes of a set: its values with their index, in an envelope. */
const sealedBytesMax = setBytesMax + 4 * (setItemsMax + 1) + overheadBytes;

/**
 * Gates 7 and 9 of every read of a project's items: the wanted sets that the key reaches, verified; all of them, or a
 * Fault. They come from the lookup itself or from memory if that is current, else from one more statement, which judges
 * the key again.
 *
 * @param fresh - fetch the sets although the lookup has just said which are current
 * @throws Fault `project_not_found`, `decryption_failed`, `unavailable`, or what a key that changed meanwhile is owed
 */
export async function readSets<K extends Kind>(
  source: Source,
  caller: Caller,
  wanted: Wanted<K>,
  signal: () => AbortSignal,
  fresh = false,
): Promise<ReadSets<K>> {
  const { grant, target } = caller;
  if (target === null) throw new Fault("project_not_found", "no such project in the key's scope");
  const project = { id: target.projectId, organizationId: grant.organizationId, slug: wanted.slug };
  const current = fresh ? undefined : currentSets(source, project, caller, wanted);
  if (current !== undefined && wanted.values === 0) return { project, sets: current, share: noShare };
  // Sets of unknown size are first asked for as small ones, which all of them together may still be.
  const count = environmentsOf(wanted.environments & grant.environments).length;
  let bytes = current === undefined ? smallBytesMax : fetchedBytes(current.map(storedOf), wanted.values);
  let bytesMax = current === undefined ? Math.floor(smallBytesMax / count) : bytes;
  for (let tries = 0; tries < triesMax; tries++) {
    const claimed = source.memory.claim(bytes, grant.keyId, signal, waitMsMax);
    const waited = claimed instanceof Promise;
    const share = waited ? await claimed : claimed;
    try {
      // After a wait the key is judged again, with the sets as they are then.
      const sets = (!waited && tries === 0 && current) || (await fetchSets(source, project, caller, wanted, bytesMax));
      if (typeof sets === "object") {
        share.resize(bytesOf(sets, wanted.values));
        return { project, sets, share };
      }
      share.release();
      bytes = sets;
      bytesMax = sets;
    } catch (error) {
      share.release();
      throw error;
    }
  }
  throw new Fault("unavailable", "a set grew each time it was read");
}

/** Judges a key as the statement that fetched something for it saw it. @throws Fault */
export function judgeStanding(standing: Standing | undefined): void {
  if (!standing?.live) throw new Fault("unauthorized", "key was deleted, expired or revoked while it was being served");
  if (standing.plan !== "pro") throw new Fault("plan_required", "the plan was changed during the request");
  if (standing.projectId === null) throw new Fault("project_not_found", "the project was deleted during the request");
}

/** The values of the placeholders of every statement after the lookup. */
export function authorizedAt({ grant }: Caller, { id, slug }: ReadProject): Authorized {
  return { keyId: grant.keyId, slug, projectId: id };
}

/** The sets as the lookup found them, from memory or from its own rows; undefined if one must be fetched. */
function currentSets<K extends Kind>(
  source: Source,
  project: ReadProject,
  { grant, target }: Caller,
  wanted: Wanted<K>,
): VerifiedSet<K>[] | undefined {
  const sets: VerifiedSet<K>[] = [];
  for (const environment of environmentsOf(wanted.environments & grant.environments)) {
    const needsValues = (wanted.values & environmentMask(environment)) !== 0;
    const found = target?.sets.find((set) => set.environment === environment);
    if (found === undefined) throw missingSet(project, wanted.descriptor.kind, environment);
    const known = source.remembered.find(project, wanted.descriptor.kind, found, needsValues);
    if (known !== undefined) {
      sets.push(known as VerifiedSet<K>);
      continue;
    }
    const { row } = found;
    if (row === null || row.listing === null || (needsValues && row.sealed === null)) return undefined;
    const set = new VerifiedSet(source, project, wanted.descriptor, row);
    source.remembered.remember(set, wanted.descriptor.kind);
    sets.push(set);
  }
  return sets;
}

/** The sets by a statement of their own; if one has more than `bytesMax` bytes, the bytes that all of them need. */
async function fetchSets<K extends Kind>(
  source: Source,
  project: ReadProject,
  caller: Caller,
  wanted: Wanted<K>,
  bytesMax: number,
): Promise<VerifiedSet<K>[] | number> {
  const { descriptor, environments, values } = wanted;
  const ask = { kind: descriptor.kind, environments, values, bytesMax };
  const rows = await source.sets.fetch(authorizedAt(caller, project), ask);
  judgeStanding(rows[0]);
  const stored = setsOf(rows);
  if (stored.some(({ listing }) => listing === null)) {
    if (stored.some((set) => set.listingBytes > setBytesMax || valueBytes(set, values) > sealedBytesMax)) {
      throw new Fault("decryption_failed", `a set of project ${project.id} is larger than any that Keyhole writes`);
    }
    return fetchedBytes(stored, values);
  }
  return environmentsOf(environments & caller.grant.environments).map((environment) => {
    const found = stored.find((set) => set.environment === environment);
    if (found === undefined) throw missingSet(project, wanted.descriptor.kind, environment);
    const set = new VerifiedSet(source, project, descriptor, found);
    if (found.rowVersion !== "") source.remembered.remember(set, descriptor.kind);
    return set;
  });
}

function missingSet({ id }: ReadProject, kind: Kind, environment: Environment): Fault {
  return new Fault("decryption_failed", `the ${kind} of project ${id} in ${environment} are missing`);
}

/** Listings and wanted values: what a statement returns. */
function fetchedBytes(sets: readonly StoredSet[], values: EnvironmentMask): number {
  return sets.reduce((sum, set) => sum + set.listingBytes + valueBytes(set, values), 0);
}

function storedOf({ stored }: VerifiedSet<Kind>): StoredSet {
  return stored;
}

/** Wanted values: what is held until the answer has left. */
function bytesOf(sets: readonly VerifiedSet<Kind>[], values: EnvironmentMask): number {
  return sets.reduce((sum, { stored }) => sum + valueBytes(stored, values), 0);
}

function valueBytes({ environment, sealedBytes }: StoredSet, values: EnvironmentMask): number {
  return values & environmentMask(environment) ? (sealedBytes ?? 0) : 0;
}

/** What a read has that opened nothing. */
const noShare: Share = { bytes: 0, waitedForMs: () => 0, resize: () => {}, release: () => {} };

type Remembered = { readonly set: VerifiedSet<Kind>; wanted: boolean };

/**
 * Verified sets, by what the lookup that judged the key has just read: the version of their row or, on SQLite, the row
 * itself. What was opened is never kept.
 */
export class RememberedSets {
  /** By project, kind and environment. */
  readonly #sets = new Map<string, Remembered>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number = 64 * 1024 * 1024) {
    this.#bytesMax = bytesMax;
  }

  /** The set, if it is remembered as this very row, for just this organization and slug. */
  find(
    { id, organizationId, slug }: ReadProject,
    kind: Kind,
    { environment, rowVersion, row }: FoundSet,
    needsValues: boolean,
  ): VerifiedSet<Kind> | undefined {
    const known = this.#sets.get(`${id} ${kind} ${environment}`);
    if (known === undefined) return undefined;
    const { project, stored } = known.set;
    const isCurrent = row === null ? stored.rowVersion === rowVersion : isSame(stored, row, needsValues);
    if (!isCurrent) return undefined;
    // SQL may have given the project to another organization, or its slug to another project.
    if (project.organizationId !== organizationId || project.slug !== slug) return undefined;
    if (needsValues && stored.sealed === null) return undefined;
    known.wanted = true;
    return known.set;
  }

  remember<K extends Kind>(set: VerifiedSet<K>, kind: K): void {
    const key = `${set.project.id} ${kind} ${set.environment}`;
    this.#forget(key);
    this.#keep(key, { set: set as VerifiedSet<Kind>, wanted: false });
    // The oldest goes first. One that was used since it was the oldest before gets a second chance.
    for (const [oldest, candidate] of this.#sets) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(oldest);
      if (candidate.wanted) this.#keep(oldest, { set: candidate.set, wanted: false });
    }
  }

  #keep(key: string, known: Remembered): void {
    this.#sets.set(key, known);
    this.#bytes += sizeOf(known.set);
  }

  #forget(key: string): void {
    const known = this.#sets.get(key);
    if (known === undefined) return;
    this.#sets.delete(key);
    this.#bytes -= sizeOf(known.set);
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
    (!needsValues || (b.sealed !== null && equal(a.sealed, b.sealed)))
  );
}

function equal(a: Buffer | null, b: Buffer | null): boolean {
  return a === b || (a !== null && b !== null && a.equals(b));
}

/** Sealed bytes; the listing as text, as entries, as names and as audit entries spell these; and the rest. */
function sizeOf({ stored, listing }: VerifiedSet<Kind>): number {
  return (stored.sealed?.length ?? 0) + 6 * listing.length + 2048;
}
