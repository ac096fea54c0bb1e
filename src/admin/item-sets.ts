import { and, eq, sql } from "drizzle-orm";
import { Fault } from "../fault.ts";
import { type Environment, type EnvironmentMask, environmentMask, environments, environmentsOf } from "../names.ts";
import { generationOf } from "../seal/envelope.ts";
import { entriesOf, type ItemEntry, type ItemKind, itemListing, openItemSet, sealItemSet } from "../seal/item-set.ts";
import type { DataKey } from "../seal/keyring.ts";
import type { Desk } from "./desk.ts";
import type { LockedProject } from "./projects.ts";
import { brokenSet, dataKeyOf } from "./sets.ts";

/** What a write did to one item. */
export type ItemChange = {
  /** As it is stored now, in these environments; a mask of 0: nowhere any more. */
  readonly entry: ItemEntry;
  readonly environments: EnvironmentMask;
  /** Where else it may have stood before, and does no more. What SQL did to its row, only the sets know. */
  readonly before: EnvironmentMask;
  /**
   * Its fingerprint before, where nobody gave the content anew: it was taken from the row. Only where the row was the
   * one that the set has does the set take the new one.
   */
  readonly found?: string;
};

/** The sets of a project that has no accounts and no files yet. */
export function emptyItemSets(dataKey: DataKey, projectId: string) {
  const kinds = ["accounts", "files"] as const;
  return kinds.flatMap((kind) =>
    environments.map((environment) => itemSetRow(dataKey, projectId, kind, environment, itemListing([]))),
  );
}

/**
 * Brings the sets of a project's accounts or files along with a write to them.
 *
 * A new set is the old one with this write's changes, never what the rows happen to be: an item that somebody deleted,
 * added or put back by SQL goes on to differ from its set until a person writes it again, or deletes it. A set that was
 * itself deleted or changed says nothing of what there should be, and no write may stand in for it.
 *
 * @param changes - one after the other
 * @returns the environments where a set had one of the changed names before
 * @throws Refused `conflict` where the set of an environment that is touched does not open
 */
export async function keepItemSets(
  desk: Desk,
  project: LockedProject,
  kind: ItemKind,
  changes: readonly ItemChange[],
): Promise<EnvironmentMask> {
  const touched = changes.reduce((all, change) => all | change.environments | change.before, 0);
  let stood = 0;
  for (const environment of environmentsOf(touched)) {
    if (await keepItemSet(desk, project, kind, environment, changes)) stood |= environmentMask(environment);
  }
  return stood;
}

/** The same for one environment; its set is sealed under the newest data key even where nothing in it changes. */
export async function keepItemSet(
  desk: Desk,
  project: LockedProject,
  kind: ItemKind,
  environment: Environment,
  changes: readonly ItemChange[],
): Promise<boolean> {
  const entries = await openEntries(desk, project, kind, environment);
  const stood = changes.some(({ entry: [name] }) => entries.has(name));
  const bit = environmentMask(environment);
  for (const { entry, environments, before, found } of changes) {
    const [name, fingerprint] = entry;
    if (environments & bit) {
      if (found === undefined || entries.get(name) === found) entries.set(name, fingerprint);
    } else if (before & bit) {
      entries.delete(name);
    }
  }
  const { itemSets: s } = desk.database.tables;
  await project.db
    .insert(s)
    .values(itemSetRow(project.dataKey, project.id, kind, environment, itemListing(entries)))
    .onConflictDoUpdate({
      target: [s.projectId, s.kind, s.environment],
      set: {
        generation: sql`excluded.generation`,
        sealed: sql`excluded.sealed`,
        listing: sql`excluded.listing`,
      },
    });
  return stood;
}

function itemSetRow(dataKey: DataKey, projectId: string, kind: ItemKind, environment: Environment, listing: string) {
  const sealed = sealItemSet(dataKey, { projectId, kind, environment }, listing);
  return { projectId, kind, environment, generation: dataKey.generation, sealed, listing };
}

/** What a set has, by name or path. @throws Refused `conflict` where it is gone, or not one of ours */
async function openEntries(
  desk: Desk,
  project: LockedProject,
  kind: ItemKind,
  environment: Environment,
): Promise<Map<string, string>> {
  const { itemSets: s } = desk.database.tables;
  const [row] = await project.db
    .select()
    .from(s)
    .where(and(eq(s.projectId, project.id), eq(s.kind, kind), eq(s.environment, environment)));
  try {
    if (!row) throw new Fault("decryption_failed", "the set is gone");
    const dataKey = await dataKeyOf(desk, project, generationOf(row.sealed));
    openItemSet(() => dataKey, { projectId: project.id, kind, environment }, row.listing, row.sealed);
    return new Map(entriesOf(row.listing));
  } catch (error) {
    if (error instanceof Fault && error.code === "decryption_failed") throw brokenSet(project, kind, environment);
    throw error;
  }
}
