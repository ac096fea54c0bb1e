import { sql } from "drizzle-orm";
import { type Environment, environmentMask, environments, itemsMax } from "../names.ts";
import type { Database, Query } from "./database.ts";
import { authorizedPlace, type PlaceValues } from "./place.ts";

/** A file's record, or the key's standing and the project's totals where `id` is null (always the first row). */
export type FileRow = {
  readonly live: number;
  readonly plan: string;
  readonly projectId: string | null;
  /** Files of the project by mask, as a JSON array; on the standing row alone. */
  readonly fileCounts: string | null;
  /** The seal over all of the environment's files and the data key it is under; on the standing row alone. */
  readonly setSealed: Buffer | null;
  readonly setGeneration: number | null;
  readonly setRootId: string | null;
  readonly setWrapped: Buffer | null;
  readonly id: string | null;
  readonly path: string;
  readonly name: string;
  readonly mode: "0600" | "0400";
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
  readonly environments: number;
  readonly version: number;
  readonly sealedSize: number;
  readonly updatedAt: number;
};

/** A piece of a sealed file, or a wrapped data key (`kind` 1), or the standing (`kind` 0). */
export type ContentRow = {
  readonly kind: 0 | 1 | 2;
  /** Project id, root id, file id. */
  readonly id: string | null;
  /** Plan or nothing. */
  readonly plan: string;
  /** Liveness, generation, version. */
  readonly number: number;
  readonly bytes: Buffer | null;
};

export type FileQueries = {
  /** How many sealed bytes one statement should fetch at most. */
  readonly pieceBytes: number;
  /** Standing with the seal over all of the environment's files, and their records: all, or those at `paths`. */
  readonly records: (
    place: PlaceValues,
    environment: Environment,
    paths: readonly string[] | undefined,
  ) => Promise<FileRow[]>;
  /** Standing, data keys, and `length` bytes from `from` (1 is the first) of each of these files' sealed content. */
  readonly contents: (
    place: PlaceValues,
    fileIds: readonly string[],
    from: number,
    length: number,
  ) => Promise<ContentRow[]>;
};

/** Prepares the reads of files; `contents` runs on a pool of its own, so that bulk never delays a look-up. */
export function fileQueries(database: Database, bulk: Database): FileQueries {
  const { files: f, projects: p, dataKeys: d, itemSets: s } = database.tables;
  const place = authorizedPlace(database);
  const records = (environment: Environment, filtered: boolean): Query<FileRow> =>
    database.query<FileRow>(sql`
    with ${place}
    select 0 as part, place.live as live, place.plan as plan, place.project_id as "projectId",
      (select ${p.fileCounts} from ${p} where ${p.id} = place.project_id) as "fileCounts",
      ${s.sealed} as "setSealed", ${d.generation} as "setGeneration", ${d.rootId} as "setRootId",
      ${d.wrapped} as "setWrapped",
      cast(null as text) as id, '' as path, '' as name, '' as mode, 0 as size, '' as sha256, '' as "contentType",
      0 as environments, 0 as version, 0 as "sealedSize", 0 as "updatedAt"
    from place
    left join ${s} on ${s.projectId} = place.project_id and ${s.kind} = 'files'
      and ${s.environment} = ${sql.raw(`'${environment}'`)}
    left join ${d} on ${d.projectId} = ${s.projectId} and ${d.generation} = ${s.generation}
    union all select * from (
      select 1, 1, 'pro', place_open.project_id, cast(null as text), cast(null as bytea), cast(null as integer),
        cast(null as text), cast(null as bytea), ${f.id}, ${f.path}, ${f.name}, ${f.mode},
        ${f.size}, ${f.sha256}, ${f.contentType}, ${f.environments}, ${f.version}, length(${f.sealed}), ${f.updatedAt}
      from place_open join ${f} on ${f.projectId} = place_open.project_id
      where (${f.environments} & ${sql.raw(String(environmentMask(environment)))}) <> 0
        ${filtered ? sql`and ${database.isMember(f.path, sql.placeholder("paths"))}` : sql``}
      order by ${f.path} limit ${sql.raw(String(itemsMax + 1))}
    ) as items`);
  const perEnvironment = new Map(
    environments.map((environment) => [
      environment,
      { every: records(environment, false), at: records(environment, true) },
    ]),
  );
  // SQLite makes a copy of all that `substr` looks at, and there is one piece of every file.
  const piece =
    bulk.dialect === "postgres"
      ? sql`substr(${f.sealed}, cast(${sql.placeholder("from")} as integer), cast(${sql.placeholder("length")} as integer))`
      : sql`${f.sealed}`;
  const contents = bulk.query<ContentRow>(sql`
    with ${place}
    select 0 as kind, project_id as id, plan as plan, live as number, cast(null as bytea) as bytes from place
    union all
    select 1, ${d.rootId}, '', ${d.generation}, ${d.wrapped}
    from place_open join ${d} on ${d.projectId} = place_open.project_id
    union all
    select 2, ${f.id}, '', ${f.version}, ${piece}
    from place_open join ${f} on ${f.projectId} = place_open.project_id
    where ${bulk.isMember(f.id, sql.placeholder("ids"))}`);
  return {
    // PostgreSQL spells bytes as hex text, which is decoded on the event loop: in pieces. SQLite hands them over.
    pieceBytes: bulk.dialect === "postgres" ? 512 * 1024 : 16 * 1024 * 1024,
    records: (at, environment, paths) => {
      const of = perEnvironment.get(environment) as { every: Query<FileRow>; at: Query<FileRow> };
      return paths ? of.at({ ...at, paths: JSON.stringify(paths) }) : of.every({ ...at });
    },
    contents: (at, fileIds, from, length) => contents({ ...at, ids: JSON.stringify(fileIds), from, length }),
  };
}
