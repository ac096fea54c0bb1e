import { type Environment, environments, type Remarks } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { formatTime } from "../../core/words/text.ts";
import { parseDuration } from "../../core/words/times.ts";
import { findLastReads } from "../../record/store/last-reads.ts";
import { may } from "../../serve/access/rights.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { input } from "../desk/inputs.ts";
import { type Columns, list, type Outcome } from "../desk/outcome.ts";
import { type FoundProject, findProject, placeOf } from "../desk/projects.ts";
import { remarkColumns } from "./remarks.ts";

/* When machines last read an item: as the notary counted it from the audit, so it takes the right to read that. */

/** When machines last read an item. Each is in epoch milliseconds, or null: not since the record begins. */
export type ItemReads = {
  readonly byNameAt: number | null;
  /** With the whole set: nothing says that this item was wanted, or that it was there already. */
  readonly withAllAt: number | null;
};

/** The last reads of a kind of a project. */
export type KindReads = NonNullable<Awaited<ReturnType<typeof findKindReads>>>;

/**
 * The last reads of a kind, in the environments where somebody has both the rights `see` and `audit`; undefined if there
 * are none, or no notary has read the whole audit yet. One statement.
 */
export async function findKindReads(
  admin: AdminContext,
  project: FoundProject,
  kind: string,
  among: readonly Environment[],
) {
  const place = placeOf(project);
  const known = among.filter((one) =>
    (["see", "audit"] as const).every((right) => may(admin.rights, right, place, one)),
  );
  const stored = known.length === 0 ? undefined : await findLastReads(admin.database, project.id, kind);
  if (stored === undefined) return undefined;
  const at = new Map(stored.reads.map((read) => [`${read.environment} ${read.name}`, read.at]));
  const latest = (name: string, among: readonly Environment[]) => {
    const found = among.filter((one) => known.includes(one)).flatMap((one) => at.get(`${one} ${name}`) ?? []);
    return found.length === 0 ? null : Math.max(...found);
  };
  return {
    /** Where somebody may know them. */
    environments: known,
    /** When the record begins. Epoch milliseconds. */
    withAllSinceAt: stored.sinceAt,
    /** Earlier reads by name are known as reads of the whole set. */
    byNameSinceAt: stored.byNameSinceAt,
    /** When the notary was last up to date, if it is behind. */
    behindSinceAt: stored.behindSinceAt,
    /** @param among - the latest read in any of these environments */
    of: (name: string, among: readonly Environment[]): ItemReads => ({
      byNameAt: latest(name, among),
      withAllAt: latest("", among),
    }),
  };
}

/**
 * Whether no machine asked for an item from that moment on; of a kind that is always read whole, whether none read it.
 * An item that was never asked for must not have changed since then, either: a new one is not reported.
 */
export function isUnread(
  { isReadByName }: Pick<KindDescriptor, "isReadByName">,
  { byNameAt, withAllAt }: ItemReads,
  updatedAt: number,
  sinceAt: number,
): boolean {
  return (isReadByName ? (byNameAt ?? updatedAt) : Math.max(withAllAt ?? 0, updatedAt)) <= sinceAt;
}

/** When the record that {@link isUnread} goes by begins. */
export function judgedSince({ isReadByName }: Pick<KindDescriptor, "isReadByName">, known: KindReads): number {
  return isReadByName ? known.byNameSinceAt : known.withAllSinceAt;
}

/** For what lists items. */
export function unreadInput({ isReadByName }: Pick<KindDescriptor, "isReadByName">) {
  const how = isReadByName ? "no machine asked for by name" : "no machine read";
  return input("--unread <duration>", `only those that ${how} for this long, with their last reads`, parseDuration);
}

/**
 * Lists items, or those that no machine asked for. That takes the rights `see` and `audit`.
 * @param among - the environments that are listed; if it is left out, all that the person may know of
 * @param placesOf - the name of an item, and where it is
 * @throws Refused `unavailable` if no notary has read the whole audit
 */
export async function listItems<T extends Remarks & { readonly updatedAt: number; readonly machinesOnly?: true }>(
  admin: AdminContext,
  asked: { readonly project: string; readonly descriptor: KindDescriptor; readonly unreadMs: number | undefined },
  items: readonly T[],
  itemColumns: Columns<T>,
  placesOf: (item: T) => { readonly name: string; readonly environments: readonly Environment[] },
  among?: readonly Environment[],
): Promise<Outcome> {
  const { project: where, descriptor, unreadMs } = asked;
  const hasMarks = items.some(({ machinesOnly }) => machinesOnly);
  const columns = {
    ...itemColumns,
    ...(hasMarks && { "MACHINES ONLY": ({ machinesOnly }: T) => (machinesOnly ? "yes" : "-") }),
    ...remarkColumns(items),
  };
  const place = among === undefined ? "" : ` in ${among.join(", ")}`;
  if (unreadMs === undefined) return list(items, columns, `${where} has no ${descriptor.kind}${place}.`);
  const project = await findProject(admin, where, ["see", "audit"], among);
  const known = await findKindReads(admin, project, descriptor.kind, among ?? environments);
  if (known === undefined) throw new Refused("unavailable", unknownWords);
  const { byNameSinceAt, withAllSinceAt, behindSinceAt } = known;
  const { isReadByName } = descriptor;
  const readsKnownSince = { ...(isReadByName && { byName: byNameSinceAt }), withAll: withAllSinceAt };
  const sinceAt = admin.now() - unreadMs;
  const unread = items.flatMap((item) => {
    const { name, environments } = placesOf(item);
    const seen = environments.filter((one) => known.environments.includes(one));
    const { byNameAt, withAllAt } = known.of(name, seen);
    if (seen.length === 0 || !isUnread(descriptor, { byNameAt, withAllAt }, item.updatedAt, sinceAt)) return [];
    const byName = isReadByName && { readByNameAt: byNameAt };
    return [{ ...item, ...byName, readWithAllAt: withAllAt, readsKnownSince }];
  });
  const cell = (at: number | null, since: number) => (at === null ? `not since ${dayOf(since)}` : formatTime(at));
  const reads: Columns<(typeof unread)[number]> = {
    ...(isReadByName && { "READ BY NAME": (one) => cell(one.readByNameAt ?? null, byNameSinceAt) }),
    "READ WITH ALL": (one) => cell(one.readWithAllAt, withAllSinceAt),
  };
  const begins = judgedSince(descriptor, known);
  const listedIn = new Set(items.flatMap((item) => placesOf(item).environments));
  const hidden = environments.filter((one) => listedIn.has(one) && !known.environments.includes(one));
  const warnings = [
    ...(begins > sinceAt ? [`The record of these reads begins at ${formatTime(begins)}.`] : []),
    ...(behindSinceAt === undefined ? [] : [behindWords(behindSinceAt)]),
    ...(hidden.length === 0 ? [] : [`Not judged: ${hidden.join(", ")}. Its reads take the right \`audit\`.`]),
  ];
  const none = `No ${descriptor.item} has been unread for this long.`;
  return { ...list(unread, { ...columns, ...reads }, none), warnings };
}

/** Warns that the last reads are old. */
export function behindWords(behindSinceAt: number): string {
  const when = behindSinceAt === 0 ? "has read nothing yet" : `has read nothing since ${formatTime(behindSinceAt)}`;
  return `The notary ${when}: later reads are missing here.`;
}

const unknownWords =
  "The last reads are not known: no notary has read the audit yet. `serve` or `keyhole notary` does.";

/** Such as `2030-01-31`, in UTC. */
export function dayOf(at: number): string {
  return formatTime(at).slice(0, 10);
}
