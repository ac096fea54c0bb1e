import { BoundedMap } from "../../core/bounded-map.ts";
import { isSameMac } from "../../core/hash.ts";
import { type GrantRow, isSameRow, sealGrant } from "./grant.ts";
import { foundByAny, parseKeySet, parseTerms, type Token, type Trust } from "./token.ts";

/** Reads the valid trusts that are found by one of these. */
export type FindTrusts = (foundBy: readonly string[]) => Promise<readonly GrantRow[]>;

/** How many trusts stay in memory, and how many searches. */
const knownMax = 10_000;
/** Tokens with the same claims share a search for this long. */
const freshMs = 100;

/**
 * Finds the trusts that a token may meet. It only says which trust a token is for. Whether that is still valid, each
 * request asks the database, as for a key.
 */
export class TrustDirectory {
  readonly #load: FindTrusts;
  readonly #grantKey: Uint8Array;
  /** By id, each with its row: nothing is verified or parsed again unless that has changed. */
  readonly #known = new BoundedMap<{ readonly row: GrantRow; readonly trust: Trust | undefined }>(knownMax);
  readonly #searches = new BoundedMap<{ readonly atMs: number; readonly rows: ReturnType<FindTrusts> }>(knownMax);
  readonly #nowMs: () => number;

  /** @param nowMs - monotonic milliseconds */
  constructor(load: FindTrusts, grantKey: Uint8Array, nowMs: () => number) {
    this.#load = load;
    this.#grantKey = grantKey;
    this.#nowMs = nowMs;
  }

  /** The trusts that have the issuer and one claim of a token. @throws Fault `unavailable` */
  async find(token: Pick<Token, "issuer" | "payload">): Promise<readonly Trust[]> {
    const found = (await this.#search(foundByAny(token))).flatMap((row) => this.#trustOf(row) ?? []);
    return found.filter(({ terms }) => terms.issuer === token.issuer);
  }

  #search(foundBy: readonly string[]): ReturnType<FindTrusts> {
    const name = foundBy.join();
    const last = this.#searches.get(name);
    const atMs = this.#nowMs();
    if (last !== undefined && atMs - last.atMs < freshMs) return last.rows;
    const rows = this.#load(foundBy);
    this.#searches.set(name, { atMs, rows });
    return rows;
  }

  /** The trust in a row; undefined for what SQL wrote, which must not even make the server ask an issuer for keys. */
  #trustOf(row: GrantRow): Trust | undefined {
    const before = this.#known.get(row.keyId);
    if (before !== undefined && isSameRow(before.row, row)) return before.trust;
    const trust = readTrust(row, this.#grantKey);
    this.#known.set(row.keyId, { row, trust });
    return trust;
  }
}

/** The trust in a row; undefined if the row does not match its seal. */
export function readTrust(row: GrantRow, grantKey: Uint8Array): Trust | undefined {
  const { keyId: id, digest, grantSeal, trust: text } = row;
  if (text === null || !isSameMac(grantSeal, sealGrant(grantKey, digest, row))) return undefined;
  const terms = parseTerms(text);
  return terms && { id, digest, terms, pinned: terms.jwks === null ? null : parseKeySet(JSON.parse(terms.jwks)) };
}
