import type { Caller, Lookup, StoredSet } from "../access/authenticate.ts";
import { Fault } from "../core/fault.ts";
import type { Held } from "../core/held.ts";
import { type Environment, type EnvironmentMask, environmentMask, environmentsOf } from "../core/names.ts";
import { type MemoryBudget, type Share, smallBytesMax } from "../limit/budget.ts";
import { overheadBytes } from "../seal/envelope.ts";
import type { ContentQueries } from "../store/contents.ts";
import { malformed } from "../store/database.ts";
import type { ProjectQueries } from "../store/projects.ts";
import type { Authorized, Standing } from "../store/reach.ts";
import type { RequestQueries } from "../store/requests.ts";
import type { SetQueries } from "../store/sets.ts";
import { type Entry, type KindDescriptor, setBytesMax, setItemsMax } from "./kind.ts";
import type { RememberedContents, RememberedSets } from "./remembered.ts";
import { passed, type Stages } from "./stages.ts";
import { type ReadProject, type SetKeys, VerifiedSet } from "./verified-set.ts";

/** What reads need from outside: prepared queries, the keys that open what they find, and memory for it. */
export type ReadSource = SetKeys & {
  readonly projects: ProjectQueries;
  readonly sets: SetQueries;
  readonly contents: ContentQueries;
  readonly requests: RequestQueries;
  readonly memory: MemoryBudget;
  readonly remembered: RememberedSets;
  readonly rememberedContents: RememberedContents;
};

/** What a request carries through its read. */
export type Reading = {
  readonly source: ReadSource;
  readonly caller: Caller;
  /** Aborts when the client goes away. */
  readonly signal: () => AbortSignal;
  /** Undefined unless metrics or traces are kept. */
  readonly stages: Stages | undefined;
};

/** Opened values, with the facts that may be shown before their release and the memory to give back after it. */
export type Read<T> = {
  readonly project: ReadProject;
  /** For each audit entry, the names that it records, in byte order. */
  readonly entries: readonly (readonly string[])[];
  /** Those of the names that are canaries, if any are. */
  readonly canaries?: readonly string[] | undefined;
  readonly held: Held<T>;
  /** Two answers to one query are equal if their fingerprints are. Values are not opened for it. */
  readonly fingerprint: string;
  /** Must be released when the last byte has left, or once nothing will leave. */
  readonly share: Share;
};

/** Which sets to read: the project, the kind, the environments, and those whose values are needed. */
type SetsQuery<E extends Entry> = Omit<Lookup, "kind"> & {
  readonly descriptor: KindDescriptor<E>;
  /** Fetch the sets even though the lookup has just said which are current. */
  readonly fresh?: boolean;
};

/** How long a read may wait for memory: the request's 5 s include the read itself. */
const waitMsMax = 4000;
/** Try the small size, then the real one; retry only if the set grew in between. */
const triesMax = 4;
/** The most sealed bytes of a set: its values with their index, in an envelope. */
const sealedBytesMax = setBytesMax + 4 * (setItemsMax + 1) + overheadBytes;

/**
 * Gates 7 and 9 of every read of a project's items: the wanted sets that the key reaches, verified; all of them, or a
 * Fault. They come from the lookup itself or from memory if that is current, else from one more statement, which judges
 * the key again.
 * @param use - opens what is wanted of the sets
 * @returns what was opened with the memory that it takes, which the caller gives back
 * @throws Fault `project_not_found`, `decryption_failed`, `unavailable`, or as {@link judgeStanding}
 */
