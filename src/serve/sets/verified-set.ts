import { Fault } from "../../core/fault.ts";
import type { Environment } from "../../core/names.ts";
import type { StoredSet } from "../../core/set-rows.ts";
import type { SetIdentity } from "../../seal/associated-data.ts";
import { isCanary, isMachinesOnly } from "../../seal/canary.ts";
import type { Keyring } from "../../seal/keyring.ts";
import { type OpenedItems, setOpener, verifyListing } from "../../seal/set.ts";
import type { Entry, KindDescriptor } from "./kind.ts";

/** The project of an answer, as the caller was authorized for it. */
export type ReadProject = { readonly id: string; readonly organizationId: string; readonly slug: string };

/** What verifies and opens sets. */
export type SetKeys = { readonly keyring: Keyring; readonly listingKey: Uint8Array };

/** SHA-256 in base64url. */
export function digestOf(text: string): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("base64url");
}

/** A set whose listing was verified, in the project that the caller was authorized for: both are needed to open it. */
export class VerifiedSet<E extends Entry = Entry> {
  readonly project: ReadProject;
  readonly environment: Environment;
  readonly stored: StoredSet;
  readonly listing: string;
  readonly entries: readonly E[];
  /** Of the entries. Frozen, because audit entries remember what they made of this very list. */
  readonly names: readonly string[];
  readonly #identity: SetIdentity;
  readonly #keys: SetKeys;
  readonly #made = new Map<unknown, unknown>();
  #opener: { open(): OpenedItems } | undefined;

  /** @throws Fault `decryption_failed` */
  constructor(keys: SetKeys, project: ReadProject, { kind, nameOf, hasValues }: KindDescriptor<E>, stored: StoredSet) {
    const { environment, version, generation, listingMac, listing } = stored;
    const { organizationId, id: projectId, slug } = project;
    this.#identity = { organizationId, projectId, slug, kind, environment, version };
    this.#keys = keys;
    if (listing === null || listingMac === null || (!hasValues && stored.sealedBytes !== null)) {
      throw new Fault("decryption_failed", `a set of project ${projectId} is not as Keyhole wrote it`);
    }
    verifyListing(keys.listingKey, this.#identity, { generation, listingMac, listing });
    this.project = project;
    this.environment = environment;
    this.stored = stored;
    this.listing = listing;
    this.entries = JSON.parse(listing) as E[];
    this.names = Object.freeze(this.entries.map(nameOf));
  }

  /** Whether an entry has the mark under which no person reads its value. */
  isMachinesOnly(entry: Entry): boolean {
    return isMachinesOnly(this.#keys.listingKey, entry);
  }

  /** Whether an entry has the mark of a canary. */
  isCanary(entry: Entry): boolean {
    return isCanary(this.#keys.listingKey, entry);
  }

  /** What this function makes of the listing, made once. Never of values. */
  once<T>(make: (set: VerifiedSet<E>) => T): T {
    return this.#made.getOrInsertComputed(make, () => make(this)) as T;
  }

  /** Opens the values. The opener is made once and kept; the values never are. */
  open(): OpenedItems {
    this.#opener ??= this.#makeOpener();
    const opened = this.#opener.open();
    if (opened.count === this.entries.length) return opened;
    opened.all.fill(0);
    const { kind, projectId, environment } = this.#identity;
    const words = `the ${kind} of project ${projectId} in ${environment} have more or fewer values than their listing`;
    throw new Fault("decryption_failed", words);
  }

  #makeOpener() {
    const { generation, listingMac, sealed, rootId, wrapped } = this.stored;
    const { projectId } = this.#identity;
    if (listingMac === null || rootId === null || wrapped === null) {
      throw new Fault("decryption_failed", `project ${projectId} has no data key ${generation}`);
    }
    const dataKey = this.#keys.keyring.dataKey(projectId, generation, rootId, wrapped);
    return setOpener(this.#identity, { generation, listingMac, sealed }, dataKey);
  }
}
