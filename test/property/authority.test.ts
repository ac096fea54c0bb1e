/**
 * What a key is given: ten thousand random worlds against a model of the contract, and changes of authority under load.
 */

import { beforeAll, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Environment, environmentMask, environments } from "../../src/core/names.ts";
import type { KeyLookup } from "../../src/core/set-rows.ts";
import { resources } from "../../src/kinds/people.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { digestKey, mintKey } from "../../src/serve/access/api-key.ts";
import { bitsOf, type Grant, sealGrant, surfaces } from "../../src/serve/access/grant.ts";
import type { Limiter } from "../../src/serve/limit/limiter.ts";
import { type Answer, answerOf, below } from "../support/answer.ts";
import { type Dice, diceOf, unlimited, verdictOf } from "../support/attack.ts";
import {
  bucketOf,
  judge,
  type ModelKey,
  type ModelProject,
  type ModelRequest,
  type Parameter,
  type Verdict,
} from "../support/model.ts";
import { deleteProject, setVariables } from "../support/plans.ts";
import { insertAccounts, insertFiles, numbered } from "../support/rows.ts";
import { parts, seed } from "../support/seed.ts";
import { long } from "../support/server.ts";
import { type Client, describeBoth, everything, type Key, type Row, type World } from "../support/world.ts";

describeBoth("every request gets what the contract says", (w, dialect) => {
  const worlds = dialect === "sqlite" ? 10_000 : 500;
  const dice = diceOf(seed);
  const seen = new Map<string, number>();
  const expected = new Map<string, string[]>();
  let stage: Stage;
  let round = 0;
  beforeAll(async () => {
    stage = await setUp(w);
  });
  test.each(parts(10))(`in ${worlds} random worlds: the status, the code and the body, part %i`, async (part) => {
    for (; round < (worlds * part) / 10; round++) {
      const { request, text, header, repeats } = await nextWorld(stage, dice);
      for (let turn = 0; turn < repeats; turn++) {
        const id = `w${round}-${turn}`;
        const verdict = judge(request, stage.organizations, stage.projects, {
          empty: stage.emptied,
          remembered: stage.remembered.has(text),
          refused: header === undefined ? 0 : turn,
        });
        const answer = await answerOf(await stage.client.handle(spelled(request, header, id, dice)));
        const problem = mismatch(verdict, answer);
        if (problem) {
          const shown = JSON.stringify({ request, verdict }, null, 1).slice(0, 3000);
          throw new Error(`seed ${seed}, world ${round}, request ${turn}: ${problem}\n${shown}`);
        }
        if (request.key && verdict.code === "unauthorized") stage.remembered.delete(text);
        else if (request.key?.state === "live" && !["not_found", "method_not_allowed"].includes(verdict.code)) {
          stage.remembered.add(text);
        }
        seen.set(verdict.code, (seen.get(verdict.code) ?? 0) + 1);
        const entries = verdict.audit?.map(({ action, names }) => `${action} ${JSON.stringify(names)}`) ?? [];
        if (entries.length > 0) expected.set(id, entries.sort());
      }
    }
  });
  test("in all of these: the audit entries", async () => {
    // Otherwise the worlds have proved nothing.
    for (const code of dialect === "sqlite" ? codesToBeSeen : [])
      expect([code, seen.get(code)]).not.toEqual([code, undefined]);
    const written = new Map<string, string[]>();
    for (const row of await w.run("select request_id, action, names from audit_entries where actor_type = 'key'")) {
      const id = String(row["request_id"]);
      written.set(id, [...(written.get(id) ?? []), `${row["action"]} ${row["names"]}`].sort());
    }
    expect(written).toEqual(expected);
  });
});

const codesToBeSeen = [
  ...["200", "invalid_request", "unauthorized", "plan_required", "surface_required", "resource_required"],
  ...["environment_not_in_scope", "project_not_found", "not_found", "method_not_allowed", "too_many_items"],
  ...["env_unrepresentable", "content_too_large", "rate_limited", "decryption_failed"],
];

