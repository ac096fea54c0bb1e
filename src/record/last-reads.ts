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

/** The last reads of one set: when, by name. */
type SetReads = Pick<LastRead, "projectId" | "kind" | "environment"> & { readonly at: Map<string, number> };

/** Collects the last reads from entries, in any order, each as often as one likes. */
export class LastReads {
  readonly #kindsByRead: Readonly<Record<string, string>>;
  readonly #sets = new Map<string, SetReads>();

  /** @param kindsByRead - the kind that each action of machines reads, such as `variables.read` */
  constructor(kindsByRead: Readonly<Record<string, string>>) {
    this.#kindsByRead = kindsByRead;
  }

  /** @param recordedAt - in epoch milliseconds */
  note(entries: readonly AuditEntry[], recordedAt: number): void {
    for (const { action, projectId, environment, names, byName } of entries) {
      const kind = this.#kindsByRead[action];
      if (kind === undefined) continue;
      // A read that named no environment may have had items of each.
      for (const one of environment === null ? environments : [environment]) {
        const { at } = this.#setOf({ projectId, kind, environment: one });
        for (const name of byName ? names : whole) {
          if (recordedAt > (at.get(name) ?? Number.NEGATIVE_INFINITY)) at.set(name, recordedAt);
        }
      }
    }
  }

  #setOf(set: Omit<SetReads, "at">): SetReads {
    const key = `${set.projectId} ${set.kind} ${set.environment}`;
    return this.#sets.getOrInsertComputed(key, () => ({ ...set, at: new Map<string, number>() }));
  }

  /** Returns what was collected since the last call. */
  take(): LastRead[] {
    const all = [...this.#sets.values()].flatMap(({ at, ...set }) =>
      [...at].map(([name, at]): LastRead => ({ ...set, name, at })),
    );
    this.#sets.clear();
    return all;
  }
}

/** What a read of the whole set stands under. */
const whole = [""];
