import type { Caller } from "../access/authenticate.ts";
import { placeOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { type Environment, type EnvironmentMask, environmentMask, environmentsOf, itemsMax } from "../names.ts";
import { generationOf, open } from "../seal/envelope.ts";
import { accountEntry } from "../seal/item-set.ts";
import { accountPlace } from "../seal/place.ts";
import type { PartRow } from "../store/place.ts";
import { holdAgainstItemSet } from "./item-sets.ts";
import { readRows, type Share } from "./memory.ts";
import { DataKeys, type Source } from "./source.ts";
import { opened as noteOpened, passed, type Stages } from "./stages.ts";
import type { ReadProject } from "./standing.ts";
import { byName, isDataKey, standing, wrappedKey } from "./variables.ts";

export type AccountName = {
  readonly name: string;
  /** Those of the account's environments that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
};
export type Account = AccountName & { readonly values: Readonly<Record<string, string>> };

export type ReadAccounts = {
  readonly project: ReadProject;
  readonly names: readonly string[];
  readonly held: Held<readonly Account[]>;
  /** The memory that these take; to be given back when the last byte has left or nothing will. */
  readonly share: Share;
};

/**
 * Gates 7 to 9: the project's accounts in `environment`, or in any environment the key reaches, opened, or a Fault.
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`; or what a key that lost its
 *   standing meanwhile is owed
 */
export async function readAccounts(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<ReadAccounts> {
  const { grant } = caller;
  passed(stages, "readFromMs");
  const place = { keyId: grant.keyId, ...placeOf(grant, slug) };
  const { rows, share } = await readRows(source.memory, caller, signal, (bytesMax) =>
    source.accounts.values(place, reachOf(caller, environment), bytesMax),
  );
  try {
    passed(stages, "readToMs");
    const project = { id: standing(rows), organizationId: grant.organizationId, slug };
    const items = itemsOf(rows, project.id);
    const dataKeys = new DataKeys(source.keyring, project, rows.filter(isDataKey).map(wrappedKey));
    const opened = items.map((row) => openAccount(caller, environment, dataKeys, project.id, row));
    holdAgainstSets(dataKeys, project.id, reachOf(caller, environment), rows, items);
    noteOpened(stages, "account", items.length);
    return { project, names: items.map((row) => row.name), held: new Held(opened), share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/** Gates 7 and 8 for names: as {@link readAccounts}, nothing decrypted. @throws Fault as there but `decryption_failed` */
export async function listAccountNames(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  stages?: Stages,
): Promise<AccountName[]> {
  const { grant } = caller;
  passed(stages, "readFromMs");
  const rows = await source.accounts.names(
    { keyId: grant.keyId, ...placeOf(grant, slug) },
    reachOf(caller, environment),
  );
  passed(stages, "readToMs");
  return itemsOf(rows, standing(rows)).map((row) => described(caller, row));
}

function reachOf(caller: Caller, environment: Environment | null): number {
  return environment === null ? caller.grant.environments : environmentMask(environment);
}

function itemsOf(rows: readonly PartRow[], projectId: string): PartRow[] {
  const items = rows.filter((row) => row.part === 2);
  if (items.length > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} accounts in ${projectId}`);
  return items.sort(byName);
}

/** Every account that is in an environment of `reach` was fetched, so the set of each must be these. */
function holdAgainstSets(
  dataKeys: DataKeys,
  projectId: string,
  reach: EnvironmentMask,
  rows: readonly PartRow[],
  items: readonly PartRow[],
): void {
  const entries = items.map((row) =>
    accountEntry(projectId, { ...row, id: row.id as string, version: row.number, sealed: row.sealed as Buffer }),
  );
  for (const environment of environmentsOf(reach)) {
    const set = rows.find((row) => row.part === 3 && row.id === environment);
    const here = entries.filter((_, index) => (items[index] as PartRow).environments & environmentMask(environment));
    holdAgainstItemSet(dataKeys, { projectId, kind: "accounts", environment }, set?.sealed, here);
  }
}

function described(caller: Caller, row: PartRow): AccountName {
  return {
    name: row.name,
    environments: environmentsOf(row.environments & caller.grant.environments),
    updatedAt: row.updatedAt,
  };
}

function openAccount(
  caller: Caller,
  environment: Environment | null,
  dataKeys: DataKeys,
  projectId: string,
  row: PartRow,
): Account {
  const sealed = row.sealed as Buffer;
  // The mask is part of what the account is sealed to, and the statement chose by it: one that SQL widened fails here.
  const place = accountPlace({
    projectId,
    accountId: row.id as string,
    version: row.number,
    environments: row.environments,
    name: row.name,
  });
  if (!(row.environments & reachOf(caller, environment))) throw new Fault("decryption_failed", `account ${row.id}`);
  const plaintext = open(dataKeys.of(generationOf(sealed)).subkey("account"), place, sealed);
  const values = JSON.parse(plaintext.toString("utf8")) as Record<string, string>;
  plaintext.fill(0);
  return { ...described(caller, row), values };
}
