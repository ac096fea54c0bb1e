import { and, eq, inArray, sql } from "drizzle-orm";
import { Fault } from "../fault.ts";
import { compareBytes, type Environment, itemsMax } from "../names.ts";
import { noListing, setBytesMax, variablesArray, variablesListing } from "../render/variables-json.ts";
import { generationOf, open, seal } from "../seal/envelope.ts";
import { entriesOf, type ItemKind, itemListing, variableEntry } from "../seal/item-set.ts";
import type { DataKey } from "../seal/keyring.ts";
import { setPlace, variablePlace } from "../seal/place.ts";
import type { Desk } from "./desk.ts";
import type { FoundProject, LockedProject } from "./projects.ts";
import { Refused } from "./refused.ts";

/** A variable in the clear, as a set holds it. */
export type SetMember = { readonly name: string; readonly value: string; readonly updatedAt: number };

/** In place of its members, of a set that would be too large: the fingerprint of each row by name (`seal/item-set.ts`). */
type Fingerprints = ReadonlyMap<string, string>;

/** The row of a set. */
export function sealSet(
  dataKey: DataKey,
  projectId: string,
  environment: Environment,
  revision: number,
  members: readonly SetMember[] | Fingerprints,
) {
  const listing = isListed(members) ? noListing : variablesListing(members);
  const text = isListed(members) ? itemListing(members) : variablesArray(members);
  const place = setPlace({ projectId, environment, revision, listing });
  const { generation } = dataKey;
  const sealed = seal(dataKey.subkey("set"), generation, place, Buffer.from(text));
  return { projectId, environment, revision, generation, listing, sealed };
}

function isListed(members: readonly SetMember[] | Fingerprints): members is Fingerprints {
  return members instanceof Map;
}

/** A variable that was sealed anew as it was found: its fingerprints before and after. */
export type Resealed = { readonly name: string; readonly before: string; readonly after: string };

/**
 * Brings an environment's sealed set along with a write to its variables.
 *
 * A new set is the old one with this write's changes, never what the rows happen to be: a row that somebody deleted or
 * put back by SQL must go on to differ from the set, and not be made good by the next innocent write. Such a set keeps
 * a revision that is not the environment's, so that readers hold it against the rows; once both say the same again it is
 * current. A set that was itself deleted or changed says nothing of what there should be, and no write may stand in for
 * it.
 *
 * @param changes - by name; null: deleted
 * @param carried - what was sealed anew and says the same as before
 * @param revision - the environment's so far; the writing of the set raises it by one, by trigger like every write
 * @returns which of the changed names the old set had
 * @throws Refused `conflict` where the old set is gone or does not open
 */
export async function keepSet(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  changes: ReadonlyMap<string, Omit<SetMember, "name"> | null>,
  revision: number,
  carried: readonly Resealed[] = [],
): Promise<ReadonlySet<string>> {
  const { variableSets: s } = desk.database.tables;
  const here = and(eq(s.projectId, project.id), eq(s.environment, environment));
  const [before] = await project.db.select().from(s).where(here);
  const base = before && (await openMembers(desk, project, before));
  if (!base) throw brokenSet(project, "variables", environment);
  const names = isListed(base) ? [...base.keys()] : base.map(({ name }) => name);
  const members = isListed(base)
    ? await membersOf(desk, project, environment, await brought(desk, project, environment, base, changes, carried))
    : applied(base, changes);
  const kept = isListed(members) || fits(members) ? members : await listed(desk, project, environment, members);
  const wasCurrent = before.revision === project.revisions.get(environment);
  const current = wasCurrent || isListed(kept) || (await agree(desk, project, environment, kept));
  const row = sealSet(project.dataKey, project.id, environment, current ? revision + 1 : notCurrent, kept);
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
  return new Set(names.filter((name) => changes.has(name)));
}

/** What whoever writes is told where a set of an environment, which always has one, is gone or does not open. */
export function brokenSet(
  { organization, slug }: FoundProject,
  kind: "variables" | ItemKind,
  environment: Environment,
): Refused {
  return new Refused(
    "conflict",
    `The record of which ${kind} there are in ${organization.slug}/${slug} ${environment} was deleted or changed by other means than Keyhole's: nothing was written. Restore a backup, or delete the project and make it anew.`,
  );
}

