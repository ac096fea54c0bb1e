import { isSameMac } from "../core/hash.ts";
import { type GrantRow, isSameRow, sealCanary, sealGrant } from "./grant.ts";

/** Some 20 MiB together, if their texts are as long as they may be. */
const rowsMax = 8192;
const textsLengthMax = 1024;

/**
 * Verifies the seals of keys and trusts. It remembers the last row of each whose seal was right, because comparing two
 * rows takes less than a tenth of the time of an HMAC. No authority is remembered: the row comes from the database each
 * time, and one that differs in any sealed column, or in the seal, is verified.
 */
export class GrantSeals {
  readonly #grantKey: Uint8Array;
  readonly #verified = new Map<string, GrantRow>();

  constructor(grantKey: Uint8Array) {
    this.#grantKey = grantKey;
  }

  /** Whether the row has the seal of what it grants. A key that has ended takes as long as a canary, which has not. */
  isGrant(row: GrantRow & { readonly live: number }): boolean {
    const known = row.live ? this.#verified.get(row.keyId) : undefined;
    if (known !== undefined && isSameRow(known, row)) return true;
    if (!isSameMac(row.grantSeal, sealGrant(this.#grantKey, row.digest, row))) return false;
    if (row.live && (row.projects?.length ?? 0) + (row.trust?.length ?? 0) <= textsLengthMax) this.#remember(row);
    return true;
  }

  /** Whether the row has the seal of a canary. */
  isCanary(row: GrantRow): boolean {
    return isSameMac(row.grantSeal, sealCanary(this.#grantKey, row.digest, row));
  }

  #remember(row: GrantRow): void {
    const { keyId, organizationId, surfaces, resources, environments, projects, expiresAt, trust } = row;
    const grant = { keyId, organizationId, surfaces, resources, environments, projects, expiresAt, trust };
    const oldest = this.#verified.size < rowsMax ? undefined : this.#verified.keys().next().value;
    this.#verified.delete(oldest ?? keyId);
    this.#verified.set(keyId, { ...grant, digest: row.digest, grantSeal: row.grantSeal });
  }
}
