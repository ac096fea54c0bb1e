import { afterAll, beforeAll, expect, test } from "bun:test";
import { fillPlaceholders, type SQL, sql } from "drizzle-orm";
import postgres from "postgres";
import { environments } from "../../src/core/names.ts";
import { type AppendCondition, conditionFrom } from "../../src/core/set-rows.ts";
import { openServing } from "../../src/installation/serving.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/serve/process/compose.ts";
import type { Database, Use } from "../../src/store/database.ts";
import { onPrimary } from "../../src/store/postgres.ts";
import { below, requestOf } from "../support/answer.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { insertAccounts, insertFiles, insertProjects, numbered, randomContent } from "../support/rows.ts";
import { type Client, clientOf, describeBoth, everything, type Key, type World } from "../support/world.ts";

/** A statement as a request ran it. */
type Ran = { readonly use: Use; readonly text: string; readonly params: readonly unknown[] };

describeBoth("every statement of a request, among 2,000 projects", (w, dialect) => {
  // On PostgreSQL the lookup of a caller alone is in the statement that stores its entry.
  const lookups = dialect === "postgres" ? 0 : 1;
  let ran: Ran[];
  let stage: Awaited<ReturnType<typeof setStage>>;
  beforeAll(async () => {
    stage = await setStage(w);
    ran = await runEverything(stage);
  }, 120_000);
  afterAll(() => stage.keyhole.close());

  test("is the key's lookup, one read of sets or projects, and for files those of their contents", async () => {
    const counted = async (path: string) => (await stage.statementsOf(path, stage.keys.every)).length;
    // A set whose size is not known yet is asked for as a small one first.
    await counted("/projects/big/variables?environment=development");
    await setVariables(w.admin, stage.where, "staging", [{ name: "N0001", value: "changed" }]);
    await setAccount(w.admin, stage.where, "everywhere 0001", environments, { a: "changed" });
    // The first read after a change checks where the commands' lane ends now.
    expect(await counted("/organization")).toBe(2);
    for (const path of stage.paths) {
      const contents = path.includes("metadataOnly") ? 1 : 4;
      const isLarge = path.includes("environment=development") && dialect === "sqlite";
      const most = path === "/organization" ? 1 : path.startsWith("/files") ? 2 + contents : isLarge ? 3 : 2;
      expect([path, (await counted(path)) <= most]).toEqual([path, true]);
    }
    // Sets that are remembered, or come along, need no statement of their own.
    expect(await counted("/projects/big/variables?environment=staging")).toBe(lookups);
    expect(await counted("/projects/big/accounts")).toBe(lookups);
    expect(await counted("/files?project=big&environment=staging&path=staging/0001")).toBe(2);
  });

  test("is the one lookup of a read; values take one commit, which callers share, and a refused key takes neither", async () => {
    const path = "/projects/big/variables?environment=staging";
    const { key } = await w.key(stage.organization, everything);
    const limited = clientOf({ ...stage.keyhole, gate: { ...stage.keyhole.gate, nowUs: () => 0 } });
    const segments = async () => Number((await w.sql`select count(*) as n from audit_segments`)[0]?.["n"]);
    const taken = async (status: number, ask: () => Promise<Response>, callers = 1) => {
      const before = await segments();
      stage.ran.length = 0;
      const answers = await Promise.all(Array.from({ length: callers }, ask));
      expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([status]));
      await Promise.all(answers.map((answer) => answer.arrayBuffer()));
      const statements = stage.ran.filter(({ text }) => !text.includes("insert into")).length;
      return { statements, commits: (await segments()) - before };
    };
    const read = (query = "", headers = {}) => limited.handle(requestOf(`${path}${query}`, { key, headers }));
    const tag = (await read()).headers.get("etag") as string;
    const unchanged = { "if-none-match": tag };
    expect(await taken(200, () => read())).toEqual({ statements: lookups, commits: 1 });
    expect(await taken(200, () => read("&keys=N0001"))).toEqual({ statements: lookups, commits: 1 });
    expect(await taken(200, () => read("&metadata_only=true"))).toEqual({ statements: 1, commits: 0 });
    expect(await taken(304, () => read("", unchanged))).toEqual({ statements: 1, commits: 0 });
    const shared = await taken(200, () => read(), 20);
    expect(shared.commits).toBeLessThan(5);
    expect(shared.statements).toBeLessThan(dialect === "postgres" ? 5 : 21);
    for (let used = 23; used < 30; used++) await read();
    expect(await taken(429, () => read())).toEqual({ statements: 0, commits: 0 });
  });

  // PostgreSQL gathers statistics sooner or later by itself; SQLite never does.
  const states = dialect === "postgres" ? (["no statistics", "statistics"] as const) : (["no statistics"] as const);
  for (const state of states) {
    test(`finds every row by an index, with ${state} gathered`, async () => {
      if (state === "statistics") await w.run("analyze");
      expect(ran.length).toBeGreaterThan(100);
      expect(stage.conditions.length > 0).toBe(dialect === "postgres");
      expect(await faultsOf(w, stage.databases, ran)).toEqual([]);
    });
  }
});

