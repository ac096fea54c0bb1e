/**
 * Nothing secret leaves a trace: after many reads, writes and failures, values and keys are searched for in every
 * encoding, in the log, the refusals, the audit and the database's files.
 */

import { expect, test } from "bun:test";
import { hkdfSync } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { putFile } from "../../src/kinds/files/write.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { dataKeyAssociatedData, encodeFields } from "../../src/seal/associated-data.ts";
import { open } from "../../src/seal/envelope.ts";
import { parseRootKeys } from "../../src/seal/keyring.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { openLog } from "../../src/serve/process/log.ts";
import { type Answer, below } from "../support/answer.ts";
import { contractProblem, unlimited } from "../support/attack.ts";
import { spellingsOf } from "../support/canary.ts";
import { deleteVariable } from "../support/delete.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

/** What must not be found, by what it is. */
type Secrets = Map<string, Buffer>;
/** Where it must not be found, by what it is. */
type Places = Map<string, Buffer>;

describeBoth("after a mixed day", (w) => {
  test("no value, API key, data key or root key is found anywhere except sealed", async () => {
    const secrets: Secrets = new Map();
    const refusals = await mixedDay(w, secrets);
    expect(refusals.length).toBeGreaterThan(30);
    for (const [name, bytes] of await keysOf(w)) secrets.set(name, bytes);
    const places = await placesOf(w, refusals);
    expect(secrets.size).toBeGreaterThan(25);
    const found: string[] = [];
    for (const [what, secret] of secrets) {
      for (const [how, spelling] of spellingsOf(secret)) {
        for (const [where, bytes] of places) if (bytes.includes(spelling)) found.push(`${what}, ${how}, in ${where}`);
      }
    }
    expect(found).toEqual([]);
  });
});

test("the search finds a secret in every encoding, at any offset", () => {
  const secret = Buffer.from("k/4f+9~ value, with \u00fc");
  const text = secret.toString("utf8");
  const forms = [
    secret,
    Buffer.from(text, "utf16le"),
    Buffer.from(text, "utf16le").swap16(),
    ...[0, 1, 2, 3].map((before) => Buffer.from(Buffer.from(`${"x".repeat(before)}${text}yy`).toString("base64"))),
    ...[0, 1, 2].map((before) => Buffer.from(Buffer.from(`${"x".repeat(before)}${text}y`).toString("base64url"))),
    Buffer.from(secret.toString("hex")),
    Buffer.from(secret.toString("hex").toUpperCase()),
    Buffer.from(encodeURIComponent(text)),
    Buffer.from(JSON.stringify({ a: 'say "k/4f+9~ value, with \u00fc"' })),
  ];
  for (const form of forms) {
    const haystack = Buffer.concat([Buffer.from("before "), form, Buffer.from(" after")]);
    expect([...spellingsOf(secret).values()].some((spelling) => haystack.includes(spelling))).toBe(true);
  }
});

