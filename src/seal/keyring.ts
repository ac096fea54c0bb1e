import { hkdfSync, randomBytes } from "node:crypto";
import { BoundedMap } from "../core/bounded-map.ts";
import { Fault } from "../core/fault.ts";
import { dataKeyAssociatedData, encodeFields, systemKeyAssociatedData } from "./associated-data.ts";
import { open, seal } from "./envelope.ts";

/*
 * Which key is made of which. Random keys are wrapped (sealed by the key above them) and stored. The others are derived
 * from the key above them and never stored: HKDF-SHA-256, no salt, and for info length-prefixed fields
 * (`associated-data.ts`). The first part is "keyhole 1 " and the label in quotes here.
 *
 *   root key, 32 random bytes from the operator; the first of several wraps, all open
 *    ├─ root id      "root id"     8 bytes as 16 hex digits: stored beside what the root wrapped
 *    └─ wrap key     "wrap key"
 *        ├─ system keys            random, one row each: pepper, grant-seal key, audit key, listing key
 *        │   ├─ etag key            "etag key", of the listing key
 *        │   └─ salt key            "salt key", and the installation's id, "installation id", of the audit key
 *        ├─ seeds of the notary     the Ed25519 keys that sign the heads of the audit's tree. The first is "notary 1", of
 *        │                          the audit key, but random if a build before 0.3.0 made it
 *        └─ data key               random, one per project and generation
 *            └─ subkeys            "file subkey" for contents; "variables subkey" and so on for the values of a kind
 */

const rootKeyBytes = 32;
/** The generation in the envelope of a wrapped data key: no data key sealed it. Data keys count from 1. */
const wrapGeneration = 0;

/**
 * Which rows an installation seals. It is the generation in the envelopes of the wrapped system keys, so nobody can
 * change it without the root key. 0.2.0 wrote 0: it sealed neither rows of organizations nor the content of versions. 1
 * had no seal on the head of the lane of commands.
 */
export const sealFormat = 2;

/** The keys that serve the whole installation: of API key digests, grant seals, the audit chain and listings. */
export type SystemKeyPurpose = "pepper" | "grant" | "audit" | "listing";

/** What is wrapped like a system key: these, and by generation the seeds of the keys that sign the audit's tree. */
type WrappedPurpose = SystemKeyPurpose | `notary ${number}`;

/** A key as it is stored: sealed, with the id of the root key that opens it. */
type Wrapped = { readonly rootId: string; readonly wrapped: Buffer };

/** An opened data key. It gives out subkeys only. */
export type DataKey = {
  readonly generation: number;
  /** The 32 bytes that seal what has this name: the values of a kind, or `file`. Shared: they must not be changed. */
  subkey(of: string): Uint8Array;
};

/** 32 random bytes: a new root key, system key or data key. */
export function newKey(): Uint8Array {
  return randomBytes(rootKeyBytes);
}

/**
 * The root keys of a setting: canonical base64 of 32 bytes each, separated by commas or line ends. Blank lines are
 * ignored. An empty item beside a comma is refused: an unset variable in a template may have left it there.
 * @throws Error one sentence that holds nothing of the text
 */
export function parseRootKeys(text: string): Uint8Array[] {
  const spellings = text
    .replace(/^\uFEFF/, "") // of an editor on Windows
    .split(/\r?\n/)
    .filter((line) => line !== "")
    .flatMap((line) => line.split(","));
  if (spellings.length === 0) throw new Error("No root key is given.");
  return spellings.map((spelling) => {
    const key = /^[0-9A-Za-z+/]{43}=$/.test(spelling) ? Buffer.from(spelling, "base64") : undefined;
    if (key?.toString("base64") !== spelling) {
      throw new Error(
        "A root key must be 32 bytes in standard base64, 44 characters; several are separated by commas or line ends.",
      );
    }
    return key;
  });
}

/**
 * The root keys of this process, and what they open. The caller may zero them once it is built. Opened data keys are
 * remembered, because opening one takes seven times as long as opening a small value.
 */
export class Keyring {
  /** The id of the root key that wraps. */
  readonly rootId: string;
  /** By root id. */
  readonly #wrapKeys: Map<string, Uint8Array>;
  readonly #remembered: BoundedMap<DataKey>;
  readonly #more: () => readonly Uint8Array[];

  /**
   * @param rootKeys - at least one, of 32 bytes each; the first wraps, all open
   * @param rememberedMax - how many opened data keys to remember, about 3 KiB each; the oldest goes first
   * @param more - quickly returns further root keys that open, such as after a rotation; called for an unknown root id
   */
  constructor(rootKeys: readonly Uint8Array[], rememberedMax = 4096, more: () => readonly Uint8Array[] = () => []) {
    this.#wrapKeys = new Map(rootKeys.map(wrapKeyOf));
    const [first] = this.#wrapKeys.keys();
    if (first === undefined) throw new Error("A keyring needs at least one root key.");
    this.rootId = first;
    this.#remembered = new BoundedMap(rememberedMax);
    this.#more = more;
  }

