import type { Caller } from "../access/authenticate.ts";
import { placeOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { compareBytes, type Environment, environmentsOf, itemsMax } from "../names.ts";
import { generationOf, open } from "../seal/envelope.ts";
import { variablePlace } from "../seal/place.ts";
import type { PartRow } from "../store/place.ts";
import type { Selection } from "../store/variables.ts";
import { DataKeys, judgeStanding, type ReadProject, type Source } from "./source.ts";

export type Variable = { readonly name: string; readonly value: string; readonly updatedAt: number };
export type VariableName = { readonly name: string; readonly updatedAt: number };

/** Opened variables with what may be said of them before their release. */
export type ReadVariables = {
  readonly project: ReadProject;
  /** In byte order. */
  readonly names: readonly string[];
  readonly held: Held<readonly Variable[]>;
};

/**
 * Gates 7 to 9 for values: all of the selected variables, opened, or a Fault.
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`; or what a key that lost its
 *   standing meanwhile is owed
 */
export async function readVariables(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment,
  selection: Selection,
): Promise<ReadVariables> {
  const { grant } = caller;
  const rows = await source.variables.values({ keyId: grant.keyId, ...placeOf(grant, slug) }, environment, selection);
  const project = { id: standing(rows), organizationId: grant.organizationId, slug };
  const items = rows.filter((row) => row.part === 2);
  if (items.length > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} variables in ${project.id}`);
  items.sort(byName);
  const dataKeys = new DataKeys(source.keyring, project, rows.filter(isDataKey).map(wrappedKey));
  const opened = items.map((row) => openVariable(dataKeys, project.id, environment, row));
  return { project, names: items.map((row) => row.name), held: new Held(opened) };
}

/**
 * Gates 7 and 8 for names: those of one environment, or the distinct ones of every environment the key reaches with
 * their latest change. Nothing is decrypted.
 * @throws Fault as {@link readVariables} but `decryption_failed`
 */
export async function listVariableNames(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  selection: Selection,
): Promise<VariableName[]> {
  const { grant } = caller;
  const reach = environment === null ? environmentsOf(grant.environments) : [environment];
  const rows = await source.variables.names({ keyId: grant.keyId, ...placeOf(grant, slug) }, reach, selection);
  const projectId = standing(rows);
  const latest = new Map<string, number>();
  for (const row of rows) {
    if (row.part === 2) latest.set(row.name, Math.max(latest.get(row.name) ?? 0, row.updatedAt));
  }
  if (latest.size > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} variable names in ${projectId}`);
  return [...latest].map(([name, updatedAt]) => ({ name, updatedAt })).sort(byName);
}

function openVariable(dataKeys: DataKeys, projectId: string, environment: Environment, row: PartRow): Variable {
  const sealed = row.sealed as Buffer;
  const place = variablePlace({
    projectId,
    environment,
    variableId: row.id as string,
    version: row.number,
    name: row.name,
  });
  const plaintext = open(dataKeys.of(generationOf(sealed)).subkey("variable"), place, sealed);
  const value = plaintext.toString("utf8");
  plaintext.fill(0);
  return { name: row.name, value, updatedAt: row.updatedAt };
}

/** The project's id. @throws Fault as {@link judgeStanding} */
export function standing(rows: readonly PartRow[]): string {
  const row = rows.find(({ part }) => part === 0);
  return judgeStanding(row && { live: row.number, plan: row.name, projectId: row.id });
}

export function isDataKey(row: PartRow): boolean {
  return row.part === 1;
}

export function wrappedKey(row: PartRow): { id: string | null; number: number; bytes: Buffer | null } {
  return { id: row.id, number: row.number, bytes: row.sealed };
}

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareBytes(a.name, b.name);
}
