import { Fault } from "../../core/fault.ts";
import { Held } from "../../core/held.ts";
import { compareBytes, type Environment, environmentMask, everyEnvironment, itemsMax } from "../../core/names.ts";
import type { OpenedItems } from "../../seal/set.ts";
import { type Reading, readListings, readSets } from "../../serve/sets/lookup.ts";
import { noteOpened } from "../../serve/sets/stages.ts";
import { digestOf, type ReadProject, type VerifiedSet } from "../../serve/sets/verified-set.ts";
import { type AccountEntry, accounts } from "./entry.ts";
import { type AccountRecord, beforeValues } from "./render.ts";

type AccountsQuery = {
  readonly project: string;
  /** Null: every environment that the key reaches. */
  readonly environment: Environment | null;
};

/**
 * Gates 7 to 9 for values: the accounts of `environment`, or of any environment that the key reaches. An account is
 * read from that environment, or from the one in which it changed last.
 */
export function readAccounts(reading: Reading, { project: slug, environment }: AccountsQuery) {
  const values = environment === null ? everyEnvironment : environmentMask(environment);
  const query = { slug, descriptor: accounts, environments: everyEnvironment, values };
  return readSets(reading, query, (project, sets) => {
    const { accounts: found, names, fingerprint } = foundIn(project, sets, environment);
    const opened = new Map<VerifiedSet<AccountEntry>, OpenedItems>();
    for (const { set } of found) if (!opened.has(set)) opened.set(set, set.open());
    const read = found.map(({ before, set, index }) => ({ before, index, opened: opened.get(set) as OpenedItems }));
    noteOpened(reading.stages, accounts.item, found.length);
    return { project, entries: [names], fingerprint, held: new Held(read) };
  });
}

/** Gates 7 to 9 for names, as {@link readAccounts}, but nothing is decrypted. The fingerprint covers the values too. */
export async function listAccounts(reading: Reading, { project: slug, environment }: AccountsQuery) {
  const query = { slug, descriptor: accounts, environments: everyEnvironment };
  const { project, sets } = await readListings(reading, query);
  const { accounts: found, fingerprint } = foundIn(project, sets, environment);
  return { body: JSON.stringify({ environment, accounts: found.map(({ record }) => record) }), fingerprint };
}

/** Where the values of an account are. */
type AccountValue = { readonly set: VerifiedSet<AccountEntry>; readonly index: number };
type FoundAccount = AccountValue & { readonly record: AccountRecord; readonly before: string };
type FoundAccounts = {
  readonly sets: readonly VerifiedSet<AccountEntry>[];
  readonly environment: Environment | null;
  readonly accounts: readonly FoundAccount[];
  readonly names: readonly string[];
  readonly fingerprint: string;
};

/** What sets hold together; the first of them keeps it. */
const newMemory = (): { found?: FoundAccounts } => ({});

/** The accounts of one environment, or of all sets, in byte order of name. */
function foundIn({ id }: ReadProject, sets: readonly VerifiedSet<AccountEntry>[], environment: Environment | null) {
  const [first] = sets as [VerifiedSet<AccountEntry>];
  const memory = first.once(newMemory);
  const known = memory.found;
  const isSame = known?.sets.length === sets.length && sets.every((set, index) => set === known.sets[index]);
  if (isSame && known.environment === environment) return known;
  const accounts = merge(sets, environment);
  if (accounts.length > itemsMax) throw new Fault("too_many_items", `${accounts.length} accounts in ${id}`);
  const names = Object.freeze(accounts.map(({ record }) => record.name));
  const values = accounts.map(({ before, set, index }) => [before, set.environment, set.entries[index]?.version]);
  const found = { sets, environment, accounts, names, fingerprint: digestOf(JSON.stringify(values)) };
  memory.found = found;
  return found;
}

function merge(sets: readonly VerifiedSet<AccountEntry>[], environment: Environment | null): FoundAccount[] {
  const found = new Map<
    string,
    { environments: Environment[]; latest?: AccountValue & { readonly updatedAt: number } }
  >();
  for (const set of sets) {
    for (const [index, { name, updatedAt }] of set.entries.entries()) {
      const account = found.getOrInsertComputed(name, () => ({ environments: [] }));
      account.environments.push(set.environment);
      if (environment !== null && set.environment !== environment) continue;
      if (updatedAt > (account.latest?.updatedAt ?? -1)) account.latest = { set, index, updatedAt };
    }
  }
  const accounts: FoundAccount[] = [];
  for (const [name, { environments, latest }] of found) {
    if (latest === undefined) continue;
    const record = { name, environments, updatedAt: latest.updatedAt };
    accounts.push({ ...latest, record, before: beforeValues(record) });
  }
  return accounts.sort((a, b) => compareBytes(a.record.name, b.record.name));
}
