/**
 * Changes of authority under load. What each key is given is compared with the small Keyhole (`micro/agrees.test.ts`).
 */

import { beforeAll, expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { type Environment, environments } from "../../src/core/names.ts";
import type { KeyLookup } from "../../src/core/set-rows.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { type Answer, below } from "../support/answer.ts";
import { type Dice, diceOf, unlimited, verdictOf } from "../support/attack.ts";
import { deleteProject, setVariables } from "../support/plans.ts";
import { parts, seed } from "../support/seed.ts";
import { long } from "../support/server.ts";
import { describeBoth, everything, type Key, type World } from "../support/world.ts";

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
      // A lookup of each read: none is in the statement that stores the entry.
      const record: typeof keyhole.journal.record = (...call) => keyhole.journal.record(...call);
      return { gate: { ...keyhole.gate, nowUs: () => 1_000_000, lookUp }, journal: { record } };
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
