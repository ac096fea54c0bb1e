import type { Caller, Target } from "../access/authenticate.ts";
import { placeOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import type { Environment } from "../names.ts";
import { noListing, variablesListing } from "../render/variables-json.ts";
import { generationOf, open } from "../seal/envelope.ts";
import type { Keyring } from "../seal/keyring.ts";
import { setPlace } from "../seal/place.ts";
import type { SetQueries } from "../store/sets.ts";
import { judgeStanding, type ReadProject } from "./standing.ts";

/** A sealed set, with the key that opens it as the database spells it. */
export type FoundSet = {
  readonly project: ReadProject;
  readonly revision: number;
  readonly generation: number;
  readonly rootId: string;
  readonly wrapped: Buffer;
  /** The set without its values, as JSON; not verified until the set is opened. */
  readonly listing: string;
  /** The names in the listing. */
  readonly names: readonly string[];
  readonly sealed: Buffer;
};

/** What is remembered of a set: what the database holds of it, the state of its environment, and nothing opened. */
type Remembered = Omit<FoundSet, "project"> & { readonly state: string };

const rememberedBytesMax = 64 * 1024 * 1024;

/**
 * The sealed sets, by project and environment. They are remembered by the state of their environment, which the look-up
 * that judged the key has just read: of another state, a set is fetched anew. Opened bytes are never kept.
 */
export class SealedSets {
  readonly #queries: SetQueries;
  readonly #remembered = new Map<string, Remembered>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(queries: SetQueries, bytesMax: number = rememberedBytesMax) {
    this.#queries = queries;
    this.#bytesMax = bytesMax;
  }

  /** How many sealed bytes the set has, where it is remembered and still current. */
  bytesOf(target: Target, environment: Environment): number | undefined {
    const known = this.#remembered.get(`${target.projectId} ${environment}`);
    return known?.state === target.state ? known.sealed.length : undefined;
  }

  /**
   * The set of this environment, where it has one that is current: then rows and set are the same variables.
   * @param bytesMax - how many sealed bytes it may have
   * @param waited - whether time has passed since the key was judged: then it is judged again, and the set fetched
   * @returns the number of its sealed bytes where these are more; undefined where rows must be read
   * @throws Fault `project_not_found`, `unavailable`; or what a key that lost its standing meanwhile is owed
   */
  async find(
    caller: Caller,
    target: Target,
    slug: string,
    environment: Environment,
    bytesMax: number,
    waited = false,
  ): Promise<FoundSet | number | undefined> {
    const { grant } = caller;
    const key = `${target.projectId} ${environment}`;
    const known = this.#remembered.get(key);
    if (!waited && known?.state === target.state && known.sealed.length <= bytesMax) {
      // Moved to the end: the map's order is the order of last use.
      this.#remembered.delete(key);
      this.#remembered.set(key, known);
      const project = { id: target.projectId, organizationId: grant.organizationId, slug };
      return { project, ...known };
    }
    const row = await this.#queries.read({ keyId: grant.keyId, ...placeOf(grant, slug) }, environment, bytesMax);
    const project = { id: judgeStanding(row), organizationId: grant.organizationId, slug };
    if (!row || row.bytes === null || row.state === null || row.revision === null) return undefined;
    const { state, revision, setRevision, generation, rootId, wrapped, listing, bytes, sealed } = row;
    if (setRevision !== revision || generation === null || rootId === null || wrapped === null) return undefined;
    if (listing === null || listing === noListing) return undefined;
    if (sealed === null) return bytes;
    const names = namesOf(project.id, listing);
    const found = { state, revision, generation, rootId, wrapped, listing, names, sealed };
    this.#remember(`${project.id} ${environment}`, found);
    return { project, ...found };
  }

  #remember(key: string, set: Remembered): void {
    this.#forget(key);
    this.#remembered.set(key, set);
    this.#bytes += sizeOf(set);
    for (const oldest of this.#remembered.keys()) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    const set = this.#remembered.get(key);
    if (!set) return;
    this.#remembered.delete(key);
    this.#bytes -= sizeOf(set);
  }
}

/**
 * The variables of a set as the answer spells them: a JSON array in UTF-8.
 * @throws Fault `decryption_failed`
 */
export function openSet(keyring: Keyring, set: FoundSet, environment: Environment): Buffer {
  if (generationOf(set.sealed) !== set.generation) {
    throw new Fault("decryption_failed", `the set of ${set.project.id} ${environment} is of another generation`);
  }
  const dataKey = keyring.dataKey(set.project, set.generation, set.rootId, set.wrapped);
  const { revision, listing } = set;
  const place = setPlace({ projectId: set.project.id, environment, revision, listing });
  return open(dataKey.subkey("set"), place, set.sealed);
}

/**
 * The names of a listing, which is spliced into answers as it is: so it must be, to the byte, what the writer makes.
 * @throws Fault `decryption_failed`
 */
function namesOf(projectId: string, listing: string): string[] {
  try {
    const entries = (JSON.parse(listing) as { key: unknown; updatedAt: unknown }[]).map(({ key, updatedAt }) => ({
      name: String(key),
      updatedAt: Number(updatedAt),
    }));
    if (variablesListing(entries) === listing) return entries.map(({ name }) => name);
  } catch {
    // It is no listing at all.
  }
  throw new Fault("decryption_failed", `a set of ${projectId} has another listing than one of ours: it was changed`);
}

function sizeOf(set: Remembered): number {
  return set.sealed.length + 4 * set.listing.length;
}