describeBoth("a change of authority", (w, dialect) => {
  let stage: Changing;
  beforeAll(async () => {
    stage = await setUpChanging(w);
  });

  const changes = 10;
  const beyond = `no 200 that began after a change was acknowledged goes beyond it: ${changes} changes under 50 clients`;
  test.each(parts(long ? 20 : dialect === "sqlite" ? 3 : 1))(`${beyond}, part %i`, async (part) => {
    const { client, keys, organizations } = stage;
    const dice = diceOf(seed + 1000 * part);
    let changing = true;
    const wrong: string[] = [];
    const counts = { before: 0, after: 0 };
    const reader = async (own: Dice) => {
      while (changing) {
        const key = own.pick(keys);
        const path = own.pick(stage.paths);
        // What is acknowledged by now holds for this request; what comes later may or may not.
        const limits = [...key.limits, ...(organizations[key.owner]?.downgraded ? ["downgraded" as const] : [])];
        const epoch = organizations[key.owner]?.epoch;
        const answer = await client.ask(path, { key });
        const verdict = verdictOf(answer);
        if (verdict !== "200") {
          counts.after += 1;
          if (verdict.startsWith("BROKEN")) wrong.push(verdict);
          continue;
        }
        counts.before += 1;
        // An upgrade meanwhile makes a 200 right again.
        const stillDown = organizations[key.owner]?.epoch === epoch;
        for (const limit of limits) {
          if (limit === "downgraded" ? stillDown : breaks(limit, path, answer)) wrong.push(`${limit}: ${path}`);
        }
      }
    };
    const readers = Array.from({ length: 50 }, (_, n) => reader(diceOf(seed + 1000 * part + 100 + n)));
    for (let change = 0; change < changes; change++) {
      await changeOne(w, stage, dice);
      const enough = counts.before + counts.after + 5;
      while (counts.before + counts.after < enough) await nextTurn(); // gives the readers a turn
    }
    changing = false;
    await Promise.all(readers);
    expect(wrong).toEqual([]);
    expect(counts.before).toBeGreaterThan(changes);
    expect(counts.after).toBeGreaterThan(changes);
  });

  const meanwhile: [what: string, end: (world: World, key: Key) => Promise<unknown>, code: string][] = [
    ["revoked", (world, key) => revokeKey(world.admin, key.id), "unauthorized"],
    ["expired", (world, key) => world.regrant(key, { expiresAt: Date.now() - 1 }), "unauthorized"],
    ["deleted", (world, key) => world.sql`delete from api_keys where id = ${key.id}`, "unauthorized"],
    ["downgraded", (world, key) => setPlan(world.admin, key.organization, "free"), "plan_required"],
    ["without its project", (world, key) => deleteProject(world.admin, `${key.organization}/web`), "project_not_found"],
  ];

  test.each(parts(dialect === "sqlite" ? 4 : 1))(
    "a write holds from its acknowledgement on: no later read is older, part %i",
    async () => {
      const { where, key } = await w.place({ key: everything });
      const { client } = stage;
      const wrong: string[] = [];
      let acknowledged = -1;
      let writing = true;
      let reads = 0;
      const reader = async (path: string) => {
        while (writing) {
          const least = acknowledged;
          const { status, text } = await client.ask(path, { key });
          const found = Number(/<(\d+)>/.exec(text)?.[1] ?? -1);
          if (status !== 200 || found < least) wrong.push(`${path}: ${status}, ${found} after ${least}`);
          reads += 1;
        }
      };
      const path = "/projects/web/variables?environment=production";
      const paths = ["", "&format=env", "&keys=COUNT", "&prefix=C"].map((more) => `${path}${more}`);
      const readers = [...paths, ...paths, "/secrets?project=web&environment=production"].map(reader);
      for (let count = 0; count < 10; count++) {
        await setVariables(w.admin, where, "production", [{ name: "COUNT", value: `<${count}>` }]);
        acknowledged = count;
        const enough = reads + 3;
        while (reads < enough && wrong.length === 0) await nextTurn();
      }
      writing = false;
      await Promise.all(readers);
      expect(wrong).toEqual([]);
    },
  );

  test("a change before the lookup counts, even if the set is remembered", async () => {
    for (const [, end, code] of meanwhile) {
      const { key } = await w.place({ ...contentOf("web"), key: everything });
      const path = "/projects/web/variables?environment=production";
      expect((await stage.client.ask(path, { key })).status).toBe(200);
      await end(w, key);
      expect(verdictOf(await stage.client.ask(path, { key }))).toBe(code);
    }
  });
});

