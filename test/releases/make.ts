/**
 * Makes what a release leaves to all later ones: the folder `test/releases/VERSION`, with a small database of that
 * version in both dialects. `test/blackbox/releases.test.ts` opens every such folder with the program of today. Run it
 * once for each release, when the tables are final, on a machine with the programs of PostgreSQL 15, and commit the
 * folder. A folder that is committed never changes again.
 *
 *     bun run build && bun --no-env-file test/releases/make.ts
 *
 * | file | content |
 * | --- | --- |
 * | `keyhole.db` | the embedded database |
 * | `keyhole.sql` | the same in PostgreSQL, by `pg_dump` |
 * | `root-key` | the root keys of both, newest first |
 * | `expected.json` | for each dialect, what commands print and what reads answer |
 *
 * Every value in it is made up, and the keys in it open nothing else: none of them is a secret.
 */
import { Database as SqliteFile } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { version } from "../../package.json" with { type: "json" };
import { ask } from "../support/connection.ts";
import { fromSource } from "../support/from-source.ts";
import { newSigningKey, publicJwk } from "../support/issuer.ts";
import { runJson } from "../support/keyhole.ts";
import { callTool } from "../support/mcp.ts";
import { startNotary } from "../support/notary.ts";
import { createDatabase, startPostgres } from "../support/postgres.ts";
import { type Dialect, type Key, makeSite, type Server, type Site } from "../support/server.ts";
import { bodyOf, type Expected, type Read, type Trusted, tokenOf } from "./release.ts";

/** The oldest PostgreSQL that Keyhole runs on: what its pg_dump writes, every newer one reads. */
const postgresMajor = "15";
const dayMs = 86_400_000;

const folder = join(import.meta.dir, version);
const [older, newer] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
const rootKey = `${newer},${older}`;

process.env["KEYHOLE_TEST_POSTGRES"] = "machine";
const cluster = await startPostgres();
if (cluster === undefined || Number.parseInt(cluster.version, 10) !== Number(postgresMajor)) {
  await cluster?.stop();
  throw new Error(`This needs the programs of PostgreSQL ${postgresMajor} in PATH, and found ${cluster?.version}.`);
}
try {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "root-key"), `${rootKey}\n`);
  const expected = { sqlite: await make("sqlite"), postgres: await make("postgres", cluster) };
  writeFileSync(join(folder, "expected.json"), `${JSON.stringify(expected, undefined, 1)}\n`);
} finally {
  await cluster.stop();
}

async function make(dialect: Dialect, cluster?: { readonly url: string; readonly origin: string }): Promise<Expected> {
  const database = cluster && (await createDatabase(cluster.url));
  const settings = { KEYHOLE_ROOT_KEY: rootKey, KEYHOLE_ACTOR: "ann@example.com" };
  const site = await makeSite(dialect, database?.url, settings);
  try {
    const keys = await begin(site);
    const { reads, trusted } = await fill(site, keys);
    const commands = await record(site);
    if (cluster && database) dump(join(cluster.origin, "pg_dump"), database.url);
    else copy(site);
    return { commands, reads, trusted, rollbacks: await rollBack(site, reads) };
  } finally {
    await site.remove();
    await database?.drop();
  }
}

/** A thousand days ago: what has expired by now, and audit entries that retention deletes. */
async function begin(site: Site): Promise<{ readonly expired: Key; readonly rotated: Key; readonly successor: Key }> {
  const program = fromSource(undefined, -1000 * dayMs);
  const env = { ...site.env, ...program.env, KEYHOLE_ROOT_KEY: older };
  const json = (args: readonly string[], stdin = "") => runJson(args, { ...program, env, cwd: site.folder, stdin });
  await json(["org", "create", "acme", "--name", "Acme Inc."]);
  await json(["project", "create", "acme/store", "--name", "Web shop"]);
  await json(["var", "set", "acme/store", "production", "DATABASE_URL"], "postgres://shop:first@db/shop");
  const reach = ["--org", "acme", "--all-projects", "--all-environments"];
  const expired = (await json(["key", "create", "--name", "expired", ...reach, "--expires-in", "30d"])) as Key;
  const rotated = (await json(["key", "create", "--name", "rotated", ...reach])) as Key;
  const successor = (await json(["key", "rotate", rotated.id, "--overlap", "1h"])) as Key;
  const server = await site.serve({ ...program, env });
  await ask(`${server.origin}/api/v1/projects/store/variables?environment=production`, bearer(successor.key));
  await server.stop();
  return { expired, rotated, successor };
}

