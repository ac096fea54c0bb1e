import { getTableColumns, type SQL, sql } from "drizzle-orm";
import {
  type AppendCondition,
  conditionFrom,
  type FoundSet,
  type KeyLookup,
  type StoredSet,
} from "../core/set-rows.ts";
import type { KeyRow } from "../serve/access/authenticate.ts";
import type { GrantRow } from "../serve/access/grant.ts";
import { compile, type Database, integerValue, literal, malformed, textValue } from "./database.ts";
import { grouped } from "./grouped.ts";
import {
  bounded,
  fromBytesMax,
  grantColumns,
  liveness,
  projectInReach,
  projectList,
  projectsBytesMax,
  setsInReach,
  termsBytesMax,
  withDataKey,
} from "./reach.ts";
import { rowVersion, type SetColumns, setColumns } from "./sets.ts";

type LookupRow = Omit<KeyRow, "target"> & {
  readonly projectId: string | null;
  readonly counts: string | null;
  /** 1 if the notary has found any row to be against the record, else 0. */
  readonly excepted: number;
  /** The last entry of people; null before the first. */
  readonly people: number | null;
  /** Which server answered. */
  readonly server: string;
  /** A hash of the whole row; null unless its list of projects and its terms are short, and nothing is excepted. */
  readonly state?: string | null;
};
/** A row for each set, or one without. */
type RowWithSet = LookupRow & SetColumns;
/** `sets` has each set's environment and row version, with semicolons between sets. */
type RowWithVersions = LookupRow & { readonly n: number; readonly sets: string | null };

/** Sets up to this size come along with the lookup on SQLite, where reading them costs microseconds. */
const broughtBytesMax = 256 * 1024;

/**
 * Prepares the one statement that every request begins with: the key, its organization and, through the key's scope,
 * the project and the sets that are asked for, in one snapshot. PostgreSQL says which version of each set is current;
 * SQLite gives the sets themselves. Requests that wait at the same moment share a statement, or a transaction of SQLite.
 * @param counted - the kinds whose counts come with the project
 * @param seen - is told which server answered, and the last entry of people in the snapshot that judges the key
 */
export function keyLookups(
  database: Database,
  counted: readonly CountedKind[],
  seen?: {
    readonly people: () => number;
    readonly isCurrent: (found: { readonly people: number; readonly server: string }) => boolean;
    readonly note: (found: { readonly people: number; readonly server: string }, before: number) => Promise<void>;
  },
): (lookup: KeyLookup) => Promise<KeyRow | undefined> {
  const find =
    database.dialect === "postgres"
      ? grouped(postgresLookups(database, counted))
      : grouped(sqliteLookups(database, counted), undefined, true);
  const except = exceptionsOf(database);
  return async (lookup) => {
    const before = seen?.people() ?? 0;
    const found = await find(lookup);
    if (found === undefined || seen === undefined) return found;
    const by = { people: found.people ?? 0, server: found.server };
    await seen.note(by, before);
    if (found.excepted !== 0) return except(found, lookup);
    const { condition } = found;
    return condition ? Object.assign(found, { again: { ...condition, isCurrent: () => seen.isCurrent(by) } }) : found;
  };
}

/** Prepares the second lookup. A key that was put back is not live, and sets that were put back are missing. */
function exceptionsOf(database: Database): (found: KeyRow, lookup: KeyLookup) => Promise<KeyRow> {
  const { auditExceptions: e } = database.tables;
  const find = database.query<{ subject: string }>(sql`
    select ${e.subject} as subject from ${e} where ${database.isMember(e.subject, sql.placeholder("subjects"))}`);
  return async (found, { kind }) => {
    const { keyId, target } = found;
    const key = `key:${keyId}`;
    const subjectOf = (environment: string) => `set:${target?.projectId}/${kind}/${environment}`;
    const project = `project:${target?.projectId}`;
    const asked = [key, project, ...(target?.sets ?? []).map(({ environment }) => subjectOf(environment))];
    const excepted = new Set((await find({ subjects: JSON.stringify(asked) })).map(({ subject }) => subject));
    const isOut = (environment: string) => excepted.has(project) || excepted.has(subjectOf(environment));
    const sets = target?.sets.filter(({ environment }) => !isOut(environment)) ?? [];
    return { ...found, live: excepted.has(key) ? 0 : found.live, target: target && { ...target, sets } };
  };
}