describeBoth("a key over its limit", (w) => {
  test("costs no statement, nor does an unknown key that was refused too often", async () => {
    const { key } = await w.place({ ...contentOf("web"), key: everything });
    let lookUps = 0;
    const client = w.client((keyhole) => {
      const lookUp = (ask: KeyLookup) => {
        lookUps += 1;
        return keyhole.gate.lookUp(ask);
      };
      return { gate: { ...keyhole.gate, nowUs: () => 1_000_000, lookUp } };
    });
    const unknown = mintKey();
    const odd = `${unknown.slice(0, -1)}${unknown.endsWith("0") ? "1" : "0"}`;
    for (const [presented, allowed, path] of [
      [key.key, 30, "/projects/web/variables?environment=production"],
      [key.key, 120, "/organization"],
      [unknown, 10, "/organization"],
      [odd, 10, "/organization"],
    ] as const) {
      lookUps = 0;
      for (let n = 0; n < allowed; n++) {
        expect((await client.ask(path, { key: presented })).status).toBe(presented === key.key ? 200 : 401);
      }
      expect(lookUps).toBe(presented === odd ? 0 : allowed);
      for (let n = 0; n < 5; n++) expect((await client.ask(path, { key: presented })).status).toBe(429);
      expect(lookUps).toBe(presented === odd ? 0 : allowed);
    }
  });
});

// The random worlds.

type ModelOrganization = { readonly name: string; readonly slug: string; plan: "free" | "pro" };

type Stage = {
  readonly world: World;
  readonly client: Client;
  readonly limiter: Limiter;
  readonly clock: { nowUs: number };
  readonly organizations: ModelOrganization[];
  readonly organizationIds: readonly string[];
  readonly projects: readonly ModelProject[];
  readonly keys: { readonly id: string; readonly text: string }[];
  /** Texts of keys that were recognized and not refused since. */
  readonly remembered: Set<string>;
  /** The buckets that are empty in this world. */
  emptied: readonly string[];
};

const nothing = { development: {}, staging: {}, production: {} };
const plainProject = {
  owner: 0,
  variables: nothing as ModelProject["variables"],
  accounts: [] as ModelProject["accounts"],
  files: [] as ModelProject["files"],
  broken: [] as readonly Environment[],
  forged: [] as readonly Environment[],
  unrepresentable: {},
  fileTotal: 0,
  gone: false,
};