  /** The ids of all root keys, in the order in which they were given. */
  get rootIds(): string[] {
    return [...this.#wrapKeys.keys()];
  }

  /** Wraps a system key, with today's {@link sealFormat}. */
  wrapSystemKey(purpose: WrappedPurpose, key: Uint8Array, rootId: string = this.rootId): Wrapped {
    return this.#wrap(rootId, systemKeyAssociatedData(purpose, rootId), key, sealFormat);
  }

  /** A system key from its row. @throws Error one sentence for the operator, if it does not open */
  unwrapSystemKey(purpose: WrappedPurpose, rootId: string, wrapped: Uint8Array): Uint8Array {
    const wrapKey = this.#findWrapKey(rootId);
    if (wrapKey === undefined) {
      throw new Error(
        `The root key does not match this database, which needs the root key ${rootId}; this is ${this.rootIds.join(", ")}.`,
      );
    }
    try {
      return open(wrapKey, systemKeyAssociatedData(purpose, rootId), wrapped);
    } catch {
      throw new Error(`The ${purpose} key of this database does not open: its row was changed or is damaged.`);
    }
  }

  /** A system key's row under the first root key. @throws Error as {@link unwrapSystemKey} does */
  rewrapSystemKey(purpose: WrappedPurpose, rootId: string, wrapped: Uint8Array): Wrapped {
    const key = this.unwrapSystemKey(purpose, rootId, wrapped);
    const rewrapped = this.wrapSystemKey(purpose, key);
    key.fill(0);
    return rewrapped;
  }

  /** Wraps a data key. @throws Fault `decryption_failed` if that root key is not among these */
  wrapDataKey(projectId: string, generation: number, key: Uint8Array, rootId: string = this.rootId): Wrapped {
    return this.#wrap(rootId, dataKeyAssociatedData(projectId, generation, rootId), key);
  }

  /** A data key's row under the first root key. No value is resealed. @throws Fault `decryption_failed` */
  rewrapDataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): Wrapped {
    const key = this.#unwrapDataKey(projectId, generation, rootId, wrapped);
    const rewrapped = this.wrapDataKey(projectId, generation, key);
    key.fill(0);
    return rewrapped;
  }

  /** A project's data key, opened. @throws Fault `decryption_failed` */
  dataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): DataKey {
    // All of the row, so that an edited row is not remembered: it is opened, which fails.
    const inputs = encodeFields(projectId, generation, rootId, wrapped).toString("latin1");
    const remembered = this.#remembered.get(inputs);
    if (remembered !== undefined) return remembered;
    const key = this.#unwrapDataKey(projectId, generation, rootId, wrapped);
    const subkeys = new Map<string, Uint8Array>();
    const subkey = (of: string) => subkeys.getOrInsertComputed(of, () => derive(key, `${of} subkey`));
    const dataKey: DataKey = { generation, subkey };
    this.#remembered.set(inputs, dataKey);
    return dataKey;
  }

  #unwrapDataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): Buffer {
    return open(this.#wrapKey(rootId), dataKeyAssociatedData(projectId, generation, rootId), wrapped);
  }

  #wrap(rootId: string, associatedData: Uint8Array, key: Uint8Array, generation = wrapGeneration): Wrapped {
    return { rootId, wrapped: seal(this.#wrapKey(rootId), generation, associatedData, requireKey(key)) };
  }

  #wrapKey(rootId: string): Uint8Array {
    const wrapKey = this.#findWrapKey(rootId);
    if (wrapKey === undefined) throw new Fault("decryption_failed", "a data key is wrapped by an unknown root key");
    return wrapKey;
  }

  #findWrapKey(rootId: string): Uint8Array | undefined {
    if (!this.#wrapKeys.has(rootId)) {
      for (const [id, wrapKey] of this.#more().map(wrapKeyOf)) this.#wrapKeys.set(id, wrapKey);
    }
    return this.#wrapKeys.get(rootId);
  }
}

/** The key of the tags of answers. A key of its own, and nothing more to store, wrap and rotate. */
export function etagKeyOf(listingKey: Uint8Array): Uint8Array {
  return derive(listingKey, "etag key");
}

/** The key of the salts of audit entries (`record/leaf.ts`). */
export function saltKeyOf(auditKey: Uint8Array): Buffer {
  return derive(auditKey, "salt key");
}

/**
 * The seed of the first key that signs the audit's tree. It is stored, too. Deleting its row does no harm: the
 * key can be derived again.
 */
export function firstNotarySeed(auditKey: Uint8Array): Uint8Array {
  return derive(auditKey, "notary 1");
}

/** 16 hex digits that name the installation to others, and stay when its root key changes. */
export function installationId(auditKey: Uint8Array): string {
  return derive(auditKey, "installation id").toString("hex", 0, 8);
}

function wrapKeyOf(rootKey: Uint8Array): [rootId: string, wrapKey: Uint8Array] {
  requireKey(rootKey);
  return [derive(rootKey, "root id").toString("hex", 0, 8), derive(rootKey, "wrap key")];
}

/** 32 bytes by HKDF-SHA-256 (RFC 5869). No salt: every key it starts from is uniformly random already. */
function derive(key: Uint8Array, label: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", encodeFields(`keyhole 1 ${label}`), rootKeyBytes));
}

function requireKey(key: Uint8Array): Uint8Array {
  if (key.length !== rootKeyBytes) throw new Error("A key must have 32 bytes.");
  return key;
}
