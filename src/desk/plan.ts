import type { NamesWritten } from "../audit/entry.ts";
import type { Environment } from "../core/names.ts";
import { done, type Outcome } from "./outcome.ts";

/* What asks first has a plan: somebody agrees to it, and what is done is refused unless it is still so. */

/**
 * What somebody saw before they agreed: ids as text, versions and counts as numbers, by what they belong to, such as
 * `project` and `version.staging`. What is absent was not looked at, and may be anything.
 */
export type Seen = { readonly project?: string; readonly [what: string]: string | number };

/** A set of an environment, as somebody sees it. */
export type VersionedSet = { readonly environment: Environment; readonly stored: { readonly version: number } };

/** What somebody sees of a project, and of sets in it. */
export function seenOf({ id }: { readonly id: string }, sets: readonly VersionedSet[] = []) {
  const versions = sets.map(({ environment, stored }) => [`version.${environment}`, stored.version] as const);
  return { project: id, ...(Object.fromEntries(versions) as Readonly<Record<string, number>>) };
}

/** What an operation would do. */
export type Plan<S extends Seen = Seen> = Pick<Outcome, "shows" | "warnings"> & {
  /** What somebody is asked to agree to, such as `delete project acme/web`. Left out: nothing that must be asked. */
  readonly deed?: string | undefined;
  /** What that was found out from. The operation refuses what is no longer so. */
  readonly seen: S;
  /** The names that it would write. */
  readonly names?: NamesWritten | undefined;
  /** What a dry run answers with `--json`. */
  readonly document: object;
  /** What a dry run says. Default: that it would do the deed. */
  readonly sentence?: string | undefined;
};

/** Whether what is there now is what somebody saw. */
export function isAsSeen(seen: Seen, now: Seen): boolean {
  return Object.entries(now).every(([what, value]) => (seen[what] ?? value) === value);
}

/** A plan that nobody was asked about: it is still for the same things, at whatever version. */
export function unasked<P extends Plan>(plan: P): P {
  const ids = Object.entries(plan.seen).filter(([, value]) => typeof value === "string");
  return { ...plan, seen: Object.fromEntries(ids) };
}

/** A dry run: what would be done. */
export function wouldDo({ deed, document, warnings = [], shows, sentence }: Plan): Outcome {
  const words = sentence ?? `Nothing was written. It would ${deed}.`;
  return { ...done(document, words, warnings), ...(shows && { shows }) };
}