async function setUp(world: World): Promise<Stage> {
  if (world.dialect === "sqlite") await world.run("PRAGMA synchronous = OFF");
  const alpha = await world.organization({ name: "Alpha" });
  const beta = await world.organization({ name: "Beta & \u{1F511}" });
  const projects: ModelProject[] = [];
  const add = async (slug: string, change: Partial<ModelProject> = {}) => {
    const draft = { ...plainProject, slug, name: `The ${slug}`, ...change };
    const { variables, accounts, files } = draft;
    const { name, owner } = draft;
    const content = { name, variables, accounts, files: files.map(({ size: _, broken: __, ...file }) => file) };
    const made = await world.project(owner === 0 ? alpha : beta, slug, content);
    projects.push({ id: made.id, ...draft });
    return made;
  };
  /** Says what became of the newest project since it was written. */
  const amend = (change: Partial<ModelProject>) => {
    projects.push({ ...(projects.pop() as ModelProject), ...change });
  };
  await add("web", {
    variables: {
      development: { LOG_LEVEL: "debug", PORT: "1" },
      staging: { PORT: "2", _TOKEN: "it's \u20ac" },
      production: { PORT: "3", DATABASE_URL: "postgres://u:p@h/d", Z: "" },
    },
    accounts: [
      account("registry", ["development", "production"]),
      account("Mail \u{1F4E7}", ["staging"]),
      account("aws", ["development", "staging", "production"]),
      account("\uff21", ["production"]),
    ],
    files: [
      secretFile("tls/key.pem", ["production"]),
      secretFile("tls/\u00e9.pem", ["production", "staging"]),
      secretFile(".npmrc", ["development"]),
      secretFile("a b.txt", ["development", "staging", "production"]),
    ],
  });
  await add("api", { variables: { ...nothing, production: { PORT: "4" } }, accounts: [account("db", ["production"])] });
  await add("empty");
  await add("0");
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`V${n}`, `${n}`]));
  const crowd = await add("crowd", {
    variables: { development: many, staging: {}, production: { V1: "one", W: "w" } },
  });
  await insertAccounts(world, crowd, numbered("a", 1001), ["development"]);
  amend({ accounts: numbered("a", 1001).map((name) => account(name, ["development"])) });
  const heavy = await add("heavy");
  await insertFiles(world, heavy, ["one", "two"], ["production"], 4, 8_388_608); // much smaller in truth
  amend({
    files: ["one", "two"].map((path) => ({ ...secretFile(path, ["production"]), size: 8_388_608, broken: true })),
  });
  const piled = await add("piled", { files: [secretFile("f", ["production"])], fileTotal: 1001 });
  await world.sql`update projects set file_counts = '[0,0,0,0,0,0,1001]' where id = ${piled.id}`;
  const some: Partial<ModelProject> = {
    variables: { development: { FINE: "1" }, staging: { A: "1", ODD: "it's\n$(b)" }, production: { A: "1", B: "2" } },
    unrepresentable: { staging: ["ODD"] },
    accounts: [account("fine", ["development"]), account("hurt", ["staging", "production"])],
    files: [secretFile("fine", ["development"]), secretFile("hurt", ["staging", "production"])],
  };
  const broken = await add("broken", some);
  const damaged = (sealed: unknown) => Buffer.from(sealed as Buffer).map((byte, at) => (at === 20 ? byte ^ 1 : byte));
  for (const { kind, environment, sealed } of await world.sql`select kind, environment, sealed from sets
    where project_id = ${broken.id} and environment <> 'development' and sealed is not null`) {
    await world.sql`update sets set sealed = ${damaged(sealed)}
      where project_id = ${broken.id} and kind = ${kind} and environment = ${environment}`;
  }
  const [{ id, sealed }] = (await world.sql`select c.id, c.sealed from file_contents c
    join sets s on s.project_id = c.project_id and s.kind = 'files' and s.environment = 'staging'
      and s.listing like '%' || c.id || '%' where c.project_id = ${broken.id}`) as [Row];
  await world.sql`update file_contents set sealed = ${damaged(sealed)} where id = ${id}`;
  const hurt = <T extends { environments: readonly Environment[] }>(items: readonly T[] = []) =>
    items.map((item) => ({ ...item, broken: !item.environments.includes("development") }));
  amend({ broken: ["staging", "production"], accounts: hurt(some.accounts), files: hurt(some.files) });
  const forged = await add("forged", some);
  await world.sql`update sets set listing = replace(listing, 'updatedAt', 'updatedAT')
    where project_id = ${forged.id} and environment = 'staging'`;
  amend({ forged: ["staging"] });
  await add("odd", {
    variables: { ...nothing, production: { FINE: "1", ODD: "it's\n$(b)" }, staging: { FINE: "2" } },
    unrepresentable: { production: ["ODD"] },
  });
  // A project that is gone, and another that took its slug.
  const old = await add("phoenix", { gone: true });
  await deleteProject(world.admin, old.where);
  await add("phoenix", { variables: { ...nothing, production: { RISEN: "yes" } } });
  await add("web", { owner: 1, variables: { ...nothing, production: { FOREIGN: "yes" } } });
  await add("solo", { owner: 1, accounts: [account("foreign", ["production"])] });

  const clock = { nowUs: 0 };
  let limiter: Limiter | undefined;
  const client = world.client(({ gate }) => {
    limiter = gate.limiter;
    return { gate: { ...gate, nowUs: () => clock.nowUs } };
  });
  return {
    world,
    client,
    limiter: limiter as Limiter,
    clock,
    organizations: [alpha, beta].map(({ name, slug }) => ({ name, slug, plan: "pro" })),
    organizationIds: [alpha.id, beta.id],
    projects,
    keys: [],
    remembered: new Set(),
    emptied: [],
  };
}

