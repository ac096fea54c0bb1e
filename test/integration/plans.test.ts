import { afterAll, beforeAll, expect, test } from "bun:test";
import { fillPlaceholders, type SQL, sql } from "drizzle-orm";
import postgres from "postgres";
import { mintKey } from "../../src/access/api-key.ts";
import { putFile } from "../../src/admin/files.ts";
import type { Organization } from "../../src/admin/organizations.ts";
import { setVariables } from "../../src/admin/variables.ts";
import { environments } from "../../src/names.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/server/compose.ts";
import type { Database, Use } from "../../src/store/database.ts";
import { onPrimary } from "../../src/store/postgres.ts";
import {
  type Client,
  clientOf,
  describeBoth,
  everything,
  insertAccounts,
  insertFiles,
  insertProjects,
  type Key,
  numbered,
  randomContent,
  type World,
} from "../world.ts";

/** A statement as a request ran it. */
type Ran = { readonly use: Use; readonly text: string; readonly params: readonly unknown[] };

/** What the tables of one request's project hold, beside 200 projects and 20,000 variables of others. */
const held = { variables: 300, accounts: 70, files: 40 };

describeBoth("every statement of a request, among 200 projects and 20,000 variables", (world, dialect) => {
  let ran: Ran[];
  let stage: Awaited<ReturnType<typeof setStage>>;
  beforeAll(async () => {
    stage = await setStage(world());
    ran = await runEverything(stage);
  }, 120_000);
  afterAll(() => stage.keyhole.close());

  test("is one look-up of the key and one read at most, but for the pieces of large files", async () => {
    const counts: Record<string, number> = {};
    for (const path of [...stage.paths, ...stage.paths.filter((path) => path.includes("big/variables?environment"))]) {
      counts[path] = (await stage.statementsOf(path, stage.keys.every)).length;
    }
    for (const [path, count] of Object.entries(counts)) {
      const pieces = path.startsWith("/files") && !path.includes("metadataOnly") ? 5 : 0;
      expect([path, count <= (path === "/organization" ? 1 : 2) + pieces]).toEqual([path, true]);
    }
    // A sealed set that is remembered takes the look-up alone.
    expect(counts["/projects/big/variables?environment=staging"]).toBe(1);
  });

  test("is the same for a project out of the key's scope as for one that is not there", async () => {
    for (const path of stage.paths.filter((path) => path.includes("big"))) {
      const texts = async (slug: string) =>
        (await stage.statementsOf(path.replace("big", slug), stage.keys.narrow)).map(({ text }) => text);
      expect([path, await texts("p0007")]).toEqual([path, await texts("never-was")]);
    }
  });

  // PostgreSQL gathers statistics sooner or later by itself; SQLite never does.
  const states = dialect === "postgres" ? (["no statistics", "statistics"] as const) : (["no statistics"] as const);
  for (const state of states) {
    test(`reads no table from end to end, with ${state} gathered`, async () => {
      if (state === "statistics") await world().run("analyze");
      expect(ran.length).toBeGreaterThan(100);
      expect(await faultsOf(world(), stage.databases, ran, "reads a whole table")).toEqual([]);
    });

    if (dialect === "sqlite") continue; // it does not tell
    const fault = state === "statistics" ? "fetches more than it returns" : "fetches what is not the project's";
    test(`never ${fault}, with ${state} gathered`, async () => {
      expect(await faultsOf(world(), stage.databases, ran, fault)).toEqual([]);
    });
  }
});

type Fault = "reads a whole table" | "fetches more than it returns" | "fetches what is not the project's";

async function faultsOf(w: World, databases: ReadonlyMap<Use, Database>, ran: readonly Ran[], fault: Fault) {
  const explain = w.dialect === "postgres" ? await explainPostgres(w, databases, fault) : explainSqlite(w);
  const faults = new Set<string>();
  for (const statement of ran) {
    for (const found of await explain.faultsOf(statement)) faults.add(`${found}: ${shortened(statement.text)}`);
  }
  await explain.close();
  return [...faults];
}

type Explain = { readonly faultsOf: (ran: Ran) => Promise<readonly string[]>; readonly close: () => Promise<void> };

