import { Fault } from "../fault.ts";
import type { FileOpener } from "../seal/file-opener.ts";
import type { DataKey, Keyring } from "../seal/keyring.ts";
import type { AccountQueries } from "../store/accounts.ts";
import type { FileQueries } from "../store/files.ts";
import type { ProjectQueries } from "../store/projects.ts";
import type { VariableQueries } from "../store/variables.ts";
import type { ValueMemory } from "./memory.ts";
import type { SealedSets } from "./sets.ts";
import type { ReadProject } from "./standing.ts";

/** What reads need from outside: prepared queries, the keys that open what they find, and memory for it. */
export type Source = {
  readonly keyring: Keyring;
  readonly projects: ProjectQueries;
  readonly variables: VariableQueries;
  readonly sets: SealedSets;
  readonly accounts: AccountQueries;
  readonly files: FileQueries;
  readonly opener: FileOpener;
  readonly memory: ValueMemory;
};

/** A wrapped data key as its row has it. */
export type WrappedKey = { readonly id: string | null; readonly number: number; readonly bytes: Buffer | null };

/** A project's data keys by generation, unwrapped when first asked for. */
export class DataKeys {
  readonly keyring: Keyring;
  readonly #project: ReadProject;
  readonly #wrapped: readonly WrappedKey[];
  readonly #opened = new Map<number, DataKey>();

  constructor(keyring: Keyring, project: ReadProject, wrapped: readonly WrappedKey[]) {
    this.keyring = keyring;
    this.#project = project;
    this.#wrapped = wrapped;
  }

  /** @throws Fault `decryption_failed` where there is none of that generation, or it does not open */
  of(generation: number): DataKey {
    const opened = this.#opened.get(generation);
    if (opened) return opened;
    const { rootId, wrapped } = this.row(generation);
    const key = this.keyring.dataKey(this.#project, generation, rootId, wrapped);
    this.#opened.set(generation, key);
    return key;
  }

  /** As it is stored. @throws Fault `decryption_failed` where there is none of that generation */
  row(generation: number): { readonly rootId: string; readonly wrapped: Buffer } {
    const row = this.#wrapped.find((key) => key.number === generation);
    if (!row?.bytes || row.id === null) {
      throw new Fault("decryption_failed", `project ${this.#project.id} has no data key ${generation}`);
    }
    return { rootId: row.id, wrapped: row.bytes };
  }
}
