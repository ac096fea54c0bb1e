import type { Caller } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { compareBytes, type Environment, environmentMask, everyEnvironment, itemsMax } from "../names.ts";
import { type AccountRecord, beforeValues, type OpenedAccounts } from "../render/accounts.ts";
import { accounts } from "../seal/kinds.ts";
import { readSets, type Source } from "./lookup.ts";
import { noteOpened, passed, type Stages } from "./stages.ts";
import type { Read } from "./variables.ts";
import type { VerifiedSet } from "./verified-set.ts";

/**
 * Gates 7 to 9 for values: the accounts of `environment`, or of any environment that the key reaches, or a Fault. An
 * account is read from that environment, or from the one in which it changed last.
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`, or what a key that changed
 *   meanwhile is owed
 */
export async function readAccounts(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<Read<OpenedAccounts>> {
  passed(stages, "readFromMs");
  const values = environment === null ? everyEnvironment : environmentMask(environment);
  const wanted = { slug, descriptor: accounts, environments: everyEnvironment, values };
  const { project, sets, share } = await readSets(source, caller, wanted, signal);
  try {
    passed(stages, "readToMs");
    const { accounts: found, names } = foundIn(sets, environment);
    if (found.length > itemsMax) throw new Fault("too_many_items", `${found.length} accounts in ${project.id}`);
    const opened = new Map([...new Set(found.map(({ set }) => set))].map((set) => [set, set.open()]));
    const read = {
      accounts: found.map(({ before, set, index }) => ({ before, values: opened.get(set)?.item(index) as Buffer })),
      opened: [...opened.values()].map(({ all }) => all),
    };
    noteOpened(stages, "account", found.length);
    return { project, names, held: new Held(read), share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Gates 7 to 9 for names: as {@link readAccounts}, nothing decrypted. */
export async function listAccountNames(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<AccountRecord[]> {
  passed(stages, "readFromMs");
  const wanted = { slug, descriptor: accounts, environments: everyEnvironment, values: 0 };
  const { project, sets, share } = await readSets(source, caller, wanted, signal);
  share.release();
  passed(stages, "readToMs");
  const { accounts: found } = foundIn(sets, environment);
  if (found.length > itemsMax) throw new Fault("too_many_items", `${found.length} accounts in ${project.id}`);
  return found.map(({ record }) => record);
}

/** An account, and where its values are. */
type FoundAccount = {
  readonly record: AccountRecord;
  readonly before: string;
  readonly set: VerifiedSet<"accounts">;
  readonly index: number;
};
type Found = { readonly accounts: readonly FoundAccount[]; readonly names: readonly string[] };

/** What remembered sets hold together, by the first of them and the environment that was asked for. */
const remembered = new WeakMap<VerifiedSet<"accounts">, Remembered>();
type Remembered = Found & { readonly sets: readonly VerifiedSet<"accounts">[]; readonly environment: string | null };

/** The accounts of one environment, or of all sets, in byte order of name. */
function foundIn(sets: readonly VerifiedSet<"accounts">[], environment: Environment | null): Found {
  const [first] = sets;
  if (first === undefined) return { accounts: [], names: [] };
  const known = remembered.get(first);
  const isSame = known?.environment === environment && sets.every((set, index) => set === known.sets[index]);
  if (known !== undefined && isSame && known.sets.length === sets.length) return known;
  const accounts = merge(sets, environment);
  const found = { sets, environment, accounts, names: Object.freeze(accounts.map(({ record }) => record.name)) };
  remembered.set(first, found);
  return found;
}

function merge(sets: readonly VerifiedSet<"accounts">[], environment: Environment | null): FoundAccount[] {
  type Place = { readonly set: VerifiedSet<"accounts">; readonly index: number; readonly updatedAt: number };
  const found = new Map<string, { environments: Environment[]; latest: Place | undefined }>();
  for (const set of sets) {
    for (const [index, { name, updatedAt }] of set.entries.entries()) {
      const account = found.get(name) ?? { environments: [], latest: undefined };
      found.set(name, account);
      account.environments.push(set.environment);
      if (environment !== null && set.environment !== environment) continue;
      if (updatedAt > (account.latest?.updatedAt ?? -1)) account.latest = { set, index, updatedAt };
    }
  }
  const accounts: FoundAccount[] = [];
  for (const [name, { environments, latest }] of found) {
    if (latest === undefined) continue;
    const record = { name, environments, updatedAt: latest.updatedAt };
    accounts.push({ record, before: beforeValues(record), set: latest.set, index: latest.index });
  }
  return accounts.sort((a, b) => compareBytes(a.record.name, b.record.name));
}