/** Today: everything else. Returns what reads answer. */
async function fill(site: Site, keys: Awaited<ReturnType<typeof begin>>) {
  const json = (args: readonly string[], stdin = "") => site.json(args, stdin);
  await json(["rotate", "root"]);
  await json(["audit", "prune", "--yes"]);
  await json(["project", "rename", "acme/store", "shop", "--yes"]);
  await json(["org", "create", "idle", "--plan", "free"]);
  for (const project of ["acme/blog", "acme/gone", "idle/site"]) await json(["project", "create", project]);
  await json(["project", "delete", "acme/gone", "--yes"]);

  const shop = ["acme/shop", "production"] as const;
  await json(["var", "set", ...shop, "DATABASE_URL"], "postgres://shop:second@db/shop");
  await json(["var", "set", ...shop, "GREETING"], "“é🦔” $HOME\nsecond line\n");
  const coming = new Date(Date.now() + 90 * dayMs).toISOString().slice(0, 10);
  await json(["var", "set", ...shop, "STRIPE_KEY", "--rotate-by", coming], "made-up-stripe-key");
  await json(["var", "set", ...shop, "EMPTY", "--value", ""]);
  await json(["var", "set", ...shop, "LONG"], "long ".repeat(500));
  await json(["var", "delete", ...shop, "GREETING"]);
  await json(["rollback", ...shop, "variables", "--to", "7", "--yes"]);
  await json(["var", "set", ...shop, "DATABASE_URL"], "postgres://shop:third@db/shop");
  await json(["var", "import", "acme/shop", "staging", "-"], 'A=one\nB="two words"\n');
  await json(["var", "set", "acme/shop", "staging", "STORED_BY_MISTAKE"], "purged");
  await json(["var", "delete", "acme/shop", "staging", "STORED_BY_MISTAKE"]);
  await json(["history", "purge", "acme/shop", "staging", "variables", "--yes"]);
  await json(["var", "set", "acme/blog", "development", "THEME", "--value", "dark"]);
  await json(["var", "set", "idle/site", "production", "UNREAD", "--value", "unread"]);
  await json(["var", "get", ...shop, "STRIPE_KEY"]);

  const account = (name: string, environments: string, values: object) =>
    json(["account", "set", "acme/shop", name, "--env", environments, "--yes"], JSON.stringify(values));
  await account("mail", "staging,production", { user: "shop@example.com", password: "first" });
  await account("mail", "production", { user: "shop@example.com", password: "second", note: "ä\n" });
  await account("bank", "production", { iban: "made up" });
  await json(["account", "delete", "acme/shop", "bank"]);
  await account("vpn", "development", { token: "made-up-vpn-token" });

  const file = (path: string, environments: string, content: Uint8Array | string, ...more: string[]) =>
    site.json(["file", "put", "acme/shop", "-", "--path", path, "--env", environments, ...more], content);
  const everyByte = Buffer.from(Array.from({ length: 3000 }, (_, at) => (at * 7 + (at >> 8)) % 256));
  await file("config/tls.p12", "staging,production", everyByte, "--mode", "0400", "--type", "application/x-pkcs12");
  await file("config/tls.p12", "production", Buffer.from(everyByte).reverse(), "--name", "TLS of production");
  await file("empty", "development", "");
  await file(".ssh/id_ed25519", "production", "made-up private key\n");
  await json(["file", "delete", "acme/shop", ".ssh/id_ed25519", "--env", "production"]);
  await json(["rotate", "data", "acme/shop"]);
  await file("after-rotation", "production", "under the second data key");

  const every = "projects,variables,accounts,files,requests";
  const surfaces = ["--surface", "rest_api,mcp_server,ci_action"];
  const reader = await site.key("--org", "acme", "--name", "reader", ...surfaces, "--resource", every);
  const narrow = await site.key("--org", "acme", "--name", "narrow", "--project", "shop", "--env", "production");
  const unpaid = await site.key("--org", "idle", "--name", "unpaid");
  const revoked = await site.key("--org", "acme", "--name", "revoked");
  await json(["key", "revoke", revoked.id]);
  const trusted = await trust(site);
  await json(["person", "add", "ana", "--org", "acme"]);
  await json(["person", "grant", "ana", "see,reveal", "--project", "shop", "--env", "production"]);

  const server = await site.serve({ env: { KEYHOLE_MCP: "on" } });
  await fileRequests(site, server, reader);
  const production = "environment=production";
  const asked: [Key, string][] = [
    [reader, "/organization"],
    [reader, "/projects"],
    [reader, "/projects/shop"],
    [reader, `/projects/shop/variables?${production}`],
    [reader, `/projects/shop/variables?${production}&format=env`],
    [reader, `/projects/shop/variables?${production}&keys=DATABASE_URL`],
    [reader, "/projects/shop/variables?environment=staging"],
    [reader, "/projects/shop/variables?metadata_only=true"],
    [reader, "/projects/blog/variables?environment=development"],
    [reader, "/projects/shop/accounts"],
    [reader, `/projects/shop/accounts?${production}`],
    [reader, `/files?project=shop&${production}`],
    [reader, "/files?project=shop&environment=staging"],
    [reader, "/files?project=shop&environment=development"],
    [reader, `/secrets?project=shop&${production}`],
    [keys.successor, `/projects/shop/variables?${production}`],
    [narrow, "/projects"],
    [narrow, `/projects/shop/variables?${production}`],
    [narrow, "/projects/shop/variables?environment=staging"],
    [narrow, `/files?project=shop&${production}`],
    [unpaid, "/projects"],
    [revoked, "/organization"],
    [keys.expired, "/organization"],
    [keys.rotated, "/organization"],
  ];
  const reads: Read[] = [];
  for (const [{ key }, path] of asked) reads.push(await read(server, key, path));
  const answered = await read(server, tokenOf(trusted), trusted.path);
  if (answered.status !== 200) throw new Error("The trust's token is refused.");
  await server.stop();
  const notary = await startNotary(site);
  await notary.says('"event":"signed_checkpoint"');
  await notary.stop();
  return { reads, trusted: { ...trusted, body: answered.body } };
}

