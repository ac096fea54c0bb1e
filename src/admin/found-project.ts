import type { DataKey } from "../seal/keyring.ts";
import type { Db } from "../store/database.ts";
import type { Organization } from "./organizations.ts";

/** A project as writers need it: found, and with its organization. */
export type FoundProject = { readonly id: string; readonly slug: string; readonly organization: Organization };

/** A project that no other writer can change before the transaction ends. */
export type LockedProject = FoundProject & {
  readonly db: Db;
  /** Seals under the project's newest data key. */
  readonly dataKey: DataKey;
  readonly now: number;
  /** As its row has it. */
  readonly changedAt: string;
};