function account(name: string, environments: readonly Environment[]) {
  return { name, environments, values: { user: name, secret: `of ${name}` }, broken: false };
}

function secretFile(path: string, environments: readonly Environment[]) {
  const content = `content of ${path}`;
  return { path, environments, content, size: Buffer.byteLength(content), broken: false };
}

/** Changes plans, makes or changes a key, empties buckets, and chooses what to ask. */
async function nextWorld(stage: Stage, dice: Dice) {
  const { world, organizations, organizationIds } = stage;
  stage.clock.nowUs += 3_600_000_000; // every bucket is full again
  for (const [index, organization] of organizations.entries()) {
    const plan = dice.chance(0.07) ? "free" : "pro";
    if (plan === organization.plan) continue;
    await world.run("update organizations set plan = ? where id = ?", [plan, organizationIds[index]]);
    organization.plan = plan;
  }
  const { key, text, id } = await nextKey(stage, dice);
  const request = nextRequest(stage, dice, key);
  const presented = dice.chance(0.9) ? text : undefined;
  const header = presented === undefined ? oddHeader(dice, text) : dice.pick(spellingsOf(text));
  const emptied = dice.chance(0.04);
  stage.emptied = emptied && presented !== undefined ? [bucketOf(request)] : [];
  for (const bucket of stage.emptied) {
    while (stage.limiter.take(id, bucket as "value", stage.clock.nowUs).allowed);
  }
  const own = { ...request, key: presented === undefined ? null : key };
  const refusable = own.key === null || own.key.state !== "live";
  return { request: own, text, header, repeats: refusable && dice.chance(0.03) ? 12 : 1 };
}