/** One trust whose issuer's keys are in the database, and one whose issuer publishes them. */
async function trust(site: Site): Promise<Trusted> {
  const key = newSigningKey("ES256");
  const jwks = join(site.folder, "jwks.json");
  writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", key)] }));
  const trusted = {
    issuer: "https://issuer.example.com",
    audience: "https://keyhole.example.com",
    kid: "one",
    privateKey: key.privateKey.export({ format: "jwk" }),
    path: "/projects/shop/variables?environment=staging",
    body: null,
  };
  const reach = ["--org", "acme", "--project", "shop", "--env", "staging"];
  const terms = ["--audience", trusted.audience, "--claim", "sub=job"];
  await site.json(
    ["trust", "add", "--name", "job", "--issuer", trusted.issuer, ...terms, "--jwks-file", jwks].concat(reach),
  );
  const other = (await site.json(
    ["trust", "add", "--name", "revoked", "--issuer", "https://other.example.com", ...terms].concat(reach),
  )) as Key;
  await site.json(["trust", "revoke", other.id]);
  return trusted;
}

/** Three requests of an agent: one is approved, one rejected, one left. */
async function fileRequests(site: Site, { origin }: Server, { key }: Key): Promise<void> {
  const client = new Client({ name: "agent", version: "1" });
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${origin}/mcp`), { requestInit }));
  const request = async (name: string) => {
    const asked = { project: "shop", environment: "production", name, reason: `The build needs ${name}.` };
    return (await callTool(client, "request_variable", asked)).found["id"] as string;
  };
  await site.json(["request", "approve", await request("APPROVED")], "made up by a person");
  await site.json(["request", "reject", await request("REJECTED"), "--reason", "It has another name."]);
  await request("LEFT");
  await client.close();
}

/** What commands print that changes with neither time nor use. */
async function record(site: Site): Promise<Expected["commands"]> {
  const histories = ["variables", "accounts", "files"].map((kind) => ["history", "acme/shop", "production", kind]);
  const lines = [
    ["audit", "list", "--limit", "1000"],
    ["org", "list"],
    ["project", "list"],
    ["var", "list", "acme/shop", "production"],
    ["account", "list", "acme/shop"],
    ["file", "list", "acme/shop"],
    ...histories,
    ["history", "acme/shop", "staging"],
    ["key", "list"],
    ["trust", "list"],
    ["request", "list"],
  ];
  const commands: { args: string[]; printed: unknown }[] = [];
  for (const args of lines) commands.push({ args, printed: withoutPending(await site.json(args)) });
  return commands;
}

/** A request that is pending expires a week later. */
function withoutPending(printed: unknown): unknown {
  return JSON.parse(
    JSON.stringify(printed, (name, value) => (name === "status" && value === "pending" ? undefined : value)),
  );
}

/** Rolls each kind back, in the database that was copied already, and says what reads answer after that. */
async function rollBack(site: Site, reads: readonly Read[]): Promise<Expected["rollbacks"]> {
  const at = (path: string) => reads.find((one) => one.path.startsWith(path)) as Read;
  const steps = [
    ["variables", "4", at("/projects/shop/variables?environment=production")],
    ["accounts", "4", at("/projects/shop/accounts?environment=production")],
    ["files", "4", at("/files?project=shop&environment=production")],
  ] as const;
  const server = await site.serve();
  const rollbacks: Expected["rollbacks"][number][] = [];
  for (const [kind, to, { key, path, body }] of steps) {
    const args = ["rollback", "acme/shop", "production", kind, "--to", to, "--yes"];
    await site.json(args);
    const after = await read(server, key, path);
    if (JSON.stringify(after.body) === JSON.stringify(body))
      throw new Error(`The rollback of ${kind} changed nothing.`);
    // What came back has the time of the rollback.
    const undated = JSON.stringify(after, (name, value) => (name === "updatedAt" ? undefined : value));
    rollbacks.push({ args, read: JSON.parse(undated) });
  }
  await server.stop();
  return rollbacks;
}

async function read({ origin }: Server, key: string, path: string): Promise<Read> {
  const answer = await ask(`${origin}/api/v1${path}`, bearer(key));
  // The sentence of an error may change, its code may not.
  const body = JSON.parse(JSON.stringify(bodyOf(answer), (name, value) => (name === "error" ? undefined : value)));
  return { key, path, status: answer.status, body };
}

function bearer(key: string): Readonly<Record<string, string>> {
  return { Authorization: `Bearer ${key}` };
}

/** Writes `keyhole.db`, without what SQLite keeps free. */
function copy(site: Site): void {
  const path = join(folder, "keyhole.db");
  if (existsSync(path)) rmSync(path);
  const file = new SqliteFile(join(site.data, "keyhole.db"));
  file.run("VACUUM INTO ?", [path]);
  file.close();
}

/** Writes `keyhole.sql`, without the lines that only psql reads, so that a test needs no psql. */
function dump(pgDump: string, url: string): void {
  const { stdout, stderr, success } = Bun.spawnSync([pgDump, "--no-owner", "--no-privileges", "--inserts", url]);
  if (!success) throw new Error(`pg_dump: ${stderr}`);
  writeFileSync(join(folder, "keyhole.sql"), stdout.toString().replace(/^\\(?:un)?restrict .*\n/gm, ""));
}
