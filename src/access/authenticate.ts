import { timingSafeEqual } from "node:crypto";
import { Fault } from "../fault.ts";
import { type Grant, type Plan, sealGrant } from "./grant.ts";

/**
 * A key's row with its organization's and, through its scope, the project asked for, as one statement found them; `live`
 * is judged by the database's clock.
 */
export type KeyRow = Grant & {
  readonly digest: Uint8Array;
  readonly grantSeal: Uint8Array;
  readonly live: number;
  readonly organizationSlug: string;
  readonly organizationName: string;
  readonly plan: Plan;
  /** Null where no project was asked for, or the key reaches none of that slug. */
  readonly projectId: string | null;
  /** Null where no environment was asked for, too. */
  readonly state: string | null;
};

/** The environment that a request asks for, as it stood when the key was judged. */
export type Target = {
  readonly projectId: string;
  /** Random, and another one with every write to the environment's variables, their set or the project's data keys. */
  readonly state: string;
};

/** Who asks: a key that is good at this moment. Made for one request and never kept beyond it. */
export type Caller = {
  readonly grant: Grant;
  readonly organization: { readonly id: string; readonly slug: string; readonly name: string; readonly plan: Plan };
  /** Null where the request asks for no environment, or for one of a project that the key does not reach. */
  readonly target: Target | null;
};

/**
 * Judges a found row.
 * @param digest - of the key text that was presented
 * @throws Fault `unauthorized`; its message tells the operator which of the reasons it was
 */
export function authenticate(row: KeyRow | undefined, digest: Uint8Array, grantKey: Uint8Array): Caller {
  if (!row || !timingSafeEqual(row.digest, digest)) throw new Fault("unauthorized", "unknown key");
  if (!row.live) throw new Fault("unauthorized", `key ${row.keyId} is expired or revoked`);
  const seal = sealGrant(grantKey, digest, row);
  if (row.grantSeal.length !== seal.length || !timingSafeEqual(row.grantSeal, seal)) {
    throw new Fault(
      "unauthorized",
      `grant seal of key ${row.keyId} does not match: its row was changed by other means`,
    );
  }
  return {
    grant: row,
    organization: {
      id: row.organizationId,
      slug: row.organizationSlug,
      name: row.organizationName,
      plan: row.plan,
    },
    target: row.projectId === null || row.state === null ? null : { projectId: row.projectId, state: row.state },
  };
}
