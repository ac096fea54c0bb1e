import { sql } from "drizzle-orm";
import type { KeyRow } from "../access/authenticate.ts";
import type { Database } from "./database.ts";

/** Prepares the look-up of a key and its organization by digest: two index look-ups, one snapshot. */
export function keyFinder(database: Database): (digest: Uint8Array) => Promise<KeyRow | undefined> {
  const { apiKeys: k, organizations: o } = database.tables;
  const find = database.query<KeyRow>(sql`
    select ${k.id} as "keyId", ${k.organizationId} as "organizationId", ${k.surfaces} as surfaces,
      ${k.resources} as resources, ${k.environments} as environments, ${k.projects} as projects,
      ${k.expiresAt} as "expiresAt", ${k.digest} as digest, ${k.grantSeal} as "grantSeal",
      ${liveness(database)} as live, ${o.slug} as "organizationSlug", ${o.name} as "organizationName",
      ${o.plan} as plan
    from ${k} join ${o} on ${o.id} = ${k.organizationId}
    where ${k.digest} = ${sql.placeholder("digest")}`);
  return async (digest) => (await find({ digest }))[0];
}

/** 1 where the key is neither revoked nor expired by the database's clock, else 0. */
export function liveness({ tables: { apiKeys: k }, nowMs }: Database) {
  return sql`case when ${k.revokedAt} is null and (${k.expiresAt} is null or ${k.expiresAt} > ${nowMs})
    then 1 else 0 end`;
}

/** Prepares the record of when keys were last used; later moments win. */
export function keyUseWriter(database: Database): (uses: ReadonlyMap<string, number>) => Promise<void> {
  const { keyUses, apiKeys } = database.tables;
  return async (uses) => {
    if (uses.size === 0) return;
    const json = JSON.stringify([...uses]);
    const [id, at] =
      database.dialect === "postgres"
        ? [sql`value ->> 0`, sql`(value ->> 1)::bigint`]
        : [sql`value ->> 0`, sql`cast(value ->> 1 as integer)`];
    const each =
      database.dialect === "postgres" ? sql`jsonb_array_elements(${json}::text::jsonb)` : sql`json_each(${json})`;
    await database.query(sql`
      insert into ${keyUses} (key_id, last_used_at)
      select ${id}, ${at} from ${each} as use where exists (select 1 from ${apiKeys} where ${apiKeys.id} = ${id})
      on conflict (key_id) do update set last_used_at = excluded.last_used_at
      where key_uses.last_used_at < excluded.last_used_at`)({});
  };
}
