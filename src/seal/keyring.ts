import { hkdfSync, randomBytes } from "node:crypto";
import { Fault } from "../fault.ts";
import { dataKeyAssociatedData, encodeFields, systemKeyAssociatedData } from "./associated-data.ts";
import { open, seal } from "./envelope.ts";

/*
 * Which key is made of which. Random keys are wrapped (sealed by the key above them) and stored. The others are derived
 * from the key above them and never stored: HKDF-SHA-256, no salt, and for info length-prefixed fields
 * (`associated-data.ts`), of which the first is "keyhole 1 " and the label in quotes here.
 *
 *   root key, 32 random bytes from the operator; the first of several wraps, all open
 *    ├─ root id      "root id"     8 bytes as 16 hex digits: stored beside what the root wrapped
 *    └─ wrap key     "wrap key"
 *        ├─ system keys            random, one row each: pepper, grant-seal key, audit key, listing key
 *        └─ data key               random, one per project and generation
 *            └─ subkeys            "variables subkey", "accounts subkey", "file subkey"
 */

const rootKeyBytes = 32;
/** The generation in the envelope of a wrapped key: no data key sealed it. Data keys count from 1. */
const wrapGeneration = 0;

/** What a data key seals, each with a subkey of its own. */
export type SubkeyKind = "variables" | "accounts" | "file";

/** The keys that serve the whole installation: of API key digests, grant seals, the audit chain and listings. */
export type SystemKeyPurpose = "pepper" | "grant" | "audit" | "listing";

/** A key as it is stored: sealed, with the id of the root key that opens it. */
export type Wrapped = { readonly rootId: string; readonly wrapped: Buffer };

/** An opened data key. It gives out subkeys only, and prints as a number and a function. */
export type DataKey = {
  readonly generation: number;
  /** The 32 bytes that seal one kind of value. Shared: they must not be changed. */
  subkey(kind: SubkeyKind): Uint8Array;
};

/** 32 random bytes: a new root key, system key or data key. */
export function newKey(): Uint8Array {
  return randomBytes(rootKeyBytes);
}

/**
 * The root keys of a setting: base64 of 32 bytes each, separated by commas or line ends. Only the canonical
 * spelling is taken. Blank lines are ignored, but an empty item beside a comma is refused: if an unset variable in a
 * template left it there, the old key would wrap instead of the new one.
 *
 * @throws Error one sentence that holds nothing of the text
 */
