import { timingSafeEqual } from "node:crypto";
import { Fault } from "../fault.ts";
import { type Grant, type Plan, sealGrant } from "./grant.ts";

/** A key's row with its organization's, as one statement found them; `live` is judged by the database's clock. */
export type KeyRow = Grant & {
  readonly digest: Uint8Array;
  readonly grantSeal: Uint8Array;
  readonly live: number;
  readonly organizationSlug: string;
  readonly organizationName: string;
  readonly plan: Plan;
};

/** Who asks: a key that is good at this moment. Made for one request and never kept beyond it. */
export type Caller = {
  readonly grant: Grant;
  readonly organization: { readonly id: string; readonly slug: string; readonly name: string; readonly plan: Plan };
};

/**
 * Judges a found row.
 * @param digest - of the key text that was presented
 * @throws Fault `unauthorized`; its message tells the operator which of the reasons it was
 */
export function authenticate(row: KeyRow | undefined, digest: Uint8Array, grantKey: Uint8Array): Caller {
  if (!row || !timingSafeEqual(row.digest, digest)) throw new Fault("unauthorized", "unknown key");
  const seal = sealGrant(grantKey, digest, row);
  if (row.grantSeal.length !== seal.length || !timingSafeEqual(row.grantSeal, seal)) {
    throw new Fault(
      "unauthorized",
      `grant seal of key ${row.keyId} does not match: its row was changed by other means`,
    );
  }
  if (!row.live) throw new Fault("unauthorized", `key ${row.keyId} is expired or revoked`);
  return {
    grant: row,
    organization: {
      id: row.organizationId,
      slug: row.organizationSlug,
      name: row.organizationName,
      plan: row.plan,
    },
  };
}
