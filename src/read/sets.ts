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

/** A set as the database has it, with the data key that opens it. */
export type StoredSet = {
  readonly revision: number;
  readonly generation: number;
  readonly rootId: string;
  readonly wrapped: Buffer;
  /** The set without its values, as JSON; not verified until the set is opened. */
  readonly listing: string;
  readonly sealed: Buffer;
};

/** A sealed set in the place that a request was authorized for, which is part of what opens it. */
export class SealedSet {
  readonly project: ReadProject;
  readonly environment: Environment;
  readonly stored: StoredSet;
  /** Those in the listing. */
  readonly names: readonly string[];
  readonly #keyring: Keyring;
  #opener: { readonly key: Uint8Array; readonly place: Uint8Array } | undefined;

  /** @throws Fault `decryption_failed` for a listing that is none of ours */
  constructor(keyring: Keyring, project: ReadProject, environment: Environment, stored: StoredSet) {
    this.#keyring = keyring;
    this.project = project;
    this.environment = environment;
    this.stored = stored;
    // Frozen: what audit entries make of this list is kept as long as the list is.
    this.names = Object.freeze(stored.listing === noListing ? [] : namesOf(project.id, stored.listing));
  }

  /**
   * The variables as the answer spells them: a JSON array in UTF-8. What opens them is made once, what is opened each time.
   * @throws Fault `decryption_failed`
   */
  open(): Buffer {
    this.#opener ??= this.#makeOpener();
    return open(this.#opener.key, this.#opener.place, this.stored.sealed);
  }

  #makeOpener(): { readonly key: Uint8Array; readonly place: Uint8Array } {
    const { revision, generation, rootId, wrapped, listing, sealed } = this.stored;
    const { project, environment } = this;
    if (generationOf(sealed) !== generation) {
      throw new Fault("decryption_failed", `the set of ${project.id} ${environment} is of another generation`);
    }
    const key = this.#keyring.dataKey(project, generation, rootId, wrapped).subkey("set");
    return { key, place: setPlace({ projectId: project.id, environment, revision, listing }) };
  }
}

type Remembered = { readonly set: SealedSet; readonly state: string; wanted: boolean };

const rememberedBytesMax = 64 * 1024 * 1024;

/**
 * The sealed sets of whole environments. They are remembered by the state of their environment, which the look-up that
 * judged the key has just read: of another state, a set is fetched anew. Opened bytes are never kept.
 */
export class SealedSets {
  readonly #queries: SetQueries;
  readonly #keyring: Keyring;
  /** By project and environment. */
  readonly #remembered = new Map<string, Remembered>();
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(queries: SetQueries, keyring: Keyring, bytesMax: number = rememberedBytesMax) {
    this.#queries = queries;
    this.#keyring = keyring;
    this.#bytesMax = bytesMax;
  }

  /** The set, where it is remembered and still current, for just this organization, slug and environment. */
  remembered(caller: Caller, target: Target, slug: string, environment: Environment): SealedSet | undefined {
    const known = this.#remembered.get(`${target.projectId} ${environment}`);
    if (known?.state !== target.state) return undefined;
    // SQL may have given the project to another organization, or its slug to another project: it must not open then.
    const { organizationId, slug: ownSlug } = known.set.project;
    if (organizationId !== caller.grant.organizationId || ownSlug !== slug) return undefined;
    known.wanted = true;
    return known.set;
  }

  /**
   * The set of this environment, where it has one that is current: then rows and set are the same variables. The key is
   * judged again with it.
   * @param bytesMax - how many sealed bytes it may have
   * @returns the number of its sealed bytes where these are more; undefined where rows must be read
   * @throws Fault `project_not_found`, `unavailable`, `decryption_failed` for a listing that is none of ours; or what a key
   *   that lost its standing meanwhile is owed
   */
  async fetch(
    { grant }: Caller,
    slug: string,
    environment: Environment,
    bytesMax: number,
  ): Promise<SealedSet | number | undefined> {
    const row = await this.#queries.read({ keyId: grant.keyId, ...placeOf(grant, slug) }, environment, bytesMax);
    const project = { id: judgeStanding(row), organizationId: grant.organizationId, slug };
    if (!row || row.bytes === null || row.state === null || row.revision === null) return undefined;
    const { state, revision, setRevision, generation, rootId, wrapped, listing, bytes, sealed } = row;
    if (setRevision !== revision || generation === null || rootId === null || wrapped === null) return undefined;
    if (listing === null || listing === noListing) return undefined;
    if (sealed === null) return bytes;
    const stored = { revision, generation, rootId, wrapped, listing, sealed };
    const set = new SealedSet(this.#keyring, project, environment, stored);
    this.#remember({ set, state, wanted: false });
    return set;
  }

  #remember(known: Remembered): void {
    const { project, environment } = known.set;
    const key = `${project.id} ${environment}`;
    this.#forget(key);
    this.#remembered.set(key, known);
    this.#bytes += sizeOf(known.set);
    // The oldest goes first; one that was wanted since it was the oldest before is passed over once.
    for (const [oldest, candidate] of this.#remembered) {
      if (this.#bytes <= this.#bytesMax) return;
      this.#forget(oldest);
      if (!candidate.wanted) continue;
      candidate.wanted = false;
      this.#remembered.set(oldest, candidate);
      this.#bytes += sizeOf(candidate.set);
    }
  }

  #forget(key: string): void {
    const known = this.#remembered.get(key);
    if (!known) return;
    this.#remembered.delete(key);
    this.#bytes -= sizeOf(known.set);
  }
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

/** Sealed bytes; the listing as text, as names, as audit entries spell these and in what it is sealed to; and the rest. */
function sizeOf({ stored }: SealedSet): number {
  return stored.sealed.length + 5 * stored.listing.length + 2048;
}
