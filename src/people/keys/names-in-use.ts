import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import type { Config } from "../../core/settings/settings.ts";
import { openWithoutKeys } from "../../installation/installation.ts";
import { everyKind } from "../../kinds/kind.ts";
import { type Database, textValue } from "../../store/database.ts";
import { isMigrated } from "../../store/migrate.ts";
import { arrayOf } from "../desk/validate.ts";

/**
 * Which names to list. Projects are `ORG/PROJECT`; keys, trusts and requests are ids. Items may be of one environment.
 */
export type NamesAsked =
  | { readonly of: "organizations" | "projects" | "keys" | "trusts" | "keysAndTrusts" | "requests" }
  | { readonly of: string; readonly project: string; readonly environment: string | undefined };

/** A word that a command takes, and what people call it, if that is something else. */
export type Named = { readonly word: string; readonly name?: string };

/**
 * The names in use, for people who type: read from the database without its keys, so nothing is verified and nothing
 * leaves a trace. None if there is no installation.
 * @param typed - of more than 1,000 organizations, projects, keys or requests, those that have this in them come first
 * @throws Problem, or what the database throws
 */
export async function namesInUse(config: Config, asked: NamesAsked, typed = ""): Promise<Named[]> {
  await using database = openWithoutKeys(config);
  if (database === undefined) return [];
  if (!(await isMigrated(database))) return [];
  return "project" in asked
    ? await items(database, asked)
    : await database.query<Named>(lists(database)[asked.of])({ typed });
}

function lists(database: Database) {
  const { organizations: o, projects: p, apiKeys: k, variableRequests: r } = database.tables;
  const wanted = (word: SQLWrapper) => sql`${database.indexOf(word, textValue("typed"))} > 0 desc`;
  const path = sql`${o.slug} || '/' || ${p.slug}`;
  const credentials = (only: SQL) =>
    sql`select ${k.id} as word, ${k.name} as name from ${k} where ${only} order by ${wanted(k.id)}, ${k.id} desc limit 1000`;
  return {
    organizations: sql`select ${o.slug} as word, ${o.name} as name from ${o}
      order by ${wanted(o.slug)}, ${o.slug} limit 1000`,
    projects: sql`select ${path} as word, ${p.name} as name from ${p} join ${o} on ${o.id} = ${p.organizationId}
      order by ${wanted(path)}, ${o.slug}, ${p.slug} limit 1000`,
    keys: credentials(sql`${k.trust} is null`),
    trusts: credentials(sql`${k.trust} is not null`),
    keysAndTrusts: credentials(sql`true`),
    requests: sql`select ${r.id} as word, ${r.name} as name from ${r}
      order by ${wanted(r.id)}, ${r.id} desc limit 1000`,
  };
}

async function items(database: Database, { of, project, environment }: Extract<NamesAsked, { project: string }>) {
  const { organizations: o, projects: p, sets: s } = database.tables;
  const [organization, slug] = project.includes("/") ? project.split("/") : [undefined, project];
  type Row = { readonly organization: string; readonly environment: string; readonly listing: string };
  const rows = await database.query<Row>(sql`
    select ${o.slug} as organization, ${s.environment} as environment, ${s.listing} as listing
    from ${p} join ${o} on ${o.id} = ${p.organizationId} join ${s} on ${s.projectId} = ${p.id}
    where ${p.slug} = ${sql.placeholder("slug")} and ${s.kind} = ${sql.placeholder("kind")}`)({ slug, kind: of });
  const nameOf = everyKind.find(({ kind }) => kind === of)?.nameOf as (entry: unknown) => unknown;
  const words = rows
    .filter((row) => row.organization === (organization ?? row.organization))
    .filter((row) => row.environment === (environment ?? row.environment))
    .flatMap(({ listing }) => arrayOf(listing).map(nameOf));
  return [...new Set(words)].filter((word) => typeof word === "string").map((word) => ({ word }));
}