type FoundKey =
  | (KeyRow & Pick<LookupRow, "excepted" | "people" | "server"> & { condition?: AppendCondition | undefined })
  | undefined;
/** Answers lookups in their order. */
type FindAll = (lookups: readonly KeyLookup[]) => Promise<FoundKey[]>;

function sqliteLookups(database: Database, counted: readonly CountedKind[]): FindAll {
  const { sets: s } = database.tables;
  const names = ["digest", "slug", "kind", "environments", "values"];
  const columns = names.map((name) => sql`${sql.placeholder(name)} as ${sql.identifier(name)}`);
  const find = database.query<RowWithSet>(sql`
    select ${keyColumns(database, counted)}, ${setColumns(database, sql`ask."values"`, literal(broughtBytesMax))}
    from (select ${sql.join(columns, sql`, `)}) as ask ${keyJoins(database, counted, sql`ask.digest`)}
    left join ${s} on ${askedSets(database)} ${withDataKey(database, s)}`);
  return async (lookups) => {
    const begin = () => lookups.map(find);
    const found = await Promise.all(lookups.length === 1 ? begin() : database.inOneRead(begin));
    return found.map((rows) => {
      const stored = rows.filter((row) => row.environment !== null) as unknown as StoredSet[];
      const sets = stored.map((row) => ({ environment: row.environment, rowVersion: "", row }));
      return keyRowOf(rows[0], sets);
    });
  };
}

function postgresLookups(database: Database, counted: readonly CountedKind[]): FindAll {
  const { sets: s } = database.tables;
  const rowsFor = (asked: SQL) => sql`
      select ask.n as n, ${keyColumns(database, counted)}, (
        select string_agg(concat_ws(' ', ${s.environment}, ${rowVersion(database)}), ';')
        from ${s} ${withDataKey(database, s)} where ${askedSets(database)}) as sets
      from ${asked} ${keyJoins(database, counted, sql`decode(ask.digest, 'hex')`)}`;
  // A lone lookup costs less without JSON.
  const lone = rowsFor(sql`(select 0 as n, ${textValue("digest")} as digest, ${textValue("slug")} as slug,
    ${textValue("kind")} as kind, ${integerValue("environments")} as environments) as ask`);
  const one = sql`(${lone} offset 0) as found`;
  const state = sql`case when excepted = 0 and coalesce(octet_length(projects), 0) + coalesce(octet_length(trust), 0) <= 4096
    then encode(sha256(convert_to(found::text, 'UTF8')), 'hex') end`;
  const findOne = database.query<RowWithVersions>(lone);
  // Only a read of values can be recorded on condition, and the hash takes a tenth of the request.
  const findWithState = database.query<RowWithVersions>(sql`select found.*, ${state} as state from ${one}`);
  const findAll = database.query<RowWithVersions>(
    rowsFor(sql`jsonb_to_recordset(${sql.placeholder("lookups")}::text::jsonb)
      as ask(n integer, digest text, slug text, kind text, environments integer)`),
  );
  const again = compile(database.db, sql`select from ${one} where ${state} = ${textValue("state")}`);
  const text = again.text.replace(/\$(\d+)/g, (_, number) => `$${Number(number) + conditionFrom - 1}`);
  return async (lookups) => {
    const asked = lookups.map(({ digest, slug, kind, environments }, n) => {
      return { n, digest: Buffer.from(digest).toString("hex"), slug, kind, environments };
    });
    const [first] = asked;
    const find = lookups[0]?.values === 0 ? findOne : findWithState;
    const isOne = asked.length === 1 && first !== undefined;
    const rows = await (isOne ? find(first) : findAll({ lookups: JSON.stringify(asked) }));
    const found: FoundKey[] = lookups.map(() => undefined);
    for (const row of rows) {
      if (!answers(row, lookups[row.n])) throw malformed();
      const { state } = row;
      const condition = state ? { text, parameters: again.parametersOf({ ...first, state }) } : undefined;
      found[row.n] = keyRowOf(row, versionsOf(row.sets), condition);
    }
    return found;
  };
}

