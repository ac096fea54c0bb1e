import { type Environment, environments } from "../core/names.ts";
import type { AuditEntry } from "./entry.ts";

/**
 * When machines last read something: one name that they asked for, or without a name the whole set. What people see or
 * write is no read.
 */
export type LastRead = {
  readonly projectId: string;
  readonly kind: string;
  readonly environment: Environment;
  /** Empty for the whole set. */
  readonly name: string;
  /** Epoch milliseconds. */
  readonly at: number;
};

/** Collects the last reads from entries, in any order, each as often as one likes. */
export class LastReads {
  readonly #kindReadBy: (action: string) => string | undefined;
  readonly #reads = new Map<string, Map<string, LastRead>>();

  /** @param kindReadBy - the kind that an action reads, such as `variables.read` */
  constructor(kindReadBy: (action: string) => string | undefined) {
    this.#kindReadBy = kindReadBy;
  }

  /** @param at - when they were recorded, in epoch milliseconds */
  note(entries: readonly AuditEntry[], at: number): void {
    for (const { actor, action, projectId, environment, names, byName } of entries) {
      const kind = actor.type === "person" ? undefined : this.#kindReadBy(action);
      if (kind === undefined) continue;
      // A read that named no environment may have had items of each.
      for (const one of environment === null ? environments : [environment]) {
        const set = this.#setOf(`${projectId} ${kind} ${one}`);
        for (const name of byName ? names : [""]) {
          if (at > (set.get(name)?.at ?? Number.NEGATIVE_INFINITY)) {
            set.set(name, { projectId, kind, environment: one, name, at });
          }
        }
      }
    }
  }

  #setOf(key: string): Map<string, LastRead> {
    const set = this.#reads.get(key) ?? new Map<string, LastRead>();
    this.#reads.set(key, set);
    return set;
  }

  /** Returns what was collected since the last call. */
  take(): LastRead[] {
    const all = [...this.#reads.values()].flatMap((set) => [...set.values()]);
    this.#reads.clear();
    return all;
  }
}