/** Writes, reads and fails in every way. @returns every refusal, as it was sent or printed */
async function mixedDay(world: World, secrets: Secrets): Promise<string[]> {
  const refusals: string[] = [];
  const secret = (what: string) => {
    // It looks different in every encoding.
    const text = `${Buffer.from(crypto.getRandomValues(new Uint8Array(15))).toString("base64")}/+ \u00e9${what}`;
    secrets.set(what, Buffer.from(text));
    return text;
  };
  const beta = await world.organization();
  const { organization: alpha, project: web } = await world.place({
    variables: {
      production: { FIRST: secret("a variable"), SECOND: secret("another"), ODD: `it's\n$(${secret("an odd one")})` },
      staging: { FIRST: secret("a variable in staging"), HURT: secret("one that will not open") },
    },
    accounts: [{ name: "mail", environments: ["production"], values: { user: "u", password: secret("an account") } }],
    files: [
      { path: "a.txt", environments: ["production"], content: secret("a file") },
      { path: "big.bin", environments: ["production"], content: secret("a large file").repeat(15_000) },
    ],
  });
  const keys = {
    every: await world.key(alpha, everything),
    narrow: await world.key(alpha, { projects: ["web"], environments: ["staging"] }),
    revoked: await world.key(alpha, everything),
    stranger: await world.key(beta, everything),
  };
  for (const [name, { key }] of Object.entries(keys)) secrets.set(`the key ${name}`, Buffer.from(key));
  const unknown = mintKey();
  secrets.set("an unknown key", Buffer.from(unknown));

  const client = unlimited(world);
  const limited = world.client();
  const note = (answer: Answer) => {
    expect(contractProblem(answer)).toBeUndefined();
    if (answer.status !== 200) refusals.push(`${answer.text} ${JSON.stringify([...answer.headers])}`);
  };
  const paths = [
    ...["/organization", "/projects", "/projects/web", "/projects/web/accounts", "/projects/nothing", "/nothing"],
    ...["production", "staging"].flatMap((at) => [
      ...below(`/projects/web/variables?environment=${at}`, "", "&format=env", "&keys=FIRST&metadata_only=true"),
      ...below(`/files?project=web&environment=${at}`, "", "&metadataOnly=1"),
      ...[`/projects/web/accounts?environment=${at}`, `/secrets?project=web&environment=${at}`],
    ]),
  ];
  const everyone = [...Object.values(keys).map(({ key }) => key), unknown, undefined];
  const readAll = async () => {
    for (const key of everyone) for (const path of paths) note(await client.ask(path, { key }));
  };
  await revokeKey(world.admin, keys.revoked.id);
  await readAll();
  // Values and keys in the wrong parts of a request.
  const value = secrets.get("a variable")?.toString() as string;
  for (const stray of [value, keys.every.key]) {
    const encoded = encodeURIComponent(stray);
    for (const path of [`/projects/${encoded}`, `/organization?${encoded}=1`, `/organization?token=${encoded}`]) {
      note(await client.ask(path, { key: keys.every }));
    }
    note(await client.ask("/organization", { headers: { authorization: `Basic ${btoa(unescape(encoded))}` } }));
    note(await client.ask("/organization", { headers: { authorization: `Bearer x,${encoded}` } }));
    note(await client.ask("/organization", { method: "POST", key: keys.every }));
  }
  for (let n = 0; n < 40; n++) note(await limited.ask(paths[6] as string, { key: keys.every }));
  for (let n = 0; n < 12; n++) note(await limited.ask("/organization", { key: unknown }));
  // A set that does not verify, sets that are gone, a journal that cannot write, a plan that ends.
  await world.sql`update sets set version = 7 where kind = 'variables' and environment = 'staging'`;
  await readAll();
  await world.sql`delete from sets where kind <> 'files' and environment = 'production'`;
  await readAll();
  await world.run("alter table audit_segments rename to elsewhere");
  await readAll();
  await world.run("alter table elsewhere rename to audit_segments");
  await setPlan(world.admin, alpha.slug, "free");
  await readAll();
  await setPlan(world.admin, alpha.slug, "pro");
  // Writes, most of them refused.
  const said = async (work: Promise<unknown>) => {
    await work.catch((error: unknown) => refusals.push(Bun.inspect(error)));
  };
  const { admin } = world;
  const written = (n: number) => (n === 9 ? secret("an import") : `${n}`);
  const imported = Array.from({ length: 50 }, (_, n) => ({ name: `N${n}`, value: written(n) }));
  await said(setVariables(admin, web.where, "development", imported));
  await said(setVariables(admin, web.where, "development", [{ name: "not a name", value: secret("of no name") }]));
  await said(setVariables(admin, web.where, "development", [{ name: "NUL", value: `${secret("with a NUL")}\0` }]));
  await said(setVariables(admin, web.where, "development", [{ name: "LONG", value: secret("too long").repeat(3000) }]));
  await said(setVariables(admin, web.where, "staging", [{ name: "FIRST", value: secret("a newer one") }]));
  await said(deleteVariable(admin, web.where, "development", "N9"));
  await said(setAccount(admin, web.where, "mail", ["nowhere"], { password: secret("nowhere") }));
  await said(setAccount(admin, web.where, "mail", ["staging"], { password: [secret("in a list")] }));
  await said(setAccount(admin, web.where, "mail", ["staging"], { password: secret("a newer account") }));
  const file = { path: "../up", environments: ["staging"], content: Buffer.from(secret("a file that goes up")) };
  await said(putFile(admin, web.where, file));
  await said(putFile(admin, web.where, { ...file, path: "a.txt", environments: ["production", "staging"] }));
  await readAll();
  return refusals;
}

