import { isSameMac } from "../../core/hash.ts";
import { shared } from "../../core/shared.ts";
import { type GrantRow, isSameRow, sealGrant } from "./grant.ts";
import { parseKeySet, parseTerms, type Trust } from "./token.ts";

/** How old the list may be when a token arrives. */
const freshMs = 100;

/**
 * The trusts of the installation by issuer, so that a stranger's token costs no statement of its own. Tokens make it
 * read the list again only if the last read is a tenth of a second old. The list only says which trust a token is for.
 * Whether that is still valid, each request asks the database, as for a key.
 */
export class TrustDirectory {
  readonly #load: () => Promise<readonly GrantRow[]>;
  readonly #grantKey: Uint8Array;
  readonly #nowMs: () => number;
  #byIssuer: ReadonlyMap<string, readonly Trust[]> = new Map();
  /** By id, each with its row: nothing is verified or parsed again unless that has changed. */
  #known = new Map<string, { readonly row: GrantRow; readonly trust: Trust }>();
  #loadedAtMs = Number.NEGATIVE_INFINITY;

  /** @param load - reads the valid trusts @param nowMs - monotonic milliseconds */
  constructor(load: () => Promise<readonly GrantRow[]>, grantKey: Uint8Array, nowMs: () => number) {
    this.#load = load;
    this.#grantKey = grantKey;
    this.#nowMs = nowMs;
  }

  /** The issuers whose published keys are needed. */
  get issuers(): string[] {
    const named = [...this.#byIssuer];
    return named.filter(([, trusts]) => trusts.some(({ pinned }) => pinned === null)).map(([issuer]) => issuer);
  }

  /** Whether an issuer may be asked on the internet only: no operator made a trust that needs its keys. */
  isPublic(issuer: string): boolean {
    return (this.#byIssuer.get(issuer) ?? []).every(({ pinned, terms }) => pinned !== null || terms.isPublic);
  }

  /** The trusts that name this issuer. @throws Fault `unavailable` */
  async find(issuer: string): Promise<readonly Trust[]> {
    if (this.#nowMs() - this.#loadedAtMs >= freshMs) await this.refresh();
    return this.#byIssuer.get(issuer) ?? [];
  }

  /** Reads the list; callers at the same time share one read. @throws Fault `unavailable` */
  readonly refresh = shared(() => this.#read());

  async #read(): Promise<void> {
    const startedAtMs = this.#nowMs();
    const known = new Map<string, { readonly row: GrantRow; readonly trust: Trust }>();
    for (const row of await this.#load()) {
      const before = this.#known.get(row.keyId);
      const trust = before !== undefined && isSameRow(before.row, row) ? before.trust : this.#trustOf(row);
      if (trust !== undefined) known.set(row.keyId, { row, trust });
    }
    this.#known = known;
    const trusts = [...known.values()].map(({ trust }) => trust);
    this.#byIssuer = Map.groupBy(trusts, ({ terms }) => terms.issuer);
    this.#loadedAtMs = startedAtMs;
  }

  /** The trust in a row; undefined for what SQL wrote, which must not even make the server ask an issuer for keys. */
  #trustOf(row: GrantRow): Trust | undefined {
    const { keyId: id, digest, grantSeal, trust: text } = row;
    if (text === null || !isSameMac(grantSeal, sealGrant(this.#grantKey, digest, row))) return undefined;
    const terms = parseTerms(text);
    return terms && { id, digest, terms, pinned: terms.jwks === null ? null : parseKeySet(JSON.parse(terms.jwks)) };
  }
}
