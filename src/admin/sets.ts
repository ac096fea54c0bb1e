import { and, eq, sql } from "drizzle-orm";
import { compareBytes, type Environment, itemsMax } from "../names.ts";
import { setBytesMax, variablesArray, variablesListing } from "../render/variables-json.ts";
import { generationOf, open, seal } from "../seal/envelope.ts";
import type { DataKey } from "../seal/keyring.ts";
import { setPlace, variablePlace } from "../seal/place.ts";
import type { Desk } from "./desk.ts";
import type { LockedProject } from "./projects.ts";

/** A variable in the clear, as a set holds it. */
export type SetMember = { readonly name: string; readonly value: string; readonly updatedAt: number };

/** The row of a set. */
export function sealSet(
  dataKey: DataKey,
  projectId: string,
  environment: Environment,
  revision: number,
  members: readonly SetMember[],
) {
  const listing = variablesListing(members);
  const place = setPlace({ projectId, environment, revision, listing });
  const { generation } = dataKey;
  const sealed = seal(dataKey.subkey("set"), generation, place, Buffer.from(variablesArray(members)));
  return { projectId, environment, revision, generation, listing, sealed };
}

/**
 * Brings an environment's sealed set along with a write to its variables.
 *
 * A new set is the old one with this write's changes, never what the rows happen to be: a row that somebody deleted or
 * put back by SQL must go on to differ from the set, and not be made good by the next innocent write. Such a set keeps
 * a revision that is not the environment's, so that readers hold it against the rows; once both say the same again it is
 * current.
 *
 * @param changes - by name; null: deleted
 * @param revision - the environment's so far; the writing of the set raises it by one, by trigger like every write
 */
export async function keepSet(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  changes: ReadonlyMap<string, Omit<SetMember, "name"> | null>,
  revision: number,
): Promise<void> {
  const { variableSets: s } = desk.database.tables;
  const here = and(eq(s.projectId, project.id), eq(s.environment, environment));
  const [before] = await project.db.select().from(s).where(here);
  const rows = before ? undefined : await openRows(desk, project, environment);
  if (!before && !rows) return; // still more than a set holds
  const members = before ? applied(await openMembers(desk, project, before), changes) : (rows as SetMember[]);
  if (members.length > itemsMax || Buffer.byteLength(variablesArray(members)) > setBytesMax) {
    await project.db.delete(s).where(here);
    return;
  }
  const wasCurrent = !before || before.revision === project.revisions.get(environment);
  const current = wasCurrent || (await agree(desk, project, environment, members));
  const row = sealSet(project.dataKey, project.id, environment, current ? revision + 1 : notCurrent, members);
  await project.db
    .insert(s)
    .values(row)
    .onConflictDoUpdate({
      target: [s.projectId, s.environment],
      set: {
        revision: sql`excluded.revision`,
        generation: sql`excluded.generation`,
        listing: sql`excluded.listing`,
        sealed: sql`excluded.sealed`,
      },
    });
}

/** A revision that no environment has: each begins with the writing of its first set. */
const notCurrent = 0;

function applied(
  members: readonly SetMember[],
  changes: ReadonlyMap<string, Omit<SetMember, "name"> | null>,
): SetMember[] {
  const kept = members.filter(({ name }) => !changes.has(name));
  for (const [name, change] of changes) if (change) kept.push({ name, ...change });
  return kept.sort((a, b) => compareBytes(a.name, b.name));
}

async function openMembers(
  desk: Desk,
  project: LockedProject,
  set: Desk["database"]["tables"]["variableSets"]["$inferSelect"],
): Promise<SetMember[]> {
  const { environment, revision, listing, sealed } = set;
  const dataKey = await dataKeyOf(desk, project, generationOf(sealed));
  const place = setPlace({ projectId: project.id, environment, revision, listing });
  const array = open(dataKey.subkey("set"), place, sealed);
  return (JSON.parse(array.toString("utf8")) as { key: string; value: string; updatedAt: number }[]).map(
    ({ key, value, updatedAt }) => ({ name: key, value, updatedAt }),
  );
}

/** The environment's rows, opened; undefined where there are more than a set holds. @throws Fault `decryption_failed` */
async function openRows(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
): Promise<SetMember[] | undefined> {
  const { variables: v } = desk.database.tables;
  const rows = await project.db
    .select()
    .from(v)
    .where(and(eq(v.projectId, project.id), eq(v.environment, environment)))
    .limit(itemsMax + 1);
  if (rows.length > itemsMax) return undefined;
  const members: SetMember[] = [];
  for (const { id, name, version, sealed, updatedAt } of rows) {
    const place = variablePlace({ projectId: project.id, environment, variableId: id, version, name });
    const dataKey = await dataKeyOf(desk, project, generationOf(sealed));
    members.push({ name, value: open(dataKey.subkey("variable"), place, sealed).toString("utf8"), updatedAt });
  }
  return members.sort((a, b) => compareBytes(a.name, b.name));
}

/** Whether the rows, opened, are these members; rows that do not open are not. */
async function agree(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  members: readonly SetMember[],
): Promise<boolean> {
  const rows = await openRows(desk, project, environment).catch(() => undefined);
  return rows !== undefined && variablesArray(rows) === variablesArray(members);
}

async function dataKeyOf(desk: Desk, project: LockedProject, generation: number): Promise<DataKey> {
  if (generation === project.dataKey.generation) return project.dataKey;
  const { dataKeys: d } = desk.database.tables;
  const [row] = await project.db
    .select()
    .from(d)
    .where(and(eq(d.projectId, project.id), eq(d.generation, generation)));
  const owner = { id: project.id, organizationId: project.organization.id, slug: project.slug };
  return desk.keyring.dataKey(owner, generation, row?.rootId ?? "", row?.wrapped ?? Buffer.alloc(0));
}