function askedSets(database: Database): SQL {
  const { projects: p, apiKeys: k } = database.tables;
  const [projectId, scope] = [sql`${p.id}`, sql`${k.environments}`];
  return setsInReach(database, { projectId, kind: sql`ask.kind`, wanted: sql`ask.environments`, scope });
}

function keyColumns(database: Database, counted: readonly CountedKind[]): SQL {
  const { organizations: o, projects: p, auditExceptions: e, auditHeads: h } = database.tables;
  // These two name no column of the others, so that they are asked once for all lookups of a statement.
  const people = sql`(select ${h.seq} from ${h} where ${h.lane} = 'commands')`;
  const excepted = sql`case when exists (select 1 from ${e}) then 1 else 0 end`;
  return sql`${grantColumns(database)}, ${liveness(database)} as live, ${bounded(o.slug, 64)} as "organizationSlug",
    ${bounded(o.name, 1024)} as "organizationName", ${bounded(o.plan, 16)} as plan, ${p.id} as "projectId",
    ${countsOf(database, counted)} as counts, ${excepted} as excepted, ${people} as people,
    ${database.server} as server`;
}

/** A kind, and the column of projects that counts its items. */
type CountedKind = readonly [kind: string, counts: `${string}Counts`];

/** The counts of the kind that is asked for; null for any other than these. */
function countsOf(database: Database, counted: readonly CountedKind[]): SQL {
  // Bounded each by itself: to measure the whole case, SQLite would read the column.
  const cases = counted.map(([kind, name]) => {
    return sql`when ${sql.raw(`'${kind}'`)} then ${bounded(columnOf(database, name), 128)}`;
  });
  return cases.length === 0 ? sql`cast(null as text)` : sql`case ask.kind ${sql.join(cases, sql` `)} end`;
}

function columnOf({ tables: { projects } }: Database, name: string) {
  const column = Object.entries(getTableColumns(projects)).find(([one]) => one === name)?.[1];
  if (column === undefined) throw new Error(`no column ${name} counts items`);
  return column;
}

function keyJoins(database: Database, counted: readonly CountedKind[], digest: SQL): SQL {
  const { apiKeys: k, organizations: o, projects: p } = database.tables;
  const found = projectInReach(database, sql`ask.slug`);
  const columns = counted.map(([, name]) => columnOf(database, name));
  const isPostgres = database.dialect === "postgres";
  const key = isPostgres
    ? sql`lateral ${keyOnce(database, digest)} as ${k} on true`
    : sql`${k} on ${k.digest} = ${digest}`;
  // Told that there is at most one, PostgreSQL uses the index whatever its statistics say.
  const project = isPostgres
    ? sql`lateral (select ${sql.join([p.id, ...columns], sql`, `)} from ${p} where ${found} limit 1) as ${p} on true`
    : sql`${p} on ${found}`;
  return sql`join ${key} join ${o} on ${o.id} = ${k.organizationId} left join ${project}`;
}

/**
 * The key's row, with its project list unpacked once. By itself, PostgreSQL unpacks a long list for each mention of it,
 * which takes longer than all else of a lookup. OFFSET keeps it from putting the expression in the place of each mention.
 */
function keyOnce(database: Database, digest: SQL): SQL {
  const { apiKeys: k } = database.tables;
  const limits = sql`${k.surfaces}, ${k.resources}, ${k.environments}, ${k.expiresAt}, ${k.revokedAt}, ${k.trust}, ${k.rate}, ${k.from}`;
  return sql`(select ${k.id}, ${k.digest}, ${k.organizationId}, ${limits}, ${projectList(database)} || '' as projects,
    ${k.grantSeal} from ${k} where ${k.digest} = ${digest} offset 0)`;
}