async function faultsOf(w: World, databases: ReadonlyMap<Use, Database>, ran: readonly Ran[]): Promise<string[]> {
  const explain = w.dialect === "postgres" ? await explainPostgres(w, databases) : explainSqlite(w);
  const faults = new Set<string>();
  for (const statement of ran) {
    for (const found of await explain.faultsOf(statement)) faults.add(`${found}: ${shortened(statement.text)}`);
  }
  await explain.close();
  return [...faults];
}

/** How many contents a statement finds that returns them as one text for each request; else none. */
function contentsAsked(text: string, params: readonly unknown[]): number {
  if (!text.includes(") as contents")) return 0;
  const asks = JSON.parse(String(params[0])) as { readonly ids: string }[];
  return asks.reduce((sum, { ids }) => sum + (JSON.parse(ids) as unknown[]).length, 0);
}

type Explain = { readonly faultsOf: (ran: Ran) => Promise<readonly string[]>; readonly close: () => Promise<void> };

/** Tables that may grow without making a request slower. */
const stored = ["api_keys", "audit_segments", "data_keys", "file_contents", "key_uses", "organizations"];
stored.push("projects", "sets");

/**
 * PostgreSQL reports each table's rows as it ran the statement, with the session's own settings. No table is scanned,
 * and no more rows are fetched than the statement returns. Of sets all three environments of a kind may be fetched, and
 * a project is found by its slug and then fetched by its id.
 */
