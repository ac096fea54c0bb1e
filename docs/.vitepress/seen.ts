/** What was seen of one page. */
export type Seen = {
  /** With the address's `/` in front. */
  readonly path: string;
  readonly status: number;
  /** Errors of the console and of scripts, answers of 400 and more, requests to others. */
  readonly errors: readonly string[];
  /** How wide the page is on a screen of 360 px. */
  readonly width: number;
  /** The first words of tables that do not fit on a screen of 1280 px. */
  readonly cut: readonly string[];
  /** Pictures that stay bright on the dark page. */
  readonly bright: readonly string[];
  /** Whole addresses. */
  readonly links: readonly string[];
  readonly ids: readonly string[];
  /** What axe found, in light, in dark, and in what opens on the page. */
  readonly violations: readonly string[];
};

/** All pages that links lead to from the first one, and what searches found, with axe's view of the dialog. */
export type Visit = { readonly pages: readonly Seen[]; readonly search: Search };
/** Addresses by what was searched for, best first. */
export type Search = {
  readonly found: Readonly<Record<string, readonly string[]>>;
  readonly violations: readonly string[];
};
