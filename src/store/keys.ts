import { type SQL, sql } from "drizzle-orm";
import type { KeyRow } from "../access/authenticate.ts";
import type { Database } from "./database.ts";
import { type Grouped, grouped } from "./grouped.ts";

/** What a request presents: its key's digest, and the project and environment it asks for (empty where it asks for none). */
export type LookUp = { readonly digest: Uint8Array; readonly slug: string; readonly environment: string };

/**
 * Prepares the one look-up that every request begins with: key, organization and, through the key's scope, the project
 * with the state of its environment, in one snapshot. On PostgreSQL the requests that wait at one moment share a
 * statement; each is still judged by a read that began after it arrived.
 */
export function keyLookUps(database: Database): (ask: LookUp) => Promise<KeyRow | undefined> {
  if (database.dialect === "sqlite") {
    const find = lookUpQuery(
      database,
      sql`(select 0 as n, ${sql.placeholder("digest")} as digest, ${sql.placeholder("slug")} as slug,
        ${sql.placeholder("environment")} as environment) as ask`,
      sql`ask.digest`,
    );
    return async (ask) => (await find({ ...ask }))[0];
  }
  const find = lookUpQuery(
    database,
    sql`jsonb_to_recordset(${sql.placeholder("asks")}::text::jsonb)
      as ask(n integer, digest text, slug text, environment text)`,
    sql`decode(ask.digest, 'hex')`,
  );
  const together: Grouped<LookUp, KeyRow | undefined> = grouped(async (asks) => {
    const rows = await find({
      asks: JSON.stringify(
        asks.map(({ digest, slug, environment }, n) => ({
          n,
          digest: Buffer.from(digest).toString("hex"),
          slug,
          environment,
        })),
      ),
    });
    const found: (KeyRow | undefined)[] = new Array(asks.length).fill(undefined);
    for (const row of rows) found[row.n] = row;
    return found;
  });
  return together;
}

/** Of a UUID as text. */
const projectIdLength = sql.raw("36");

function lookUpQuery(database: Database, asks: SQL, digest: SQL) {
  const { apiKeys: k, organizations: o, projects: p } = database.tables;
  const e = database.tables.projectEnvironments;
  // The id that the key's list has for the slug. Looked for as text, in the one spelling that the writer has: as JSON, a
  // list that SQL made into something else would be an error, and with it the statement for everyone who shares it. What
  // this finds in such a list does not matter, since the grant seal does not fit it.
  const entry = sql`'"' || ask.slug || '":"'`;
  const at =
    database.dialect === "postgres" ? sql`strpos(${k.projects}, ${entry})` : sql`instr(${k.projects}, ${entry})`;
  const listed = sql`substr(${k.projects}, nullif(${at}, 0) + length(ask.slug) + 4, ${projectIdLength})`;
  const sought = sql`${p.organizationId} = ${k.organizationId}
      and ${p.slug} = case when ${k.projects} is null or (${listed}) is not null then ask.slug else '' end
      and ${p.id} = coalesce(${listed}, ${p.id})`;
  // Told that there is one at most, PostgreSQL takes organization and slug for its index whatever it knows of the table.
  const project =
    database.dialect === "postgres"
      ? sql`lateral (select ${p.id} from ${p} where ${sought} limit 1) as ${p} on true`
      : sql`${p} on ${sought}`;
  // Out of a listed key's scope the slug becomes one that no project has: absent and out of scope touch the same rows.
  return database.query<KeyRow & { readonly n: number }>(sql`
    select ask.n as n, ${k.id} as "keyId", ${k.organizationId} as "organizationId", ${k.surfaces} as surfaces,
      ${k.resources} as resources, ${k.environments} as environments, ${k.projects} as projects,
      ${k.expiresAt} as "expiresAt", ${k.digest} as digest, ${k.grantSeal} as "grantSeal",
      ${liveness(database)} as live, ${o.slug} as "organizationSlug", ${o.name} as "organizationName",
      ${o.plan} as plan, ${p.id} as "projectId", ${e.state} as state
    from ${asks}
    join ${k} on ${k.digest} = ${digest}
    join ${o} on ${o.id} = ${k.organizationId}
    left join ${project}
    left join ${e} on ${e.projectId} = ${p.id} and ${e.environment} = ask.environment`);
}

/** 1 where the key is neither revoked nor expired by the database's clock, else 0. */
export function liveness({ tables: { apiKeys: k }, nowMs }: Database) {
  return sql`case when ${k.revokedAt} is null and (${k.expiresAt} is null or ${k.expiresAt} > ${nowMs})
    then 1 else 0 end`;
}

/** Prepares the record of when keys were last used; later moments win. */
export function keyUseWriter(database: Database): (uses: ReadonlyMap<string, number>) => Promise<void> {
  const { keyUses, apiKeys } = database.tables;
  const json = sql.placeholder("uses");
  const each =
    database.dialect === "postgres"
      ? sql`(select value ->> 0 as id, (value ->> 1)::bigint as at from jsonb_array_elements(${json}::text::jsonb)) as use`
      : sql`(select value ->> 0 as id, cast(value ->> 1 as integer) as at from json_each(${json})) as use`;
  const write = database.query(sql`
    insert into ${keyUses} (key_id, last_used_at)
    select use.id, use.at from ${each} where exists (select 1 from ${apiKeys} where ${apiKeys.id} = use.id)
    on conflict (key_id) do update set last_used_at = excluded.last_used_at
    where key_uses.last_used_at < excluded.last_used_at`);
  return async (uses) => {
    if (uses.size > 0) await write({ uses: JSON.stringify([...uses]) });
  };
}
