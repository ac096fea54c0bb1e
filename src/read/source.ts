import { Fault } from "../fault.ts";
import type { DataKey, Keyring } from "../seal/keyring.ts";
import type { AccountQueries } from "../store/accounts.ts";
import type { FileQueries } from "../store/files.ts";
import type { ProjectQueries } from "../store/projects.ts";
import type { VariableQueries } from "../store/variables.ts";

/** What reads need from outside: prepared queries and the keys that open what they find. */
export type Source = {
  readonly keyring: Keyring;
  readonly projects: ProjectQueries;
  readonly variables: VariableQueries;
  readonly accounts: AccountQueries;
  readonly files: FileQueries;
};

/** The project of an answer, resolved through the caller's scope. */
export type ReadProject = { readonly id: string; readonly organizationId: string; readonly slug: string };

/**
 * Judges a key's standing as the very statement that fetched the items saw it, then gate 7.
 * @param standing - undefined where the key itself is gone
 * @returns the project's id
 * @throws Fault `unauthorized`, `plan_required` or `project_not_found`
 */
export function judgeStanding(standing: { live: number; plan: string; projectId: string | null } | undefined): string {
  if (!standing?.live) throw new Fault("unauthorized", "key was deleted, expired or revoked while it was being served");
  if (standing.plan !== "pro") throw new Fault("plan_required", "the plan was changed during the request");
  if (standing.projectId === null) throw new Fault("project_not_found", "no such project in the key's scope");
  return standing.projectId;
}

/** A project's data keys by generation, unwrapped when first asked for. */
export class DataKeys {
  readonly #keyring: Keyring;
  readonly #project: ReadProject;
  readonly #wrapped: readonly { id: string | null; number: number; bytes: Buffer | null }[];
  readonly #opened = new Map<number, DataKey>();

  constructor(
    keyring: Keyring,
    project: ReadProject,
    wrapped: readonly { id: string | null; number: number; bytes: Buffer | null }[],
  ) {
    this.#keyring = keyring;
    this.#project = project;
    this.#wrapped = wrapped;
  }

  /** @throws Fault `decryption_failed` where there is none of that generation, or it does not open */
  of(generation: number): DataKey {
    const opened = this.#opened.get(generation);
    if (opened) return opened;
    const row = this.#wrapped.find((key) => key.number === generation);
    if (!row?.bytes || row.id === null) {
      throw new Fault("decryption_failed", `project ${this.#project.id} has no data key ${generation}`);
    }
    const key = this.#keyring.dataKey(this.#project, generation, row.id, row.bytes);
    this.#opened.set(generation, key);
    return key;
  }
}