/** Whether a row has the right shape and digest. A damaged row must not look like an unknown key. */
function answers(row: RowWithVersions, lookup: KeyLookup | undefined): boolean {
  const { digest, grantSeal, live, expiresAt } = row;
  const texts = [
    row.projects,
    row.trust,
    row.from,
    row.organizationSlug,
    row.organizationName,
    row.plan,
    row.projectId,
  ];
  return (
    lookup !== undefined &&
    digest instanceof Uint8Array &&
    Buffer.from(lookup.digest).equals(digest) &&
    (grantSeal === null || grantSeal instanceof Uint8Array) &&
    (live === 0 || live === 1) &&
    (row.excepted === 0 || row.excepted === 1) &&
    (row.people === null || Number.isSafeInteger(row.people)) &&
    [expiresAt, row.rate].every((number) => number === null || Number.isSafeInteger(number)) &&
    [row.surfaces, row.resources, row.environments].every(Number.isSafeInteger) &&
    [row.keyId, row.organizationId, row.server].every((id) => typeof id === "string") &&
    [...texts, row.counts, row.sets, row.state ?? null].every((text) => text === null || typeof text === "string")
  );
}

function versionsOf(sets: string | null): FoundSet[] {
  if (sets === null) return [];
  return sets.split(";").map((set) => {
    const at = set.indexOf(" ");
    return { environment: set.slice(0, at) as FoundSet["environment"], rowVersion: set.slice(at + 1), row: null };
  });
}

function keyRowOf(row: LookupRow | undefined, sets: readonly FoundSet[], condition?: AppendCondition): FoundKey {
  if (row === undefined) return undefined;
  const { projectId, counts } = row;
  return Object.assign(row, { condition, target: projectId === null ? null : { projectId, counts, sets } });
}

/** The most valid trusts that a token finds by one of its claims. Those beyond are not found. */
export const trustsMax = 1000;
/** The most bytes that their terms and lists take together: any token, valid or not, can trigger this read. */
export const trustsBytesMax = 4 * 1024 * 1024;

/** Prepares the search for valid trusts by what they are found by (`foundByOf`). */
export function trustFinder(database: Database): (foundBy: readonly string[]) => Promise<GrantRow[]> {
  const { apiKeys: k } = database.tables;
  const find = database.query<GrantRow>(sql`
    select ${grantColumns(database)} from ${k} where ${k.id} in (
      select valid.id from (
        select ${k.id} as id, sum(octet_length(${k.trust}) + coalesce(octet_length(${k.projects}), 0)
          + coalesce(octet_length(${k.from}), 0)) over (order by ${k.id}) as bytes
        from ${k} where ${database.isMember(k.foundBy, sql.placeholder("foundBy"))} and ${liveness(database)} = 1
          and octet_length(${k.trust}) <= ${literal(termsBytesMax)} and octet_length(${k.grantSeal}) = 32
          and coalesce(octet_length(${k.projects}), 0) <= ${literal(projectsBytesMax)}
          and coalesce(octet_length(${k.from}), 0) <= ${literal(fromBytesMax)}
        order by ${k.id} limit ${literal(trustsMax)}) as valid
      where valid.bytes <= ${literal(trustsBytesMax)})
    order by ${k.id}`);
  return (foundBy) => find({ foundBy: JSON.stringify(foundBy) });
}

/** Prepares the record of how many milliseconds ago keys were last used. Uses before the stored ones are ignored. */
export function keyUseWriter(database: Database): (uses: ReadonlyMap<string, number>) => Promise<void> {
  const { keyUses, apiKeys } = database.tables;
  const json = sql.placeholder("uses");
  const each =
    database.dialect === "postgres" ? sql`jsonb_array_elements(${json}::text::jsonb)` : sql`json_each(${json})`;
  const write = database.query(sql`
    insert into ${keyUses} (key_id, last_used_at)
    select value ->> 0, ${database.nowMs} - cast(value ->> 1 as bigint) from ${each}
    where exists (select 1 from ${apiKeys} where ${apiKeys.id} = value ->> 0)
    on conflict (key_id) do update set last_used_at = excluded.last_used_at
    where key_uses.last_used_at < excluded.last_used_at`);
  return async (uses) => {
    if (uses.size > 0) await write({ uses: JSON.stringify([...uses]) });
  };
}
