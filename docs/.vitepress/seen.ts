/** What was seen of one page. */
export type Seen = {
  /** With the address's `/` in front. */
  readonly path: string;
  readonly status: number;
  /** Errors of the console and of scripts, answers of 400 and more, requests to others. */
  readonly errors: readonly string[];
  /** How wide the page is on a screen of 360 px. */
  readonly width: number;
  /** Whole addresses. */
  readonly links: readonly string[];
  readonly ids: readonly string[];
  /** What axe found, in light, in dark, and in what opens on the page. */
  readonly violations: readonly string[];
};

/** All pages that links lead to from the first one, and what a search found, with axe's view of the dialog. */
export type Visit = { readonly pages: readonly Seen[]; readonly search: Search };
export type Search = { readonly found: readonly string[]; readonly violations: readonly string[] };