/** Tables that the number of rows in must not matter for. */
const stored = ["accounts", "api_keys", "audit_entries", "data_keys", "files", "key_uses", "organizations"];
stored.push("item_sets", "project_environments", "projects", "variable_sets", "variables");

/**
 * PostgreSQL tells each table's rows as it ran the statement, with the session's own settings: no table is read from end
 * to end, and no more rows are fetched from one than the statement returns (one and the same row of a project may be
 * fetched once for each of the few parts of a statement).
 */
async function explainPostgres(w: World, databases: ReadonlyMap<Use, Database>, fault: Fault): Promise<Explain> {
  const connections = new Map<Use, postgres.Sql>();
  for (const [use, database] of databases) {
    const connection = postgres(w.config.databaseUrl as string, { max: 1, fetch_types: false, onnotice: () => {} });
    connections.set(use, connection);
    const settings = await database.query<{ name: string; setting: string }>(
      sql`select name, setting from pg_settings where source = 'client' and name not in ('application_name', 'client_encoding')`,
    )({});
    for (const { name, setting } of settings) await connection`select set_config(${name}, ${setting}, false)`;
  }
  let prepared = 0;
  return {
    faultsOf: async ({ use, text, params }) => {
      const connection = connections.get(use) as postgres.Sql;
      const name = `plan_${++prepared}`;
      if (/^\s*insert/.test(text)) return []; // when keys were used: of no request, and of a few keys at a time
      await connection.unsafe(`prepare ${name} as ${onPrimary(text)}`);
      const execute = params.length > 0 ? `execute ${name}(${params.map(literal).join(", ")})` : `execute ${name}`;
      const [row] = await connection.unsafe(`explain (analyze, format json) ${execute}`);
      await connection.unsafe(`deallocate ${name}`);
      const [{ Plan: plan }] = (row as unknown as { "QUERY PLAN": [{ Plan: PlanNode }] })["QUERY PLAN"];
      const returned = plan["Actual Rows"] ?? 0;
      const fetched = new Map<string, number>();
      const faults: string[] = [];
      const visit = (node: PlanNode) => {
        const table = node["Relation Name"];
        if (table !== undefined && table !== "audit_entries_default") {
          const whole = node["Node Type"] === "Seq Scan";
          if (whole && fault === "reads a whole table") faults.push(`reads ${table} from end to end`);
          const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
          const rows = ((node["Actual Rows"] ?? 0) + removed) * (node["Actual Loops"] ?? 0);
          fetched.set(table, (fetched.get(table) ?? 0) + rows);
        }
        for (const inner of node.Plans ?? []) visit(inner);
      };
      visit(plan);
      if (fault === "reads a whole table") return faults;
      // Files at some paths are looked for among the environment's, of which there are never more than 1000.
      const spare = fault === "fetches more than it returns" ? { files: held.files } : held;
      for (const [table, rows] of fetched) {
        const bound = Math.max(returned, (spare as Record<string, number>)[table] ?? 3);
        if (rows > bound) faults.push(`fetches ${rows} of ${table} for ${returned}`);
      }
      return faults;
    },
    close: async () => {
      for (const connection of connections.values()) await connection.end({ timeout: 1 });
    },
  };
}

type PlanNode = {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly Plans?: readonly PlanNode[];
};

function shortened(text: string): string {
  const words = text.replace(/\s+/g, " ").replaceAll('"', "").trim();
  return words.length > 400 ? `${words.slice(0, 100)} … ${words.slice(-300)}` : words;
}

function literal(value: unknown): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number") return String(value);
  if (value instanceof Uint8Array) return `'\\x${Buffer.from(value).toString("hex")}'`;
  return `'${String(value).replaceAll("'", "''")}'`;
}