async function nextKey(stage: Stage, dice: Dice) {
  const { world, projects, organizationIds, keys } = stage;
  const owner = dice.chance(0.8) ? 0 : 1;
  const own = projects.filter((project) => project.owner === owner);
  const listed = dice.chance(0.5);
  // Of two projects with one slug a list can name one.
  const list = listed ? dice.some(dice.chance(0.5) ? own : own.toReversed(), 0.7) : [];
  const map = Object.fromEntries(list.map(({ slug, id }) => [slug, id]));
  const key: ModelKey = {
    owner,
    surfaces: atLeastOne(dice, surfaces, 0.85),
    resources: dice.some(resources, 0.9),
    environments: atLeastOne(dice, environments, 0.85),
    projects: listed ? Object.values(map) : null,
    state: dice.chance(0.92) ? "live" : dice.pick(["expired", "revoked"]),
  };
  const now = Date.now();
  const before = keys.length > 0 && dice.chance(0.3) ? dice.pick(keys) : undefined;
  const text = before?.text ?? mintKey();
  const id = before?.id ?? Bun.randomUUIDv7();
  if (!before && keys.length < 200) keys.push({ id, text });
  const grant: Grant = {
    keyId: id,
    organizationId: organizationIds[owner] as string,
    surfaces: bitsOf(surfaces, key.surfaces),
    resources: bitsOf(resources, key.resources),
    environments: environmentMask(...key.environments),
    projects: listed ? JSON.stringify(map) : null,
    expiresAt: key.state === "expired" ? now - dice.below(1000) - 1 : dice.chance(0.5) ? null : now + 3_600_000,
    trust: null,
  };
  const digest = digestKey(world.installation.systemKeys.pepper, text);
  const revokedAt = key.state === "revoked" ? now : null;
  const values = [
    ...[grant.organizationId, grant.surfaces, grant.resources, grant.environments, grant.projects, grant.expiresAt],
    ...[revokedAt, sealGrant(world.installation.systemKeys.grant, digest, grant), id],
  ];
  await world.run(
    before
      ? `update api_keys set organization_id = ?, surfaces = ?, resources = ?, environments = ?, projects = ?,
          expires_at = ?, revoked_at = ?, grant_seal = ? where id = ?`
      : `insert into api_keys (organization_id, surfaces, resources, environments, projects, expires_at, revoked_at,
          grant_seal, id, name, digest, created_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, 'random', ?, 1)`,
    before ? values : [...values, digest],
  );
  return { key, text, id };
}

function atLeastOne<T>(dice: Dice, list: readonly T[], probability: number): T[] {
  const some = dice.some(list, probability);
  return some.length > 0 ? some : [dice.pick(list)];
}

function nextRequest(stage: Stage, dice: Dice, key: ModelKey): ModelRequest {
  const endpoint = dice.pick([
    ...(["organization", "projects", "project", "none"] as const),
    ...(["variables", "variables", "variables", "accounts", "accounts", "files", "files", "secrets"] as const),
  ]);
  const reachable = stage.projects.filter(
    ({ id, owner }) => owner === key.owner && (key.projects === null || key.projects.includes(id)),
  );
  const any = [...stage.projects.map((project) => project.slug), "absent", "WEB", "-", "web ", "we\u00df", "a/b"];
  const usual = reachable.length > 0 && dice.chance(0.8) ? dice.pick(reachable).slug : dice.pick(any);
  // Two projects whose refusals else hardly ever show.
  const slug = dice.chance(0.2) ? dice.pick(["odd", "heavy"]) : usual;
  const method = dice.chance(0.95) ? "GET" : dice.pick(["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"]);
  return { method, endpoint, slug, query: nextQuery(stage, dice, key, endpoint, slug), key };
}

function nextQuery(stage: Stage, dice: Dice, key: ModelKey, endpoint: string, slug: string): Parameter[] {
  const query: Parameter[] = [];
  const put = (probability: number, name: string, value: () => string) => {
    if (dice.chance(probability)) query.push([name, value()]);
  };
  const environment = () => (dice.chance(0.85) ? dice.pick(key.environments) : dice.pick(environments));
  const flag = () => dice.pick(["true", "true", "false", "1", "0"]);
  const project = stage.projects.find((one) => one.slug === slug && one.owner === key.owner);
  const names = [
    ...environments.flatMap((one) => Object.keys(project?.variables[one] ?? {}).slice(0, 9)),
    "ABSENT",
    "-",
  ];
  if (endpoint === "files" || endpoint === "secrets") {
    put(0.95, "project", () => slug);
    put(0.95, "environment", environment);
  }
  if (endpoint === "variables") put(0.85, "environment", environment);
  if (endpoint === "accounts") put(0.5, "environment", environment);
  if (endpoint === "variables") {
    put(0.12, "keys", () => atLeastOne(dice, names, 0.4).join(","));
    put(0.12, "prefix", () => dice.pick(["P", "DATABASE", "V1", "_", "p", "none"]));
  }
  if (endpoint === "variables" || endpoint === "accounts") {
    put(0.3, "metadata_only", () => (dice.chance(0.9) ? dice.pick(["true", "true", "false"]) : flag()));
  }
  if (endpoint === "variables" || endpoint === "secrets")
    put(slug === "odd" ? 0.8 : 0.3, "format", () => dice.pick(["env", "env", "json"]));
  if (endpoint === "files") {
    put(0.4, "metadataOnly", flag);
    const paths = [...(project?.files.map(({ path }) => path) ?? []), "absent", "../up", "a\0b"];
    for (const path of dice.chance(0.2) ? dice.some(paths) : []) query.push(["path", path]);
  }
  // What no endpoint, or not this one, takes.
  put(0.02, dice.pick(["metdata_only", "metadata_only", "metadataOnly", "page", "Environment"]), () => "true");
  put(0.03, dice.pick(takesText), () => "");
  put(0.02, dice.pick(["environment", "format", "prefix", "keys"]), () =>
    dice.pick(["", "prod", "production", "json"]),
  );
  return query;
}

