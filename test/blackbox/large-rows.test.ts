/** A row that someone blew up by SQL costs the server no memory, and is never served. */

import { Database as SqliteFile } from "bun:sqlite";
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Key, makeKeys, onBoth, type Server, siteOf } from "../support/server.ts";

setDefaultTimeout(120_000);
const mebibyte = 1024 * 1024;
const bytes = 100 * mebibyte;

const variables = "/projects/web/variables?environment=staging";
const accounts = "/projects/web/accounts";
const files = "/files?project=web&environment=staging";
const values = [variables, `${variables}&keys=NAME`, accounts, files];
const metadata = [`${variables}&metadata_only=true`, `${accounts}?metadata_only=true`, `${files}&metadataOnly=true`];

const everything = ["/organization", "/projects", "/projects/web", ...values, ...metadata];
const primaryKeys = {
  organizations: ["id"],
  projects: ["id"],
  api_keys: ["id"],
  sets: ["project_id", "kind", "environment"],
  data_keys: ["project_id"],
  file_contents: ["id"],
} as const;

type Case = readonly [
  column: `${keyof typeof primaryKeys}.${string}`,
  /** What touches the column: refused, with 401 for a key's row and 503 for any other. */
  touching: readonly string[],
  /** What goes on being answered. */
  others?: readonly string[],
  where?: string,
];

const staging = "environment = 'staging'";
const cases: readonly Case[] = [
  ...(["name", "slug", "plan"] as const).map((column): Case => [`organizations.${column}`, everything]),
  ...(["projects", "grant_seal", "trust"] as const).map((column): Case => [`api_keys.${column}`, everything]),
  ["projects.name", ["/projects", "/projects/web"], values],
  ["projects.slug", ["/projects"], ["/organization"]],
  ["projects.variable_counts", ["/projects", "/projects/web"], values],
  ["projects.account_counts", ["/projects", "/projects/web"], values],
  ["projects.file_counts", ["/projects/web", files], [variables]],
  ["projects.changed_at", ["/projects/web"], values],
  ...["", "_mac"].map((end): Case => [`sets.listing${end}`, [...values, ...metadata], ["/projects"], staging]),
  ["sets.sealed", [variables, `${variables}&keys=A`, accounts], [files, ...metadata], `${staging} and kind <> 'files'`],
  ["sets.sealed", [files], [variables], `${staging} and kind = 'files'`],
  ["data_keys.wrapped", values, metadata],
  ["data_keys.root_id", values, metadata],
  ["file_contents.sealed", [files], [variables, ...metadata]],
];

onBoth("100 MiB", (dialect) => {
  const site = siteOf(dialect, { staging: { NAME: "value" } });
  let server: Server;
  /** One for each case, so that none meets its limit. */
  let keys: readonly Key[];
  /** A statement of someone who ignores the database's rules. */
  const edit = async (text: string) => {
    if (dialect === "postgres") return void (await site.sql(text));
    const file = new SqliteFile(join(site.data, "keyhole.db"));
    for (const each of ["busy_timeout = 5000", "ignore_check_constraints = on", "foreign_keys = off"]) {
      file.run(`PRAGMA ${each}`);
    }
    file.run(text);
    file.close();
  };
  beforeAll(async () => {
    await site.json(["account", "set", "acme/web", "mail", "--env", "staging"], '{"user":"me"}');
    await site.json(["file", "put", "acme/web", "-", "--path", "a.txt", "--env", "staging"], "content");
    keys = await makeKeys(site, cases.length, "projects,variables,accounts,files");
    server = await site.serve();
    for (const table of Object.keys(primaryKeys)) await edit(`create table kept_${table} as select * from ${table}`);
    if (dialect === "sqlite") return;
    const rules = await site.sql(`select conrelid::regclass::text as owner, conname from pg_constraint
      where contype = 'c' and conrelid::regclass::text in ('organizations', 'projects')`);
    for (const { owner, conname } of rules) await edit(`alter table ${owner} drop constraint ${conname}`);
    for (const index of ["organizations_slug", "projects_slug"]) await edit(`drop index ${index}`);
    // Compressing this much takes PostgreSQL seconds, so it does that once. Copies stay compressed.
    await edit(`create table large as select t as text, convert_to(t, 'UTF8') as bytes from repeat('0', ${bytes}) t`);
  });

  for (const [index, [place, touching, others = [], where = "true"]] of cases.entries()) {
    // SQLite compares whole rows of an index. Its check of slugs cannot be dropped without the file itself.
    if (place === "projects.slug" && dialect === "sqlite") continue;
    test(`in ${place}, where ${where}, cost no memory and are never served`, async () => {
      const [table, column] = place.split(".") as [keyof typeof primaryKeys, string];
      const status = table === "api_keys" ? 401 : 503;
      const { key, id } = keys[index] as Key;
      const chosen = table === "api_keys" ? `id = '${id}'` : where;
      const ask = async (path: string) => [path, (await server.get(path, key)).status];
      for (const path of everything) expect(await ask(path)).toEqual([path, 200]);
      writeFileSync(`/proc/${server.pid}/clear_refs`, "5"); // from here on the peak is that of this case
      const { now } = server.memory();

      await edit(`update ${table} set ${column} = ${large(dialect, column)} where ${chosen}`);
      const found = [];
      for (const path of [...touching, ...others]) found.push(await ask(path));
      const { peak } = server.memory();
      const same = primaryKeys[table].map((name) => `k.${name} = ${table}.${name}`).join(" and ");
      const kept = `(select k.${column} from kept_${table} k where ${same})`;
      await edit(`update ${table} set ${column} = ${kept} where ${chosen}`);

      expect(found).toEqual([...touching.map((path) => [path, status]), ...others.map((path) => [path, 200])]);
      expect((peak - now) / mebibyte).toBeLessThan(64);
    });
  }
});

/** 100 MiB, made by the database. */
function large(dialect: "sqlite" | "postgres", column: string): string {
  const isBytes = ["grant_seal", "listing_mac", "sealed", "wrapped"].includes(column);
  if (dialect === "sqlite") return isBytes ? `zeroblob(${bytes})` : `hex(zeroblob(${bytes / 2}))`;
  return `(select ${isBytes ? "bytes" : "text"} from large)`;
}