/** SQLite tells how it would find the rows: by `SEARCH`, with equality on a key's first columns; never by `SCAN`. */
function explainSqlite(w: World): Explain {
  return {
    faultsOf: async ({ text, params }) => {
      const rows = await w.run(`explain query plan ${text}`, params);
      return rows
        .map(({ detail }) => detail as string)
        .filter((detail) => {
          const [, how, table = ""] = /^(SCAN|SEARCH) (\w+)/.exec(detail) ?? [];
          if (!stored.includes(table)) return false;
          return how === "SCAN" || !/\(\w+=\?/.test(detail) || /AUTOMATIC/.test(detail);
        });
    },
    close: async () => {},
  };
}

/** A database with much of what a request does not ask for, and an API on it that tells what it runs. */
async function setStage(w: World) {
  if (w.dialect === "postgres") {
    for (const table of stored.filter((table) => table !== "audit_entries")) {
      await w.run(`alter table ${table} set (autovacuum_enabled = off)`);
    }
  }
  const organization = await w.organization();
  const other = await w.organization();
  const project = await w.project(organization, "big");
  await insertAccounts(w, organization, project, numbered("production ", 30), ["production"]);
  await insertAccounts(w, organization, project, numbered("staging ", 30), ["staging", "development"]);
  await insertAccounts(w, organization, project, numbered("everywhere ", held.accounts - 60), environments);
  await insertFiles(w, organization, project, numbered("production/", 20), ["production"]);
  await insertFiles(w, organization, project, numbered("staging/", held.files - 21), ["staging"]);
  await putFile(w.desk, project.where, { path: "large", environments: ["staging"], content: randomContent(1_500_000) });
  for (const environment of environments) {
    const entries = numbered("N", held.variables / 3).map((name) => ({ name, value: `value of ${name}` }));
    await setVariables(w.desk, project.where, environment, entries);
  }
  await fillWith(w, organization, numbered("p", 100));
  await fillWith(w, other, numbered("p", 100));
  for (let i = 0; i < 50; i++) await w.key(await w.organization());

  const ran: Ran[] = [];
  const databases = new Map<Use, Database>();
  const open = (use: Use): Database => {
    const database = w.installation.open(use);
    databases.set(use, database);
    const { dialect } = database.db as unknown as {
      dialect: { sqlToQuery(text: SQL): { sql: string; params: unknown[] } };
    };
    return {
      ...database,
      query: (text, options) => {
        const compiled = dialect.sqlToQuery(text);
        const run = database.query(text, options);
        return (values) => {
          ran.push({ use, text: compiled.sql, params: fillPlaceholders(compiled.params, values) });
          return run(values) as never;
        };
      },
    };
  };
  const keyhole: OpenKeyhole = await openKeyhole({ ...w.installation, open }, () => {});
  const client = clientOf(keyhole);
  const keys = {
    every: await w.key(organization, everything),
    narrow: await w.key(organization, {
      ...everything,
      projects: ["big", "p0003", "p0004"],
      environments: ["staging"],
    }),
  };
  const statementsOf = async (path: string, key: Key): Promise<Ran[]> => {
    ran.length = 0;
    await client.ask(path, { key });
    return ran.filter(({ text }) => !text.includes("insert into")); // when a key was used is noted from time to time
  };
  return { w, organization, keyhole, databases, client, keys, ran, statementsOf, paths };
}

const names = numbered("N", 100).join(",");
const paths = [
  "/organization",
  "/projects",
  "/projects/big",
  "/projects/never-was",
  "/projects/big/variables?environment=staging",
  "/projects/big/variables?environment=staging&format=env",
  `/projects/big/variables?environment=staging&keys=${names}`,
  "/projects/big/variables?environment=staging&keys=N0001,NEVER_WAS",
  "/projects/big/variables?environment=staging&prefix=N009",
  "/projects/big/variables?environment=staging&prefix=NEVER_WAS",
  "/projects/big/variables?metadata_only=true",
  "/projects/big/variables?metadata_only=true&environment=staging",
  `/projects/big/variables?metadata_only=true&keys=${names}`,
  "/projects/big/variables?metadata_only=true&prefix=N009",
  "/projects/big/variables?metadata_only=true&prefix=N009&environment=staging",
  "/projects/big/accounts",
  "/projects/big/accounts?environment=staging",
  "/projects/big/accounts?environment=development",
  "/projects/big/accounts?metadata_only=true",
  "/projects/big/accounts?metadata_only=true&environment=staging",
  "/files?project=big&environment=staging",
  "/files?project=big&environment=staging&path=staging/0001&path=never-was",
  "/files?project=big&environment=staging&path=large",
  "/files?project=big&environment=staging&metadataOnly=1",
  "/files?project=big&environment=staging&metadataOnly=1&path=staging/0001&path=production/0001",
  "/files?project=big&environment=development",
  "/secrets?project=big&environment=staging",
];

/** Every statement that the paths run, for keys of every reach; also where a sealed set is not current. */
async function runEverything({
  w,
  organization,
  keys,
  client,
  ran,
}: Awaited<ReturnType<typeof setStage>>): Promise<Ran[]> {
  const all: Ran[] = [];
  const run = async (key: Key | string, some: readonly string[] = paths) => {
    ran.length = 0;
    const statuses = await ask(client, key, some);
    all.push(...ran);
    return statuses;
  };
  const statuses = await run(keys.every);
  expect(statuses.filter((status) => status !== 200)).toEqual([404]);
  await run(keys.narrow);
  for (let mask = 1; mask <= 7; mask++) {
    const reach = environments.filter((_, bit) => mask & (1 << bit));
    const key = await w.key(organization, { ...everything, environments: reach });
    await run(key, [
      "/projects",
      "/projects/big",
      "/projects/big/accounts",
      "/projects/big/accounts?metadata_only=true",
    ]);
    await run(key, [
      "/projects/big/variables?metadata_only=true",
      "/files?project=big&environment=production&metadataOnly=1",
    ]);
  }
  await run(mintKey(), ["/organization"]);
  // Somebody wrote by other means: the rows are read and held against the set.
  await w.run("update variables set updated_at = updated_at where name = 'N0001'");
  await run(keys.narrow, ["/projects/big/variables?environment=staging", "/secrets?project=big&environment=staging"]);
  await setVariables(w.desk, `${organization.slug}/big`, "staging", [{ name: "N0001", value: "value of N0001" }]);
  return all;
}

async function ask({ ask }: Client, key: Key | string, some: readonly string[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const path of some) statuses.push((await ask(path, { key })).status);
  return statuses;
}

/** Projects with 100 variables, 10 accounts and 10 files each, sealed by nobody. */
async function fillWith(w: World, organization: Organization, slugs: readonly string[]): Promise<void> {
  await insertProjects(w, organization, slugs);
  const { db, tables: t } = w.desk.database;
  const projects = (
    await w.sql`select id from projects where organization_id = ${organization.id} and slug like 'p%'`
  ).map(({ id }) => id as string);
  const sealed = Buffer.alloc(60);
  const common = { version: 1, generation: 1, sealed, updatedAt: 1 };
  await db.insert(t.dataKeys).values(
    projects.map((projectId) => ({
      projectId,
      generation: 1,
      rootId: "0".repeat(16),
      wrapped: sealed,
      createdAt: 1,
    })),
  );
  await db
    .insert(t.projectEnvironments)
    .values(
      projects.flatMap((projectId) =>
        environments.map((environment) => ({ projectId, environment, revision: 0, updatedAt: 1 })),
      ),
    );
  await db.insert(t.variableSets).values(
    projects.flatMap((projectId) =>
      environments.map((environment) => ({
        projectId,
        environment,
        revision: 1,
        generation: 1,
        listing: "[]",
        sealed,
      })),
    ),
  );
  await db
    .insert(t.itemSets)
    .values(
      projects.flatMap((projectId) =>
        (["accounts", "files"] as const).flatMap((kind) =>
          environments.map((environment) => ({ projectId, kind, environment, generation: 1, sealed, listing: "[]" })),
        ),
      ),
    );
  for (let from = 0; from < projects.length; from += 10) {
    const some = projects.slice(from, from + 10);
    await db.insert(t.variables).values(
      some.flatMap((projectId) =>
        numbered("N", 100).map((name, i) => ({
          id: Bun.randomUUIDv7(),
          projectId,
          environment: environments[i % 3] as string,
          name,
          ...common,
        })),
      ),
    );
    const items = some.flatMap((projectId) =>
      numbered("x", 10).map((name, i) => ({ projectId, name, environments: (i % 7) + 1 })),
    );
    await db.insert(t.accounts).values(items.map((item) => ({ id: Bun.randomUUIDv7(), ...item, ...common })));
    await db.insert(t.files).values(
      items.map(({ name, ...item }) => ({
        id: Bun.randomUUIDv7(),
        ...item,
        path: name,
        name,
        mode: "0600" as const,
        size: 26,
        sha256: "0".repeat(64),
        contentType: "text/plain",
        ...common,
      })),
    );
  }
}