export async function readSets<E extends Entry, T extends object>(
  reading: Reading,
  query: SetsQuery<E>,
  use: (project: ReadProject, sets: readonly VerifiedSet<E>[]) => T,
): Promise<T & { readonly share: Share }> {
  const { source, caller, signal, stages } = reading;
  const { grant, target } = caller;
  passed(stages, "readFromMs");
  if (target === null) throw new Fault("project_not_found", "no such project in the key's scope");
  const project = { id: target.projectId, organizationId: grant.organizationId, slug: query.slug };
  const read = (sets: readonly VerifiedSet<E>[]) => {
    passed(stages, "readToMs");
    return use(project, sets);
  };
  const current = query.fresh ? undefined : currentSets(reading, project, query);
  if (current !== undefined && query.values === 0) return { ...read(current), share: noShare };
  // Sets of unknown size are first fetched as if all of them together were small.
  const count = environmentsOf(query.environments & grant.environments).length;
  let bytes = current === undefined ? smallBytesMax : fetchedBytes(storedOf(current), query.values);
  let bytesMax = current === undefined ? Math.floor(smallBytesMax / count) : bytes;
  for (let tries = 0; tries < triesMax; tries++) {
    const claimed = source.memory.claim(bytes, grant.keyId, signal, waitMsMax);
    const waited = claimed instanceof Promise;
    const share = waited ? await claimed : claimed;
    try {
      // After a wait the key is judged again, with the sets as they are then.
      const sets = (!waited && tries === 0 && current) || (await fetchSets(reading, project, query, bytesMax));
      if (typeof sets === "object") {
        share.resize(valueBytes(storedOf(sets), query.values));
        return { ...read(sets), share };
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

/** {@link readSets} for metadata: nothing is opened, and no memory held. */
export async function readListings<E extends Entry>(reading: Reading, query: Omit<SetsQuery<E>, "values">) {
  const read = await readSets(reading, { ...query, values: 0 }, (project, sets) => ({ project, sets }));
  read.share.release();
  return read;
}

/** Judges a key as the statement that fetched something for it saw it. */
export function judgeStanding<S extends Standing>(standing: S | undefined): asserts standing is S {
  // A row that was damaged on its way would look like one of a key that has ended.
  if (standing !== undefined && standing.live !== 0 && standing.live !== 1) throw malformed();
  if (!standing?.live) throw new Fault("unauthorized", "key was deleted, expired or revoked while it was being served");
  if (standing.plan !== "pro") throw new Fault("plan_required", "the plan was changed during the request");
  if (standing.projectId === null) throw new Fault("project_not_found", "the project was deleted during the request");
}

/** The values of the placeholders of every statement after the lookup. */
export function authorizedAt({ grant }: Caller, { id, slug }: ReadProject): Authorized {
  return { keyId: grant.keyId, slug, projectId: id };
}

/** The sets as the lookup found them, from memory or from its own rows; undefined if one must be fetched. */
function currentSets<E extends Entry>(
  { source, caller: { grant, target } }: Reading,
  project: ReadProject,
  { descriptor, environments, values }: SetsQuery<E>,
): VerifiedSet<E>[] | undefined {
  const sets: VerifiedSet<E>[] = [];
  for (const environment of environmentsOf(environments & grant.environments)) {
    const needsValues = (values & environmentMask(environment)) !== 0;
    const found = target?.sets.find((set) => set.environment === environment);
    if (found === undefined) throw missingSet(project, descriptor.kind, environment);
    let set = source.remembered.find(project, descriptor.kind, found, needsValues) as VerifiedSet<E> | undefined;
    if (set === undefined) {
      const { row } = found;
      if (row === null || row.listing === null || (needsValues && row.sealed === null)) return undefined;
      set = new VerifiedSet(source, project, descriptor, row);
      source.remembered.remember(set, descriptor.kind);
    }
    sets.push(set);
  }
  return sets;
}

/** The sets by a statement of their own; if one has more than `bytesMax` bytes, the bytes that all of them need. */
async function fetchSets<E extends Entry>(
  { source, caller }: Reading,
  project: ReadProject,
  { descriptor, environments, values }: SetsQuery<E>,
  bytesMax: number,
): Promise<VerifiedSet<E>[] | number> {
  const query = { kind: descriptor.kind, environments, values, bytesMax };
  const rows = await source.sets.fetch(authorizedAt(caller, project), query);
  judgeStanding(rows[0]);
  const stored = rows.filter((row) => row.environment !== null) as StoredSet[];
  if (stored.some(({ listing }) => listing === null)) {
    if (stored.some((set) => set.listingBytes > setBytesMax || valueBytes([set], values) > sealedBytesMax)) {
      throw new Fault("decryption_failed", `a set of project ${project.id} is larger than any that Keyhole writes`);
    }
    return fetchedBytes(stored, values);
  }
  return environmentsOf(environments & caller.grant.environments).map((environment) => {
    const found = stored.find((set) => set.environment === environment);
    if (found === undefined) throw missingSet(project, descriptor.kind, environment);
    const set = new VerifiedSet(source, project, descriptor, found);
    if (found.rowVersion !== "") source.remembered.remember(set, descriptor.kind);
    return set;
  });
}

function missingSet({ id }: ReadProject, kind: string, environment: Environment): Fault {
  return new Fault("decryption_failed", `the ${kind} of project ${id} in ${environment} are missing`);
}

/** Listings and needed values: what a statement returns. */
function fetchedBytes(sets: readonly StoredSet[], values: EnvironmentMask): number {
  return sets.reduce((sum, { listingBytes }) => sum + listingBytes, valueBytes(sets, values));
}

/** Needed values: what is held until the answer has left. */
function valueBytes(sets: readonly StoredSet[], values: EnvironmentMask): number {
  const needed = sets.filter(({ environment }) => values & environmentMask(environment));
  return needed.reduce((sum, { sealedBytes }) => sum + (sealedBytes ?? 0), 0);
}

function storedOf(sets: readonly VerifiedSet[]): StoredSet[] {
  return sets.map(({ stored }) => stored);
}

/** The share of a read that opened nothing. */
const noShare: Share = { bytes: 0, waitedForMs: () => 0, resize: () => {}, release: () => {} };
