import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { NamesWritten } from "../../record/entry.ts";
import { type AdminContext, within } from "./context.ts";
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
  return {
    project: id,
    ...(Object.fromEntries(versions) as Readonly<Partial<Record<`version.${Environment}`, number>>>),
  };
}

/** A change before it is made. It is found out once to be shown, and again in the transaction that makes it. */
export type PlannedChange<T> = {
  /** What it was found out from. */
  readonly seen: Seen;
  /** Refuses a difference from what somebody saw, or lets it pass. Left out: each is refused. */
  readonly differs?: (what: string, shown: string | number) => Promise<void>;
  /** Makes the change, in the transaction in which it was planned. */
  readonly apply: () => Promise<T>;
};

/** What an operation would do. */
export type Plan = PlannedChange<Outcome> &
  Pick<Outcome, "shows" | "warnings"> & {
    /** What somebody is asked to agree to, such as `delete project acme/web`. Left out: nothing that must be asked. */
    readonly deed?: string | undefined;
    /** The names that it would write. */
    readonly names?: NamesWritten | undefined;
    /** What a dry run answers with `--json`. */
    readonly document: object;
    /** What a dry run says. Default: that it would do the deed. */
    readonly sentence?: string | undefined;
  };

/**
 * Makes a change in one transaction, as it is planned there.
 * @param shown - what somebody saw; or what they saw of such things, as a form has it
 * @throws Refused `conflict` if it is no longer so
 */
export function applying<T>(
  admin: AdminContext,
  plan: (admin: AdminContext) => Promise<PlannedChange<T>>,
  shown: Seen | ((now: Seen) => Seen) = {},
): Promise<T> {
  return within(admin, async (admin) => {
    const now = await plan(admin);
    await requireAsSeen(now, typeof shown === "function" ? shown(now.seen) : shown);
    return now.apply();
  });
}

/**
 * The one place that compares what somebody saw with what there is. What may be written over is said together.
 * @throws Refused `conflict` if that differs
 */
export async function requireAsSeen({ seen: now, differs }: Omit<PlannedChange<unknown>, "apply">, shown: Seen) {
  const found: Refused[] = [];
  for (const [what, value] of Object.entries(now)) {
    const before = shown[what];
    if (before === undefined || before === value) continue;
    if (differs === undefined) throw changedSince(what, before, value);
    try {
      await differs(what, before);
    } catch (error) {
      if (!(error instanceof Refused) || error.form.unlessSeen === undefined) throw found[0] ?? error;
      found.push(error);
    }
  }
  const last = found.pop();
  if (last === undefined) return;
  const said = found.map(({ message }) => message.slice(0, message.lastIndexOf(nothingWritten)));
  const unlessSeen = Object.assign({}, ...[...found, last].map(({ form }) => form.unlessSeen));
  throw new Refused("conflict", [...said, last.message].join(" "), { cause: last, unlessSeen });
}

/** How the refusal of a write begins its last sentence. */
export const nothingWritten = " Nothing was written: look at ";

/** The refusal of what is no longer as somebody saw it. */
export function changedSince(what: string, shown: string | number, now: string | number): Refused {
  const isOne = !what.endsWith("s");
  const words =
    typeof now === "number"
      ? `${what}: ${shown} when this was shown, and ${now} now`
      : `The ${what} ${isOne ? "has changed since it was" : "have changed since they were"} shown`;
  return new Refused("conflict", `${words}. Nothing was done: look at it again.`);
}

/** What counts of a plan that nobody was asked about: it is still for the same things, at whatever version. */
export function idsIn(seen: Seen): Seen {
  return Object.fromEntries(Object.entries(seen).filter(([, value]) => typeof value === "string"));
}

/** A dry run: what would be done. */
export function wouldDo({ deed, document, warnings = [], shows, sentence }: Plan): Outcome {
  const words = sentence ?? `Nothing was written. It would ${deed}.`;
  return { ...done(document, words, warnings), ...(shows && { shows }) };
}