/** All keys of the installation, raw: the root key, its wrap key, and every key that is wrapped by that. */
async function keysOf(world: World): Promise<Secrets> {
  const { config, installation } = world;
  if (config.rootKey.from !== "text") throw new Error("the world's root key is a text");
  const [root] = parseRootKeys(config.rootKey.text) as [Uint8Array];
  const wrapKey = Buffer.from(hkdfSync("sha256", root, "", encodeFields("keyhole 1 wrap key"), 32));
  const keys: Secrets = new Map([
    ["the root key", Buffer.from(root)],
    ["the wrap key", wrapKey],
  ]);
  for (const [purpose, key] of Object.entries(installation.systemKeys))
    keys.set(`the ${purpose} key`, Buffer.from(key));
  const rows = await world.sql`select d.*, p.slug from data_keys d join projects p on p.id = d.project_id`;
  for (const row of rows) {
    const [id, rootId, slug] = [row["project_id"], row["root_id"], row["slug"]] as [string, string, string];
    const generation = row["generation"] as number;
    const wrapped = row["wrapped"] as Buffer;
    const associatedData = dataKeyAssociatedData(id, generation, rootId);
    keys.set(`the data key of ${slug}`, open(wrapKey, associatedData, wrapped));
    const dataKey = installation.keyring.dataKey(id, generation, rootId, wrapped);
    for (const kind of ["variables", "accounts", "file"]) {
      keys.set(`the ${kind} subkey of ${slug}`, Buffer.from(dataKey.subkey(kind)));
    }
  }
  return keys;
}

async function placesOf(world: World, refusals: readonly string[]): Promise<Places> {
  const places: Places = new Map();
  for (const pretty of [false, true]) {
    let lines = "";
    const { log, flush } = openLog(
      (text) => {
        lines += text;
      },
      { pretty, now: Date.now },
    );
    for (const event of world.log) log(event);
    flush();
    expect(lines.length).toBeGreaterThan(10_000);
    places.set(pretty ? "the log for people" : "the log", Buffer.from(lines));
  }
  places.set("every event", Buffer.from(Bun.inspect(world.log)));
  places.set("the refusals", Buffer.from(refusals.join("\n")));
  const tables =
    world.dialect === "postgres"
      ? "select table_schema || '.' || table_name as name from information_schema.tables where table_type = 'BASE TABLE' and table_schema in ('public', 'drizzle')"
      : "select name from sqlite_schema where type = 'table'";
  for (const { name } of await world.run(tables)) {
    const dump: Buffer[] = [];
    for (const row of await world.run(`select * from ${name}`)) {
      for (const value of Object.values(row)) dump.push(Buffer.isBuffer(value) ? value : Buffer.from(`${value}\n`));
    }
    places.set(`the table ${name}`, Buffer.concat(dump));
  }
  expect(places.size).toBeGreaterThan(14);
  if (world.dialect === "sqlite") {
    const files = readdirSync(world.config.dataFolder);
    expect(files).toContain("keyhole.db-wal");
    for (const name of files) places.set(name, readFileSync(join(world.config.dataFolder, name)));
  }
  return places;
}
