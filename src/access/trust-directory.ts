import { isSameMac } from "../core/hash.ts";
import { shared } from "../core/shared.ts";
import { type GrantRow, sealGrant } from "./grant.ts";
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
  /** By the row's own text, because parsing and importing keys takes longer than the rest. */
  #byTerms = new Map<string, Trust>();
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
    const rows = await this.#load();
    const byTerms = new Map<string, Trust>();
    for (const row of rows) {
      const { keyId: id, digest, grantSeal, trust: text } = row;
      // What SQL wrote must not even make the server ask an issuer for keys.
      if (text === null || !isSameMac(grantSeal, sealGrant(this.#grantKey, digest, row))) continue;
      const trust = this.#byTerms.get(id + text) ?? trustOf(id, digest, text);
      if (trust !== undefined) byTerms.set(id + text, trust);
    }
    this.#byTerms = byTerms;
    this.#byIssuer = Map.groupBy(byTerms.values(), ({ terms }) => terms.issuer);
    this.#loadedAtMs = startedAtMs;
  }
}

/** The trust in a row whose seal was verified; undefined if its terms are damaged. */
function trustOf(id: string, digest: Uint8Array, text: string): Trust | undefined {
  const terms = parseTerms(text);
  return terms && { id, digest, terms, pinned: terms.jwks === null ? null : parseKeySet(JSON.parse(terms.jwks)) };
}
