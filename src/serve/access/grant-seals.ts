import { BoundedMap } from "../../core/bounded-map.ts";
import { isSameMac } from "../../core/hash.ts";
import { type GrantRow, isSameRow, sealCanary, sealGrant } from "./grant.ts";

/** Of the rows that are remembered: each takes some 2 KiB, and its lists and terms. */
const bytesMax = 20 * 1024 * 1024;

/**
 * Verifies the seals of keys and trusts. It remembers the last row of each whose seal was right, because comparing two
 * rows takes less than a tenth of the time of an HMAC. No authority is remembered: the row comes from the database each
 * time, and one that differs in any sealed column, or in the seal, is verified.
 */
export class GrantSeals {
  readonly #grantKey: Uint8Array;
  readonly #verified = new BoundedMap<GrantRow>(bytesMax, grantBytes);

  constructor(grantKey: Uint8Array) {
    this.#grantKey = grantKey;
  }

  /** Whether the row has the seal of its grant. Ended keys and canaries take the same time. */
  isGrant(row: GrantRow & { readonly live: number }): boolean {
    const known = row.live ? this.#verified.get(row.keyId) : undefined;
    if (known !== undefined && isSameRow(known, row)) return true;
    if (!isSameMac(row.grantSeal, sealGrant(this.#grantKey, row.digest, row))) return false;
    if (row.live) this.#remember(row);
    return true;
  }

  /** Whether the row has the seal of a canary. */
  isCanary(row: GrantRow): boolean {
    return isSameMac(row.grantSeal, sealCanary(this.#grantKey, row.digest, row));
  }

  #remember(row: GrantRow): void {
    const { keyId, organizationId, surfaces, resources, environments, projects, expiresAt, trust, rate, from } = row;
    const grant = { keyId, organizationId, surfaces, resources, environments, projects, expiresAt, trust, rate };
    this.#verified.set(keyId, { ...grant, from, digest: row.digest, grantSeal: row.grantSeal });
  }
}

/** Each row is bounded where it is read, so some of any length fit. */
export const grantBytes = ({ projects, trust, from }: GrantRow) =>
  2048 + [projects, trust, from].reduce((sum, text) => sum + (text?.length ?? 0), 0);
