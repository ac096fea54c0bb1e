import { type SQL, sql } from "drizzle-orm";
import { type Environment, environments, itemsMax } from "../names.ts";
import type { Database, Query } from "./database.ts";
import { authorizedPlace, dataKeyPart, type PartRow, type PlaceValues, standingPart } from "./place.ts";
import { sizedItems, sizedItemsPart } from "./sized.ts";

/** Which variables of an environment: all, those of a list of names, or those whose names start so. */
export type Selection =
  | { readonly by: "all" }
  | { readonly by: "names"; readonly names: readonly string[] }
  | { readonly by: "prefix"; readonly prefix: string };

/** A variable's name in one environment. */
export type VariableNameRow = { readonly environment: string } & PartRow;

export type VariableQueries = {
  /**
   * Standing, data keys, and at most one variable more than a response may hold; where all are selected the
   * environment's set, too. Neither variables nor set come with more than `bytesMax` sealed bytes: see `sized.ts`.
   */
  readonly values: (
    place: PlaceValues,
    environment: string,
    selection: Selection,
    bytesMax: number,
  ) => Promise<PartRow[]>;
  /**
   * Standing, and the names in each of these environments with nothing sealed; of each at most one more than a response
   * may hold.
   */
  readonly names: (place: PlaceValues, reach: readonly Environment[], selection: Selection) => Promise<PartRow[]>;
};

/** Prepares the reads of variables: each is a range of, or look-ups in, the primary key. */
export function variableQueries(database: Database): VariableQueries {
  const { variables: v, variableSets: s } = database.tables;
  const place = authorizedPlace(database);
  const filters: Record<Selection["by"], SQL> = {
    all: sql`true`,
    names: database.isMember(v.name, sql.placeholder("names")),
    prefix: sql`${v.name} >= ${sql.placeholder("prefix")} and ${v.name} < ${sql.placeholder("prefixEnd")}`,
  };
  // Whoever reads all rows holds them against the set, which must then be of the same snapshot.
  const setFits = sql`length(${s.sealed}) <= cast(${sql.placeholder("bytesMax")} as bigint)`;
  const set = sql`
    select 3, ${s.listing}, '', case when ${setFits} then ${s.revision} else length(${s.sealed}) end, ${s.generation},
      case when ${setFits} then ${s.sealed} end, 0
    from place_open join ${s} on ${s.projectId} = place_open.project_id
      and ${s.environment} = ${sql.placeholder("environment")}`;
  const values = perSelection((by) => {
    const items = sizedItems(
      database,
      sql`${v.id} as id, ${v.name} as name, ${v.version} as version, 0 as environments, ${v.updatedAt} as updated_at`,
      sql`${v.sealed}`,
      sql`from place_open join ${v} on ${v.projectId} = place_open.project_id
        and ${v.environment} = ${sql.placeholder("environment")}
      where ${filters[by]} order by ${v.name} limit ${sql.raw(String(itemsMax + 1))}`,
    );
    return database.query<PartRow>(sql`
    with ${place}, ${items} ${standingPart} union all ${dataKeyPart(database)}
    ${by === "all" ? sql`union all ${set}` : sql``} union all ${sizedItemsPart}`);
  });
  // An arm for each environment: given a set of them, the planner may take all three and throw away what is too much.
  const arm = (environment: Environment, by: Selection["by"]) => sql`union all select * from (
      select 2, ${v.environment}, ${v.name}, 0, 0, cast(null as bytea), ${v.updatedAt}
      from place_open join ${v} on ${v.projectId} = place_open.project_id and ${v.environment} = ${sql.raw(`'${environment}'`)}
      where cast(${sql.placeholder(environment)} as integer) = 1 and ${filters[by]}
      order by ${v.name} limit ${sql.raw(String(itemsMax + 1))}
    ) as ${sql.raw(environment)}`;
  const names = perSelection((by) =>
    database.query<PartRow>(sql`
    with ${place} ${standingPart} ${sql.join(
      environments.map((environment) => arm(environment, by)),
      sql` `,
    )}`),
  );
  return {
    values: (at, environment, selection, bytesMax) =>
      values[selection.by]({ ...at, environment, bytesMax, ...boundsOf(selection) }),
    names: (at, reach, selection) => names[selection.by]({ ...at, ...wantedOf(reach), ...boundsOf(selection) }),
  };
}

function perSelection(make: (by: Selection["by"]) => Query<PartRow>): Record<Selection["by"], Query<PartRow>> {
  return { all: make("all"), names: make("names"), prefix: make("prefix") };
}

/** 1 for each environment that is wanted, and 0 for the others. */
function wantedOf(reach: readonly Environment[]): Record<Environment, 0 | 1> {
  const wanted = (environment: Environment) => (reach.includes(environment) ? 1 : 0);
  return { development: wanted("development"), staging: wanted("staging"), production: wanted("production") };
}

function boundsOf(selection: Selection): Record<string, string> {
  switch (selection.by) {
    case "all":
      return {};
    case "names":
      return { names: JSON.stringify(selection.names) };
    case "prefix":
      // Names are ASCII: nothing that starts with the prefix sorts after the prefix and the highest character.
      return { prefix: selection.prefix, prefixEnd: `${selection.prefix}\u{10FFFF}` };
  }
}