const takesText = ["environment", "keys", "prefix", "prefix", "path", "path", "project", "format"];

function spellingsOf(text: string): string[] {
  return [`Bearer ${text}`, `Bearer ${text}`, `bearer ${text}`, `BEARER   ${text}`];
}

/** A header that holds no key, or undefined for none at all. */
function oddHeader(dice: Dice, text: string): string | undefined {
  const short = text.slice(0, -1);
  return dice.pick([
    ...[undefined, text, `Bearer ${mintKey()}`, `Bearer ${short}`, `Bearer ${short}${text.endsWith("0") ? "1" : "0"}`],
    ...[`Bearer ${text}, Bearer ${text}`, `Basic ${btoa(`x:${text}`)}`, `Bearer${text}`, `Bearer\t${text}`],
    ...["Bearer ", "Bearer kh_"],
  ]);
}

function pathOf(endpoint: ModelRequest["endpoint"], slug: string): string {
  if (["organization", "projects", "files", "secrets"].includes(endpoint)) return `/${endpoint}`;
  const below = { project: "", variables: "/variables", accounts: "/accounts" } as Readonly<Record<string, string>>;
  return `/projects/${encodeURIComponent(slug)}${below[endpoint] ?? "/nothing"}`;
}

function spelled(request: ModelRequest, header: string | undefined, id: string, dice: Dice): Request {
  const { endpoint, slug, query, method } = request;
  const encoded = (text: string) =>
    dice.chance(0.1)
      ? text.replace(/[^%]/gu, percent)
      : encodeURIComponent(text).replaceAll("%20", dice.pick(["+", "%20"]));
  const pairs = query.map(([name, value]) =>
    name.startsWith("metadata") ? `${name}=${value}` : `${encoded(name)}=${encoded(value)}`,
  );
  const url = `http://localhost/api/v1${pathOf(endpoint, slug)}${pairs.length > 0 ? "?" : ""}${pairs.join("&")}`;
  const authorization = header !== undefined && { authorization: header };
  return new Request(url, { method, headers: { "x-request-id": id, ...authorization } });
}