function fits(members: readonly SetMember[]): boolean {
  return members.length <= itemsMax && Buffer.byteLength(variablesArray(members)) <= setBytesMax;
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

/** The listing of a set that is too large, with this write's changes. */
async function brought(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  base: Fingerprints,
  changes: ReadonlyMap<string, Omit<SetMember, "name"> | null>,
  carried: readonly Resealed[],
): Promise<Fingerprints> {
  const entries = new Map(base);
  for (const { name, before, after } of carried) if (entries.get(name) === before) entries.set(name, after);
  const written: string[] = [];
  for (const [name, change] of changes) {
    entries.delete(name);
    if (change) written.push(name);
  }
  const { variables: v } = desk.database.tables;
  for (let from = 0; from < written.length; from += rowsPerPage) {
    const some = inArray(v.name, written.slice(from, from + rowsPerPage));
    for (const row of await project.db
      .select()
      .from(v)
      .where(and(inEnvironment(desk, project, environment), some))) {
      entries.set(...variableEntry(project.id, environment, row));
    }
  }
  return entries;
}

/** The members of a set that may be small enough again, where its rows are those of its listing; else the listing. */
async function membersOf(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  entries: Fingerprints,
): Promise<readonly SetMember[] | Fingerprints> {
  if (entries.size > itemsMax) return entries;
  const { variables: v } = desk.database.tables;
  const rows = await project.db
    .select()
    .from(v)
    .where(inEnvironment(desk, project, environment))
    .limit(itemsMax + 1);
  const found = rows.map((row) => variableEntry(project.id, environment, row));
  if (itemListing(found) !== itemListing(entries)) return entries;
  const members = await openRows(desk, project, environment);
  return members && fits(members) ? members : entries;
}

/** The listing of members that are too many or too large; a row that is not what its member says has no place in it. */
async function listed(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  members: readonly SetMember[],
): Promise<Fingerprints> {
  const { variables: v } = desk.database.tables;
  const entries = new Map(members.map(({ name }) => [name, ""]));
  for (let from = 0; from < members.length; from += rowsPerPage) {
    const some = new Map(members.slice(from, from + rowsPerPage).map((member) => [member.name, member]));
    const rows = await project.db
      .select()
      .from(v)
      .where(and(inEnvironment(desk, project, environment), inArray(v.name, [...some.keys()])));
    for (const row of rows) {
      const member = some.get(row.name);
      const opened = await openRow(desk, project, environment, row);
      if (member && opened?.value === member.value && opened.updatedAt === member.updatedAt) {
        entries.set(...variableEntry(project.id, environment, row));
      }
    }
  }
  return entries;
}

/** As many as one statement may take by name, and memory for their values. */
const rowsPerPage = 500;

function inEnvironment(desk: Desk, project: LockedProject, environment: Environment) {
  const { variables: v } = desk.database.tables;
  return and(eq(v.projectId, project.id), eq(v.environment, environment));
}

/** What a set holds; undefined where it does not open. */
async function openMembers(
  desk: Desk,
  project: LockedProject,
  set: Desk["database"]["tables"]["variableSets"]["$inferSelect"],
): Promise<SetMember[] | Fingerprints | undefined> {
  const { environment, revision, listing, sealed } = set;
  try {
    const dataKey = await dataKeyOf(desk, project, generationOf(sealed));
    const array = open(
      dataKey.subkey("set"),
      setPlace({ projectId: project.id, environment, revision, listing }),
      sealed,
    );
    const text = array.toString("utf8");
    array.fill(0);
    if (listing === noListing) return new Map(entriesOf(text));
    return (JSON.parse(text) as { key: string; value: string; updatedAt: number }[]).map(
      ({ key, value, updatedAt }) => ({ name: key, value, updatedAt }),
    );
  } catch (error) {
    if (error instanceof Fault && error.code === "decryption_failed") return undefined;
    throw error;
  }
}

/** The environment's rows, opened; undefined where one does not open, or there are more than a set holds. */
async function openRows(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
): Promise<SetMember[] | undefined> {
  const { variables: v } = desk.database.tables;
  const rows = await project.db
    .select()
    .from(v)
    .where(inEnvironment(desk, project, environment))
    .limit(itemsMax + 1);
  if (rows.length > itemsMax) return undefined;
  const members: SetMember[] = [];
  for (const row of rows) {
    const member = await openRow(desk, project, environment, row);
    if (!member) return undefined;
    members.push(member);
  }
  return members.sort((a, b) => compareBytes(a.name, b.name));
}

/** A row, opened; undefined where it does not open. */
async function openRow(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  { id, name, version, sealed, updatedAt }: Desk["database"]["tables"]["variables"]["$inferSelect"],
): Promise<SetMember | undefined> {
  try {
    const place = variablePlace({ projectId: project.id, environment, variableId: id, version, name });
    const dataKey = await dataKeyOf(desk, project, generationOf(sealed));
    const plaintext = open(dataKey.subkey("variable"), place, sealed);
    const value = plaintext.toString("utf8");
    plaintext.fill(0);
    return { name, value, updatedAt };
  } catch (error) {
    if (error instanceof Fault && error.code === "decryption_failed") return undefined;
    throw error;
  }
}

/** Whether the rows, opened, are these members; where one does not open they are not. */
async function agree(
  desk: Desk,
  project: LockedProject,
  environment: Environment,
  members: readonly SetMember[],
): Promise<boolean> {
  const rows = await openRows(desk, project, environment);
  return rows !== undefined && variablesArray(rows) === variablesArray(members);
}

/**
 * A project's data key of this generation, opened; undefined where there is none.
 * @throws Fault `decryption_failed` where it does not open
 */
export async function findDataKey(
  desk: Desk,
  project: LockedProject,
  generation: number,
): Promise<DataKey | undefined> {
  if (generation === project.dataKey.generation) return project.dataKey;
  // Damaged bytes may name one that the column cannot hold.
  if (generation > generationMax) return undefined;
  const { dataKeys: d } = desk.database.tables;
  const [row] = await project.db
    .select()
    .from(d)
    .where(and(eq(d.projectId, project.id), eq(d.generation, generation)));
  const owner = { id: project.id, organizationId: project.organization.id, slug: project.slug };
  return row && desk.keyring.dataKey(owner, generation, row.rootId, row.wrapped);
}

/** The same. @throws Fault `decryption_failed` where there is none, too */
export async function dataKeyOf(desk: Desk, project: LockedProject, generation: number): Promise<DataKey> {
  const dataKey = await findDataKey(desk, project, generation);
  if (dataKey) return dataKey;
  throw new Fault("decryption_failed", `${project.id} has no data key of generation ${generation}`);
}

/** Of PostgreSQL's integer. */
const generationMax = 2 ** 31 - 1;
