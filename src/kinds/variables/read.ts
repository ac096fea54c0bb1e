import { BoundedMap } from "../../core/bounded-map.ts";
import { Fault } from "../../core/fault.ts";
import { Held } from "../../core/held.ts";
import {
  compareBytes,
  type Environment,
  environmentMask,
  everyEnvironment,
  itemsMax,
  type Selection,
} from "../../core/names.ts";
import type { OpenedItems } from "../../seal/set.ts";
import { type Reading, readListings, readSets } from "../../serve/sets/lookup.ts";
import { noteOpened } from "../../serve/sets/stages.ts";
import { digestOf, type VerifiedSet } from "../../serve/sets/verified-set.ts";
import { type VariableEntry, variables } from "./entry.ts";

export type VariablesQuery = {
  readonly project: string;
  /** Null: the distinct names over every environment that the key reaches. */
  readonly environment: Environment | null;
  readonly selection: Selection;
};

/** Gates 7 to 9 for values: all of the selected variables. */
export function readVariables(reading: Reading, { project: slug, environment, selection }: VariablesQuery) {
  if (environment === null) throw new Error("values are read from one environment");
  const mask = environmentMask(environment);
  const query = { slug, descriptor: variables, environments: mask, values: mask };
  return readSets(reading, query, (project, sets) => {
    const [set] = sets as [VerifiedSet<VariableEntry>];
    const { chosen, names, fingerprint } = partOf(set, selection);
    if (names.length > itemsMax) throw new Fault("too_many_items", `${names.length} variables in ${project.id}`);
    const opened = set.open();
    noteOpened(reading.stages, variables.item, names.length);
    const objects = chosen === "all" ? opened.all : pick(opened, chosen);
    const canaries = canariesOf(set, names);
    return { project, entries: [names], canaries, fingerprint, held: new Held({ objects }) };
  });
}

/**
 * Gates 7 to 9 for names: those of one environment, or the distinct ones of every environment that the key reaches with
 * their latest change. Nothing is decrypted, and the fingerprint covers the values too.
 */
export async function listVariables(reading: Reading, { project: slug, environment, selection }: VariablesQuery) {
  const bodyOf = (listing: string) => `{"environment":${JSON.stringify(environment)},"variables":${listing}}`;
  const environments = environment === null ? everyEnvironment : environmentMask(environment);
  const query = { slug, descriptor: variables, environments };
  const { project, sets } = await readListings(reading, query);
  const [first] = sets;
  if (sets.length === 1 && first !== undefined && selection.by === "all" && first.names.length <= itemsMax) {
    return { body: bodyOf(first.once(shownOf)), names: first.names, fingerprint: first.once(wholeOf).fingerprint };
  }
  const latest = new Map<string, number>();
  const fingerprints: string[] = [];
  for (const set of sets) {
    const { chosen, fingerprint } = partOf(set, selection);
    for (const { key, updatedAt } of entriesOf(set, chosen)) {
      latest.set(key, Math.max(latest.get(key) ?? 0, updatedAt));
    }
    fingerprints.push(fingerprint);
  }
  if (latest.size > itemsMax) throw new Fault("too_many_items", `${latest.size} variable names in ${project.id}`);
  const sorted = [...latest].sort(([a], [b]) => compareBytes(a, b));
  const listing = JSON.stringify(sorted.map(([key, updatedAt]) => ({ key, updatedAt })));
  return { body: bodyOf(listing), names: latest.keys(), fingerprint: fingerprints.join(" ") };
}

/** The canaries among names of a set; undefined if there are none. */
function canariesOf(set: VariableSet, names: readonly string[]): readonly string[] | undefined {
  const all = set.once(allCanariesOf);
  const found = all.size === 0 ? [] : names.filter((name) => all.has(name));
  return found.length === 0 ? undefined : found;
}

function allCanariesOf(set: VariableSet): ReadonlySet<string> {
  return new Set(set.entries.filter((entry) => set.isCanary(entry)).map(({ key }) => key));
}

/** The listing of a whole set as metadata shows it. */
function shownOf({ entries }: VariableSet): string {
  return JSON.stringify(entries.map(({ key, updatedAt }) => ({ key, updatedAt })));
}

type VariableSet = VerifiedSet<VariableEntry>;

/** What a selection takes of a set. */
type PartOfSet = { readonly chosen: ChosenIndexes; readonly names: readonly string[]; readonly fingerprint: string };

/** Machines repeat their queries, so the last few selections of a set are kept. They hold no value. */
function partOf(set: VariableSet, selection: Selection): PartOfSet {
  if (selection.by === "all") {
    return set.once(wholeOf);
  }
  const asked = selection.by === "prefix" ? `prefix ${selection.prefix}` : `names ${selection.names}`;
  const parts = set.once(newParts);
  const known = parts.get(asked);
  if (known !== undefined) return known;
  const chosen = choose(set.names, selection);
  const names = Object.freeze(chosen.map((index) => set.names[index] as string));
  const part = { chosen, names, fingerprint: fingerprintOf(set, chosen) };
  if (asked.length <= askedLengthMax) parts.set(asked, part);
  return part;
}

const askedLengthMax = 512;
const newParts = () => new BoundedMap<PartOfSet>(4);

function wholeOf(set: VariableSet): PartOfSet {
  return { chosen: "all", names: set.names, fingerprint: fingerprintOf(set, "all") };
}

/** Does not change with the version, the data key, notes or days of rotation. Needs no decryption. */
function fingerprintOf(set: VariableSet, chosen: ChosenIndexes): string {
  const members: readonly (keyof VariableEntry)[] = ["key", "updatedAt", "coin", "version"];
  return `${set.environment} ${digestOf(JSON.stringify(entriesOf(set, chosen), [...members]))}`;
}

function entriesOf({ entries }: VariableSet, chosen: ChosenIndexes) {
  return chosen === "all" ? entries : chosen.flatMap((index) => entries[index] ?? []);
}

type ChosenIndexes = readonly number[] | "all";

/** The indexes of the selected names, in order. */
function choose(names: readonly string[], selection: Exclude<Selection, { by: "all" }>): readonly number[] {
  const selected =
    selection.by === "prefix"
      ? (name: string) => name.startsWith(selection.prefix)
      : Set.prototype.has.bind(new Set(selection.names));
  return names.flatMap((name, index) => (selected(name) ? [index] : []));
}

/** Some of the items with commas between them; all that was opened is zeroed. */
function pick({ all, item }: OpenedItems, chosen: readonly number[]): Buffer {
  const objects = Buffer.concat(chosen.flatMap((index, at) => (at === 0 ? [item(index)] : [comma, item(index)])));
  all.fill(0);
  return objects;
}

const comma = Buffer.from(",");