async function explainPostgres(w: World, databases: ReadonlyMap<Use, Database>): Promise<Explain> {
  const connections = new Map<Use, postgres.Sql>();
  for (const [use, database] of databases) {
    const connection = postgres(w.databaseUrl as string, { max: 1, fetch_types: false, onnotice: () => {} });
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
      if (/^\s*insert/.test(text)) return []; // the last uses of a few keys, which no request waits for
      await connection.unsafe(`prepare ${name} as ${onPrimary(text)}`);
      const execute = params.length > 0 ? `execute ${name}(${params.map(literal).join(", ")})` : `execute ${name}`;
      const [row] = await connection.unsafe(`explain (analyze, format json) ${execute}`);
      const [{ Plan: plan }] = (row as unknown as { "QUERY PLAN": [{ Plan: PlanNode }] })["QUERY PLAN"];
      const returned = Math.max(plan["Actual Rows"] ?? 0, contentsAsked(text, params));
      await connection.unsafe(`deallocate ${name}`);
      const fetched = new Map<string, number>();
      const faults: string[] = [];
      const visit = (node: PlanNode) => {
        const table = node["Relation Name"];
        if (table !== undefined && table !== "audit_segments_default") {
          if (!node["Node Type"].startsWith("Index")) faults.push(`${node["Node Type"]} of ${table}`);
          const removed = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Index Recheck"] ?? 0);
          const rows = ((node["Actual Rows"] ?? 0) + removed) * (node["Actual Loops"] ?? 0);
          fetched.set(table, (fetched.get(table) ?? 0) + rows);
        }
        for (const inner of node.Plans ?? []) visit(inner);
      };
      visit(plan);
      for (const [table, rows] of fetched) {
        const times = table === "sets" || table === "data_keys" ? 3 : table === "projects" ? 2 : 1;
        const most = times * Math.max(returned, 1);
        if (rows > most) faults.push(`fetches ${rows} of ${table} for ${returned}`);
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

/** SQLite says how it would find the rows: by `SEARCH`, with equality on an index's first columns, never by `SCAN`. */
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

/** A database with many projects that no request asks for, and an API that notes the statements it runs. */
async function setStage(w: World) {
  if (w.dialect === "postgres") {
    for (const table of stored.filter((table) => table !== "audit_segments")) {
      await w.run(`alter table ${table} set (autovacuum_enabled = off)`);
    }
  }
  const other = await w.organization();
  const { organization, project } = await w.place({ slug: "big" });
  await insertAccounts(w, project, numbered("production ", 30), ["production"]);
  await insertAccounts(w, project, numbered("staging ", 30), ["staging", "development"]);
  await insertAccounts(w, project, numbered("everywhere ", 10), environments);
  await insertFiles(w, project, numbered("production/", 20), ["production"]);
  await insertFiles(w, project, numbered("staging/", 200), ["staging"]);
  const content = randomContent(1_500_000);
  await putFile(w.admin, project.where, { path: "large", environments: ["staging"], content });
  for (const environment of environments) {
    const entries = numbered("N", 100).map((name) => ({ name, value: `value of ${name}` }));
    await setVariables(w.admin, project.where, environment, entries);
  }
  // More than comes along with a lookup, or fits into a small read.
  const long = numbered("L", 8).map((name) => ({ name, value: name.repeat(8000) }));
  await setVariables(w.admin, project.where, "development", long);
  await fillWith(w, organization, numbered("p", 900));
  await fillWith(w, other, numbered("p", 1100));
  for (let i = 0; i < 50; i++) await w.key(await w.organization());

  const ran: Ran[] = [];
  const databases = new Map<Use, Database>();
  const open = (use: Use): Database => {
    const database = w.installation.open(use);
    databases.set(use, database);
    type Dialect = { sqlToQuery(text: SQL): { sql: string; params: unknown[] } };
    const { dialect } = database.db as unknown as { dialect: Dialect };
    return {
      ...database,
      query: (text, options) => {
        const compiled = dialect.sqlToQuery(text);
        const run = database.query(text, options);
        return (values) => {
          ran.push({ use, text: compiled.sql, params: fillPlaceholders(compiled.params, { ...values }) });
          return run(values) as never;
        };
      },
    };
  };
  const keyhole: OpenKeyhole = await openKeyhole({ ...w.installation, openServing: () => openServing(open) }, () => {});
  let seconds = 0;
  /** What a caller alone asks with its entry. */
  const conditions: Ran[] = [];
  const lookUp: typeof keyhole.gate.lookUp = async (lookup) => {
    const found = await keyhole.gate.lookUp(lookup);
    if (found?.again) conditions.push(conditionOf(found.again));
    return found;
  };
  const client = clientOf({ ...keyhole, gate: { ...keyhole.gate, lookUp, nowUs: () => ++seconds * 10_000_000 } });
  const narrow = { ...everything, projects: ["big", "p0003", "p0004"], environments: ["staging"] };
  const [every, crowded] = [await w.key(organization, everything), await w.key(other, everything)];
  const keys = { every, crowded, narrow: await w.key(organization, narrow) };
  const statementsOf = async (path: string, key: Key): Promise<Ran[]> => {
    ran.length = 0;
    await client.ask(path, { key });
    return ran.filter(({ text }) => !text.includes("insert into")); // the last uses of keys
  };
  return {
    w,
    organization,
    where: project.where,
    keyhole,
    databases,
    client,
    keys,
    ran,
    conditions,
    statementsOf,
    paths,
  };
}

/** A condition as the journal's connection asks it, without the entry. */
function conditionOf({ text, parameters }: AppendCondition): Ran {
  const numbered = text.replace(/\$(\d+)/g, (_, number) => `$${Number(number) - conditionFrom + 1}`);
  return { use: "journal", text: `select 1 as one where exists (${numbered})`, params: parameters };
}

const names = numbered("N", 100).join(",");
const paths = [
  ...["/organization", "/projects", "/projects/big", "/projects/never-was"],
  ...below("/projects/big/variables?environment=staging", "", "&format=env", `&keys=${names}`, "&keys=N0001,NEVER_WAS"),
  ...below("/projects/big/variables?environment=", "development", "staging&prefix=N009", "staging&prefix=NEVER_WAS"),
  ...below("/projects/big/variables?metadata_only=true", "", "&environment=staging", `&keys=${names}`, "&prefix=N009"),
  "/projects/big/variables?metadata_only=true&prefix=N009&environment=staging",
  ...below("/projects/big/accounts", "", "?environment=staging", "?environment=development", "?metadata_only=true"),
  "/projects/big/accounts?metadata_only=true&environment=staging",
  ...below("/files?project=big&environment=staging", "", "&path=staging/0001&path=never-was", "&path=large"),
  ...below("/files?project=big&environment=staging&metadataOnly=1", "", "&path=staging/0001&path=production/0001"),
  ...["/files?project=big&environment=development", "/secrets?project=big&environment=staging"],
];

/** Every statement that the paths run, for keys of every reach and for many requests at once. */
async function runEverything(stage: Awaited<ReturnType<typeof setStage>>): Promise<Ran[]> {
  const { w, organization, keys, client, ran } = stage;
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
    await run(key, below("/projects", "", "/big", "/big/accounts", "/big/accounts?metadata_only=true"));
    const files = "/files?project=big&environment=production&metadataOnly=1";
    await run(key, ["/projects/big/variables?metadata_only=true", files]);
  }
  await run(mintKey(), ["/organization"]);
  expect(await run(keys.crowded, ["/projects", "/projects/p0001"])).toEqual([422, 200]);
  ran.length = 0;
  const together = paths.flatMap((path) => [keys.every, keys.narrow].map((key) => client.ask(path, { key })));
  await Promise.all(together);
  all.push(...ran, ...stage.conditions);
  return all;
}

async function ask({ ask }: Client, key: Key | string, some: readonly string[]): Promise<number[]> {
  const statuses: number[] = [];
  for (const path of some) statuses.push((await ask(path, { key })).status);
  return statuses;
}

/** Projects with nine sets, a data key and ten contents each. Nothing in them opens. */
async function fillWith(w: World, organization: Organization, slugs: readonly string[]): Promise<void> {
  for (let at = 0; at < slugs.length; at += 500) await insertProjects(w, organization, slugs.slice(at, at + 500));
  const projects = `(select id from projects where organization_id = '${organization.id}' and slug like 'p%') as p`;
  const oneOf = (column: string, values: readonly unknown[]) =>
    `(${values.map((value) => `select ${typeof value === "string" ? `'${value}'` : value} as ${column}`).join(" union all ")}) as of_${column}`;
  const sealed = Buffer.alloc(60);
  await w.run(
    `insert into data_keys (project_id, generation, root_id, wrapped, created_at)
      select p.id, 1, '0123456789abcdef', ?, 1 from ${projects}`,
    [sealed],
  );
  await w.run(
    `insert into sets (project_id, kind, environment, version, generation, listing_mac, listing, sealed)
      select p.id, kind, environment, 1, 1, ?, '[]', ?
      from ${projects}, ${oneOf("kind", ["variables", "accounts", "files"])}, ${oneOf("environment", environments)}`,
    [sealed, sealed],
  );
  await w.run(
    `insert into file_contents (id, project_id, size, generation, sealed)
      select p.id || '/' || n, p.id, 26, 1, ? from ${projects}, ${oneOf("n", [...Array(10).keys()])}`,
    [sealed],
  );
}
