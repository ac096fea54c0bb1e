import { compareBytes, type Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { everyKind } from "../../kinds/kind.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { type NamesWritten, nameInPersonText } from "../../record/entry.ts";
import { isCanary } from "../../seal/canary.ts";
import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";
import type { VerifiedSet } from "../../serve/sets/verified-set.ts";
import { type AdminContext, mayCompare, requireFreshToCompare } from "../desk/context.ts";
import { findToChange, placeOf, projectPath } from "../desk/projects.ts";
import { namesContent, openContent } from "../editing/contents.ts";
import {
  damagedVersion,
  type Item,
  notKept,
  type OpenSet,
  openItems,
  openVersion,
  requireSet,
} from "../editing/open.ts";
import { noItem } from "../editing/reveal.ts";
import type { NewItem, PlannedSet, SetChanges } from "../editing/write.ts";
import { planItems } from "../editing/write-project.ts";
import { contentOf } from "../projects/comparison.ts";
import { namesOf, readRecords, type SetAt, type VersionRecord } from "./history.ts";

/* Two ways to revert a set: to an earlier version, or of what one version changed. */

/** Who wrote a version. Null: its record was changed with SQL. */
export type Writer = { readonly version: number; readonly by: string | null };

/**
 * A rollback: an earlier version of a set becomes its next one. Items that both versions have in common stay as they are.
 * @throws Refused `invalid` if `to` is the current version, `not_found` if it is not kept or has no such item,
 *   `conflict` if something does not open, `ambiguous`; `bound` if the project would have too many files
 */
export function planRollback(admin: AdminContext, set: SetAt, to: number, name?: string) {
  return revert(admin, set, async (admin, { verified, before }, now) => {
    const { version: from, project, descriptor, environment } = before;
    requireFreshToCompare(admin, placeOf(project), [environment]);
    if (from === to) throw new Refused("invalid", `Version ${to} is the current version: nothing was changed.`);
    const { items: after } = await openVersion(admin, before, to);
    if (name !== undefined && !after.has(name)) {
      throw await noItem(admin, before, name, [environment], `${projectPath(project)} ${environment}`, to);
    }
    // Somebody who may not see values must not learn which of them are the same.
    const isCompared = mayCompare(admin, placeOf(project), environment);
    const names = name === undefined ? [...after.keys(), ...before.items.keys()] : [name];
    const wanted = new Map<string, Item | undefined>();
    for (const one of names) {
      const [item, old] = [after.get(one), before.items.get(one)];
      // Nobody has written it since, which the history says to everybody here.
      if (item && old && JSON.stringify(item.entry) === JSON.stringify(old.entry)) continue;
      const isRead = isCompared && item?.isHidden === false && old?.isHidden === false;
      if (!(isRead && isSame(admin, descriptor, item, old))) wanted.set(one, item);
    }
    const { records, unverified } = await readRecords(admin, before, verified);
    const isWriter = (one: VersionRecord) => name === undefined || namesOf(one).includes(name);
    const between = [...records.filter(isWriter).map(writerOf), ...unverified.map((version) => ({ version, by: null }))]
      .filter(({ version }) => version > to && version <= from)
      .sort((a, b) => a.version - b.version);
    const changes = await changesOf(admin, before, wanted, to, now);
    if (name !== undefined && changes.size === 0) {
      throw new Refused("invalid", `${name} is the same in version ${to} and now: nothing was changed.`);
    }
    const planOf = (names: NamesWritten) => ({ from, to, name, ...names, between });
    return { changes, planOf };
  });
}

/**
 * Taking back one version's changes: the names that nobody has written since become what they were before it. No value
 * is compared, so it tells nothing about any.
 * @throws Refused `invalid` if the version changed nothing, or nothing is left to take back; `not_found` if it, or the
 *   version before it, is not kept; `conflict` if something does not open, or if SQL changed the record of a version
 *   since; `bound` if the project would have too many files
 */
export function planUndo(admin: AdminContext, set: SetAt, version: number) {
  return revert(admin, set, async (admin, { verified, before }, now) => {
    const { version: from } = before;
    const { records } = await readRecords(admin, before, verified);
    const undone = records.find((one) => one.version === version);
    if (undone === undefined || version > from) throw notKept(before, version);
    const names = namesOf(undone).sort(compareBytes);
    if (names.length === 0)
      throw new Refused("invalid", `Version ${version} changed nothing: there is nothing to undo.`);
    const later = records.filter((one) => one.version > version && one.version <= from);
    if (later.length < from - version) {
      const words = `The record of a version after ${version} was changed with SQL: who wrote what since is not known.`;
      throw new Refused("conflict", `${words} Nothing was changed.`);
    }
    // They are newest first, so the newest that wrote a name is the one that stays.
    const since = new Map(
      later.toReversed().flatMap((one) => namesOf(one).map((name) => [name, writerOf(one)] as const)),
    );
    const left = names.flatMap((name) => {
      const writer = since.get(name);
      return writer === undefined ? [] : [{ name, ...writer }];
    });
    const back = names.filter((name) => !since.has(name));
    const isOpened = back.some((name) => !undone.added.includes(name));
    const earlier = isOpened ? (await openVersion(admin, before, version - 1)).items : new Map<string, Item>();
    const wanted = new Map(back.map((name) => [name, earlier.get(name)]));
    const changes = await changesOf(admin, before, wanted, version - 1, now);
    requireAnyLeft(version, left, changes);
    const by = undone.actor.name;
    return { changes, planOf: (names) => ({ from, version, by, ...names, left }) };
  });
}

/** Names that stay, and the newest version that wrote each. */
type Left = readonly { readonly name: string; readonly version: number; readonly by: string }[];

/** @throws Refused `invalid` if somebody has written all names since */
function requireAnyLeft(version: number, left: Left, changes: SetChanges): void {
  if (changes.size > 0) return;
  const words = `Nothing of version ${version} is left to undo: all that it changed has been written again since`;
  const who = left
    .slice(0, 3)
    .map(({ name, version, by }) => `${name} in version ${version} by ${nameInPersonText(by)}`);
  const others = left.length > 3 ? `, and ${left.length - 3} more` : "";
  throw new Refused("invalid", `${words} (${who.join(", ")}${others}). Nothing was changed.`);
}

/** The plan names items, so it takes `see`, too. */
const rights = ["see", "write"] as const;

/** The current version, verified and opened. */
type Current = { readonly verified: VerifiedSet; readonly before: OpenSet };

/** @param find - the changes that carry a plan out, and the plan with the names that they write */
async function revert<Plan>(
  admin: AdminContext,
  { where, environment, kind }: SetAt,
  find: (
    admin: AdminContext,
    current: Current,
    now: number,
  ) => Promise<{ readonly changes: SetChanges; readonly planOf: (names: NamesWritten) => Plan }>,
) {
  const descriptor = descriptorOf(kind);
  const project = await findToChange(admin, where, rights, [environment]);
  const of = { project, descriptor, environment };
  const verified = await requireSet(admin, of);
  const before = openItems(of, verified);
  const { changes, planOf } = await find(admin, { verified, before }, project.now);
  const outcomeOf = (writes: ReadonlyMap<Environment, PlannedSet>) => {
    const write = writes.get(environment) as PlannedSet;
    const { added, changed, deleted, version } = write;
    const warnings = descriptor.warningsOf(where, environment, write);
    return { plan: planOf({ added, changed, deleted }), version, warnings };
  };
  const plan = { changes: new Map([[before, changes]]), outcomeOf, looked: [{ set: before }] };
  return planItems(admin, project, descriptor, plan, { action: "rollback", kinds: everyKind });
}

function writerOf({ version, actor }: VersionRecord) {
  return { version, by: actor.name };
}

/**
 * The changes that make items what they were in an earlier version.
 * @param wanted - undefined if that version did not have it
 * @throws Refused `conflict` if the content of a file is gone
 */
async function changesOf(
  admin: AdminContext,
  before: OpenSet,
  wanted: ReadonlyMap<string, Item | undefined>,
  version: number,
  now: number,
): Promise<SetChanges> {
  const { descriptor, project, items } = before;
  const changes = new Map<string, NewItem<Entry> | null>();
  for (const [name, item] of wanted) {
    if (item === undefined) {
      if (items.has(name)) changes.set(name, null);
      continue;
    }
    changes.set(name, dated(descriptor, item, now));
    if (!namesContent(descriptor, item.entry)) continue;
    const content = await openContent(admin, project.id, item.entry);
    if (content === undefined) throw damagedVersion(before, version);
    content.fill(0);
  }
  return changes;
}

/** An item as if it had been written at `updatedAt`. The writer gives the version. */
function dated({ datedValue }: KindDescriptor, { entry, value }: Item, updatedAt: number): NewItem<Entry> {
  const bytes = value && Buffer.from(value.unseen());
  return { entry: { ...entry, updatedAt }, value: bytes && (datedValue?.(bytes, updatedAt) ?? bytes) };
}

/** Whether an item was only written again. */
function isSame({ systemKeys }: AdminContext, descriptor: KindDescriptor, a: Item, b: Item): boolean {
  const [entry, other] = [a, b].map((item) => {
    const coin = isCanary(systemKeys.listing, item.entry);
    return JSON.stringify({ ...item.entry, updatedAt: 0, version: undefined, coin });
  });
  return entry === other && contentOf(descriptor, a) === contentOf(descriptor, b);
}
