import { Fault } from "../../core/fault.ts";
import { isSameMac } from "../../core/hash.ts";
import type { TokenWords } from "../../core/names.ts";
import type { AppendCondition, Target } from "../../core/set-rows.ts";
import { type Grant, type GrantRow, isUsableFrom, type OrganizationPlan } from "./grant.ts";
import type { GrantSeals } from "./grant-seals.ts";
import type { Job } from "./token.ts";

/**
 * The row of a key or a trust, with its organization and, if its scope reaches it, the requested project. One
 * statement finds them. `live` is judged by the database's clock. A value that is larger than Keyhole ever writes
 * comes as null or as an empty list.
 */
export type KeyRow = GrantRow & {
  readonly live: number;
  readonly organizationSlug: string | null;
  readonly organizationName: string | null;
  readonly plan: OrganizationPlan | null;
  /** Null if the request names no project, or one that the key does not reach. */
  readonly target: Target | null;
  /** Whether it is found so again; undefined if that is not to be asked with an entry. */
  readonly again?: (AppendCondition & { readonly isCurrent: () => boolean }) | undefined;
};

/** A key, or a trust with a token, that is valid now. Made for one request and never kept. */
export type Caller = {
  readonly grant: Grant;
  readonly organization: {
    readonly id: string;
    readonly slug: string;
    readonly name: string;
    readonly plan: OrganizationPlan;
  };
  readonly target: Target | null;
  /** From the presented token; undefined for a key. */
  readonly token?: TokenWords;
  /** Undefined unless the trust counts the reads of each job. */
  readonly job?: Job | undefined;
};

/** A {@link Caller} whose organization is as it is stored; SQL may have damaged it. */
export type Recognized = Omit<Caller, "organization"> & {
  readonly organization: { readonly [Field in keyof Caller["organization"]]: Caller["organization"][Field] | null };
};

/**
 * The refusal of a canary, or of a good key or trust from where it may not be used. The client gets the same answer as
 * with any other key that has ended.
 */
export class AlarmingRefusal extends Fault {
  readonly kind: "canary" | "elsewhere";
  readonly row: KeyRow;

  constructor(kind: "canary" | "elsewhere", row: KeyRow) {
    const why = kind === "canary" ? "is a canary" : "may not be used from this address";
    super("unauthorized", `${nameOf(row)} ${why}`);
    this.kind = kind;
    this.row = row;
  }
}

/**
 * Judges the row of a key or a trust. Each row that is refused takes the same steps, so time does not tell a canary from
 * a key that has ended.
 * @param digest - digest of the presented key, or of the trust its token matched
 * @param caller - who asks, by the socket or by a trusted proxy
 * @throws Fault `unauthorized`, with the reason for the operator; AlarmingRefusal
 */
export function authenticate(
  row: KeyRow | undefined,
  digest: Uint8Array,
  seals: GrantSeals,
  caller: () => string,
): Recognized {
  if (!row || !isSameMac(row.digest, digest)) throw new Fault("unauthorized", "unknown key");
  const { organizationId: id, organizationSlug: slug, organizationName: name, plan } = row;
  const isGranted = seals.isGrant(row);
  if (!row.live || !isGranted) {
    if (seals.isCanary(row)) throw new AlarmingRefusal("canary", row);
    const which = nameOf(row);
    if (!row.live) throw new Fault("unauthorized", `${which} is expired or revoked`);
    const isTooLarge = [row.projects, row.trust, row.from].includes("");
    if (isTooLarge) throw new Fault("unauthorized", `the lists or terms of ${which} are too large to be read`);
    throw new Fault("unauthorized", `grant seal of ${which} does not match: changed by other means`);
  }
  if (!isUsableFrom(row, caller)) throw new AlarmingRefusal("elsewhere", row);
  return { grant: row, organization: { id, slug, name, plan }, target: row.target };
}

function nameOf({ trust, keyId }: KeyRow): string {
  return `${trust === null ? "key" : "trust"} ${keyId}`;
}

/** @throws Fault `decryption_failed` if SQL damaged the organization of a good key */
export function requireOrganization(found: Recognized): asserts found is Caller {
  const { id, slug, name, plan } = found.organization;
  if (name !== null && slug !== null && plan !== null) return;
  throw new Fault("decryption_failed", `organization ${id} is not as Keyhole wrote it`);
}