function percent(character: string): string {
  return [...Buffer.from(character)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

const unspecified = new Set(["id", "updatedAt", "createdAt", "sha256", "mode", "contentType"]);

/** What is wrong with an answer, or undefined. */
function mismatch(verdict: Verdict, answer: Answer): string | undefined {
  const code = verdictOf(answer);
  if (code !== verdict.code) return `answered ${code}, expected ${verdict.code}`;
  if (verdict.body === undefined) return undefined;
  const expected = JSON.stringify(verdict.body);
  // In text, so that the order of members counts. A file's name is the last part of its path.
  const found = JSON.stringify(JSON.parse(answer.text), function (this: object, name, value) {
    return unspecified.has(name) || (name === "name" && "path" in this) ? undefined : value;
  });
  return found === expected ? undefined : `answered ${found.slice(0, 1000)}\nexpected ${expected.slice(0, 1000)}`;
}

// Authority that changes.

type Limit = "revoked" | "downgraded" | "no production" | "no web" | "no accounts";
type ChangingKey = Key & { readonly owner: number; readonly limits: Limit[] };
type Changing = Awaited<ReturnType<typeof setUpChanging>>;
type ChangingOrganization = { slug: string; ids: Record<string, string>; downgraded: boolean; epoch: number };

function contentOf(slug: string) {
  const values = (at: Environment) => ({ NAME: `value of ${slug} in ${at}` });
  return {
    variables: Object.fromEntries(environments.map((at) => [at, values(at)])),
    accounts: [{ name: `of ${slug}`, environments, values: { secret: `account of ${slug}` } }],
    files: [{ path: "f.txt", environments, content: `file of ${slug}` }],
  };
}

async function setUpChanging(world: World) {
  const organizations: ChangingOrganization[] = [];
  const keys: ChangingKey[] = [];
  for (let owner = 0; owner < 5; owner++) {
    const organization = await world.organization();
    const ids: Record<string, string> = {};
    for (const slug of ["web", "api"]) ids[slug] = (await world.project(organization, slug, contentOf(slug))).id;
    organizations.push({ slug: organization.slug, ids, downgraded: false, epoch: 0 });
    for (let n = 0; n < 30; n++) {
      const projects = n % 2 === 0 ? { projects: ["web", "api"] } : {};
      keys.push({ ...(await world.key(organization, { ...everything, ...projects })), owner, limits: [] });
    }
  }
  const paths = ["web", "api"].flatMap((slug) => [
    ...["staging", "production"].flatMap((at) => [
      ...below(`/projects/${slug}/variables?environment=${at}`, "", "&keys=NAME"),
      ...[`/projects/${slug}/accounts?environment=${at}`, `/files?project=${slug}&environment=${at}`],
      `/secrets?project=${slug}&environment=${at}`,
    ]),
    ...below(`/projects/${slug}`, "/accounts", ""),
  ]);
  return { client: unlimited(world), keys, organizations, paths: ["/organization", "/projects", ...paths] };
}

/** One change as people make them, counted from the moment it is acknowledged. */
async function changeOne(world: World, { keys, organizations }: Changing, dice: Dice): Promise<void> {
  const key = dice.pick(keys.filter(({ limits }) => !limits.includes("revoked")));
  const organization = organizations[key.owner] as ChangingOrganization;
  const kind = dice.below(10);
  if (kind < 4) {
    await revokeKey(world.admin, key.id);
    key.limits.push("revoked");
  } else if (kind < 6) {
    organization.epoch += 1; // before it may be noticed
    if (organization.downgraded) organization.downgraded = false;
    const plan = dice.chance(0.5) ? "free" : "pro";
    await setPlan(world.admin, organization.slug, plan);
    organization.downgraded = plan === "free";
  } else if (kind < 7) {
    await world.regrant(key, { environments: ["development", "staging"] });
    key.limits.push("no production");
  } else if (kind < 8) {
    await world.regrant(key, { projects: { api: organization.ids["api"] as string } });
    key.limits.push("no web");
  } else if (kind < 9) {
    await world.regrant(key, { resources: ["projects", "variables", "files"] });
    key.limits.push("no accounts");
  } else {
    // A write to what is read, so that sets change under the readers as well.
    const where = `${organization.slug}/${dice.pick(["web", "api"])}`;
    await setVariables(world.admin, where, "staging", [{ name: "EXTRA", value: `${dice.fraction()}` }]);
  }
}

/** Whether a 200 goes beyond the limit. */
function breaks(limit: Limit, path: string, { text }: Answer): boolean {
  if (limit === "no production") return text.includes("production");
  if (limit === "no web") return text.includes('"web"') || text.includes("of web");
  return limit === "no accounts" ? path.includes("/accounts") : limit === "revoked";
}
