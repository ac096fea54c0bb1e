import type { Caller } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { compareBytes, type Environment, environmentMask, everyEnvironment, itemsMax } from "../names.ts";
import type { AccountRecord, OpenedAccount } from "../render/accounts.ts";
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
): Promise<Read<readonly OpenedAccount[]>> {
  passed(stages, "readFromMs");
  const values = environment === null ? everyEnvironment : environmentMask(environment);
  const wanted = { slug, descriptor: accounts, environments: everyEnvironment, values };
  const { project, sets, share } = await readSets(source, caller, wanted, signal);
  try {
    passed(stages, "readToMs");
    const found = foundIn(sets, environment);
    if (found.length > itemsMax) throw new Fault("too_many_items", `${found.length} accounts in ${project.id}`);
    const opened = new Map([...new Set(found.map(({ set }) => set))].map((set) => [set, set.open().items]));
    const read = found.map(({ record, set, index }) => ({ record, values: opened.get(set)?.[index] as Buffer }));
    const taken = new Set(read.map(({ values }) => values));
    for (const item of [...opened.values()].flat()) if (!taken.has(item)) item.fill(0);
    noteOpened(stages, "account", read.length);
    return { project, names: found.map(({ record }) => record.name), held: new Held(read), share };
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
  const found = foundIn(sets, environment);
  if (found.length > itemsMax) throw new Fault("too_many_items", `${found.length} accounts in ${project.id}`);
  return found.map(({ record }) => record);
}

/** An account, and where its values are. */
type FoundAccount = {
  readonly record: AccountRecord;
  readonly set: VerifiedSet<"accounts">;
  readonly index: number;
};

/** The accounts of one environment, or of all sets, in byte order of name. */
function foundIn(sets: readonly VerifiedSet<"accounts">[], environment: Environment | null): FoundAccount[] {
  const found = new Map<string, { environments: Environment[]; latest: Omit<FoundAccount, "record"> | undefined }>();
  const updatedAt = ({ set, index }: Omit<FoundAccount, "record">) => set.entries[index]?.updatedAt ?? 0;
  for (const set of sets) {
    for (const [index, name] of set.names.entries()) {
      const account = found.get(name) ?? { environments: [], latest: undefined };
      found.set(name, account);
      account.environments.push(set.environment);
      if (environment !== null && set.environment !== environment) continue;
      const here = { set, index };
      if (account.latest === undefined || updatedAt(here) > updatedAt(account.latest)) account.latest = here;
    }
  }
  return [...found]
    .flatMap(([name, { environments, latest }]) =>
      latest === undefined ? [] : [{ record: { name, environments, updatedAt: updatedAt(latest) }, ...latest }],
    )
    .sort((a, b) => compareBytes(a.record.name, b.record.name));
}