export function parseRootKeys(text: string): Uint8Array[] {
  const spellings = text
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

/** A root key as the keyring holds it. */
type Root = { readonly id: string; readonly wrapKey: Uint8Array };

/**
 * The root keys of this process, and what they open. It keeps what it derives from the roots, not the roots: the caller
 * may zero those once it is built.
 *
 * Opened data keys are remembered, since opening one costs seven times as much as opening a small value. All inputs,
 * the wrapped bytes included, are part of the memory's key: an edited row misses the memory, is opened and fails.
 */
export class Keyring {
  readonly #wrapping: Root;
  readonly #roots: Map<string, Root>;
  readonly #remembered = new Map<string, DataKey>();
  readonly #rememberedMax: number;
  readonly #more: () => readonly Uint8Array[];

  /**
   * @param rootKeys - at least one; the first wraps, all open
   * @param rememberedMax - how many opened data keys to remember, about 3 KiB each; the oldest goes first
   * @param more - called when something is wrapped by a root key that is not among these, as after a rotation that this
   *   process did not see; returns root keys to open with, or none if there is no news. Must be quick.
   * @throws Error if there is none, or one does not have 32 bytes
   */
  constructor(rootKeys: readonly Uint8Array[], rememberedMax = 4096, more: () => readonly Uint8Array[] = () => []) {
    const roots = rootKeys.map(rootOf);
    const [first] = roots;
    if (first === undefined) throw new Error("A keyring needs at least one root key.");
    this.#wrapping = first;
    this.#roots = new Map(roots.map((root) => [root.id, root]));
    this.#rememberedMax = rememberedMax;
    this.#more = more;
  }

  /** The id of the root key that wraps: what every stored `rootId` is once a rotation is through. */
  get rootId(): string {
    return this.#wrapping.id;
  }

  /** The ids of all root keys, in the order in which they were given. */
  get rootIds(): string[] {
    return [...this.#roots.keys()];
  }

  /** Wraps a system key under the first root key. */
  wrapSystemKey(purpose: SystemKeyPurpose, key: Uint8Array): Wrapped {
    const { id: rootId, wrapKey } = this.#wrapping;
    return {
      rootId,
      wrapped: seal(wrapKey, wrapGeneration, systemKeyAssociatedData(purpose, rootId), requireKey(key)),
    };
  }

  /**
   * A system key from its row.
   *
   * @throws Error one sentence for the person who starts the program, if the root key is not among these or the row
   * does not open
   */
  unwrapSystemKey(purpose: SystemKeyPurpose, rootId: string, wrapped: Uint8Array): Uint8Array {
    const root = this.#root(rootId);
    if (root === undefined) throw new Error("The root key does not match this database.");
    try {
      return open(root.wrapKey, systemKeyAssociatedData(purpose, rootId), wrapped);
    } catch {
      throw new Error(`The ${purpose} key of this database does not open: its row was changed or is damaged.`);
    }
  }

  /**
   * A system key's row under the first root key, for the rotation of roots.
   *
   * @throws Error as {@link unwrapSystemKey} does
   */
  rewrapSystemKey(purpose: SystemKeyPurpose, rootId: string, wrapped: Uint8Array): Wrapped {
    const key = this.unwrapSystemKey(purpose, rootId, wrapped);
    try {
      return this.wrapSystemKey(purpose, key);
    } finally {
      key.fill(0);
    }
  }

  /**
   * Wraps a data key.
   *
   * @param rootId - of the root key that is to wrap it; the first one if omitted
   * @throws Fault `decryption_failed` when that root key is not among these
   */
  wrapDataKey(projectId: string, generation: number, key: Uint8Array, rootId: string = this.rootId): Wrapped {
    const { wrapKey } = this.#requireRoot(rootId);
    const associatedData = dataKeyAssociatedData(projectId, generation, rootId);
    return { rootId, wrapped: seal(wrapKey, wrapGeneration, associatedData, requireKey(key)) };
  }

  /**
   * A data key's row under the first root key, for the rotation of roots. The data key stays what it is, so no value
   * needs to be resealed.
   *
   * @throws Fault `decryption_failed`
   */
  rewrapDataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): Wrapped {
    const key = this.#unwrapDataKey(projectId, generation, rootId, wrapped);
    try {
      return this.wrapDataKey(projectId, generation, key);
    } finally {
      key.fill(0);
    }
  }

  /**
   * A project's data key, opened.
   * @throws Fault `decryption_failed` if its root key is not among these, or the row does not open
   */
  dataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): DataKey {
    const inputs = encodeFields(projectId, generation, rootId, wrapped).toString("latin1");
    const remembered = this.#remembered.get(inputs);
    if (remembered !== undefined) return remembered;

    const key = this.#unwrapDataKey(projectId, generation, rootId, wrapped);
    const derived = (kind: SubkeyKind) => derive(key, `${kind} subkey`);
    const subkeys = { variables: derived("variables"), accounts: derived("accounts"), file: derived("file") };
    key.fill(0);
    const dataKey: DataKey = { generation, subkey: (kind) => subkeys[kind] };

    this.#remembered.set(inputs, dataKey);
    if (this.#remembered.size > this.#rememberedMax) {
      const [oldest] = this.#remembered.keys();
      if (oldest !== undefined) this.#remembered.delete(oldest);
    }
    return dataKey;
  }

  #unwrapDataKey(projectId: string, generation: number, rootId: string, wrapped: Uint8Array): Buffer {
    const { wrapKey } = this.#requireRoot(rootId);
    return open(wrapKey, dataKeyAssociatedData(projectId, generation, rootId), wrapped);
  }

  #requireRoot(rootId: string): Root {
    const root = this.#root(rootId);
    if (root === undefined) throw new Fault("decryption_failed", "a data key is wrapped by an unknown root key");
    return root;
  }

  #root(rootId: string): Root | undefined {
    if (!this.#roots.has(rootId)) {
      for (const root of this.#more().map(rootOf)) this.#roots.set(root.id, root);
    }
    return this.#roots.get(rootId);
  }
}

function rootOf(rootKey: Uint8Array): Root {
  requireKey(rootKey);
  return { id: derive(rootKey, "root id").toString("hex", 0, 8), wrapKey: derive(rootKey, "wrap key") };
}

/**
 * 32 bytes by HKDF-SHA-256 (RFC 5869). No salt: every key it starts from is uniformly random already. The info is
 * length-prefixed, so no label can run into another.
 */
function derive(key: Uint8Array, label: string): Buffer {
  return Buffer.from(hkdfSync("sha256", key, "", encodeFields(`keyhole 1 ${label}`), rootKeyBytes));
}

function requireKey(key: Uint8Array): Uint8Array {
  if (key.length !== rootKeyBytes) throw new Error("A key must have 32 bytes.");
  return key;
}
