import { Fault } from "../../core/fault.ts";
import type { Held } from "../../core/held.ts";
import { type Environment, type EnvironmentMask, environmentMask, environmentsOf } from "../../core/names.ts";
import type { Lookup, StoredSet } from "../../core/set-rows.ts";
import { overheadBytes } from "../../seal/envelope.ts";
import type { ContentQueries } from "../../store/contents.ts";
import { malformed } from "../../store/database.ts";
import type { ProjectQueries } from "../../store/projects.ts";
import type { Authorized, Standing } from "../../store/reach.ts";
import type { RequestQueries } from "../../store/requests.ts";
import type { SetQueries } from "../../store/sets.ts";
import type { Caller } from "../access/authenticate.ts";
import { type MemoryBudget, type Share, smallBytesMax } from "../limit/budget.ts";
import { countOf } from "./counts.ts";
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
 * Gates 7 to 9 of every read of a project's items: the wanted sets that the key reaches, verified; all of them, or a
 * Fault. They are what the lookup brought, or else are fetched by a statement that judges the key once more.
 * @param use - opens what is wanted of the sets
 * @returns what was opened with the memory that it takes, which the caller gives back
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`, or as {@link judgeStanding}
 */
export async function readSets<E extends Entry, T extends object>(
  reading: Reading,
  query: SetsQuery<E>,
  use: (project: ReadProject, sets: readonly VerifiedSet<E>[]) => T,
): Promise<T & { readonly share: Share }> {
  passed(reading.stages, "readFromMs");
  const project = projectOf(reading, query);
  const brought = query.fresh ? undefined : broughtSets(reading, project, query);
  const { sets, share } = heldAtOnce(reading, query, brought) ?? (await fetchSets(reading, project, query, brought));
  try {
    passed(reading.stages, "readToMs");
    requireFew(reading, query.descriptor, sets);
    return { ...use(project, sets), share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Gate 8 of a kind of which a project has a bounded number of items, in all its environments. */
function requireFew<E extends Entry>(
  { caller: { target } }: Reading,
  { kind, projectItemsMax }: KindDescriptor<E>,
  sets: readonly VerifiedSet<E>[],
): void {
  if (projectItemsMax === undefined) return;
  const total = Math.max(countOf(target?.counts ?? ""), ...sets.map(({ entries }) => entries.length));
  if (total > projectItemsMax) throw new Fault("too_many_items", `${total} ${kind} in ${target?.projectId}`);
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

/** Verified sets, and the memory that their values take until the answer has left. */
type HeldSets<E extends Entry> = { readonly sets: readonly VerifiedSet<E>[]; readonly share: Share };

/** Gate 7: the project, if the key's lookup has found it in the key's reach. */
function projectOf({ caller: { grant, target } }: Reading, { slug }: { readonly slug: string }): ReadProject {
  if (target === null) throw new Fault("project_not_found", "no such project in the key's scope");
  return { id: target.projectId, organizationId: grant.organizationId, slug };
}

/** The sets as the lookup found them, from memory or from its own rows; undefined if one must be fetched. */
function broughtSets<E extends Entry>(
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

/** With memory for the values, if it is free: after a wait, the key is to be judged again. */
function heldAtOnce<E extends Entry>(
  { source, caller }: Reading,
  { values }: SetsQuery<E>,
  sets: readonly VerifiedSet<E>[] | undefined,
): HeldSets<E> | undefined {
  if (sets === undefined) return undefined;
  const share = values === 0 ? noShare : source.memory.take(valueBytes(storedOf(sets), values), caller.grant.keyId);
  return share && { sets, share };
}

/** Fetches the sets by statements of their own, each into memory that was taken before. @param known - as they were */
async function fetchSets<E extends Entry>(
  reading: Reading,
  project: ReadProject,
  query: SetsQuery<E>,
  known: readonly VerifiedSet<E>[] | undefined,
): Promise<HeldSets<E>> {
  const { source, caller, signal } = reading;
  const count = environmentsOf(query.environments & caller.grant.environments).length;
  // Sets of unknown size are first fetched as if all of them together were small.
  let bytes = known === undefined ? smallBytesMax : fetchedBytes(storedOf(known), query.values);
  let bytesMax = known === undefined ? Math.floor(smallBytesMax / count) : bytes;
  for (let tries = 0; tries < triesMax; tries++) {
    const share = await source.memory.claim(bytes, caller.grant.keyId, signal, waitMsMax);
    try {
      const sets = await fetchOnce(reading, project, query, bytesMax);
      if (typeof sets === "object") {
        share.resize(valueBytes(storedOf(sets), query.values));
        return { sets, share };
      }
      bytes = sets;
      bytesMax = sets;
    } catch (error) {
      share.release();
      throw error;
    }
    share.release();
  }
  throw new Fault("unavailable", "a set grew each time it was read");
}

/** The sets by one statement; if one has more than `bytesMax` bytes, the bytes that all of them need. */
async function fetchOnce<E extends Entry>(
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
const noShare: Share = { amount: 0, waitedForMs: () => 0, resize: () => {}, release: () => {} };
