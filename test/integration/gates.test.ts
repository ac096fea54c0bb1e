import { beforeAll, describe, expect, test } from "bun:test";
import { digestKey } from "../../src/access/api-key.ts";
import { resources, surfaces } from "../../src/access/grant.ts";
import { revokeKey } from "../../src/admin/keys.ts";
import { type Organization, setPlan } from "../../src/admin/organizations.ts";
import { setVariables } from "../../src/admin/variables.ts";
import { Journal } from "../../src/audit/journal.ts";
import { Deadline } from "../../src/deadline.ts";
import { Fault } from "../../src/fault.ts";
import type { Keyhole } from "../../src/http/keyhole.ts";
import { Limiter } from "../../src/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/limit/unrecognized.ts";
import {
  clientOf,
  describeBoth,
  insertAccounts,
  insertFiles,
  insertProjects,
  type Key,
  numbered,
  type Placed,
  requestOf,
  type World,
} from "../world.ts";

/** What each gate answers if it refuses, in the order of judgement. */
const gates = {
  path: [404, "not_found"],
  method: [405, "method_not_allowed"],
  /** The key's own attempts are used up: the limiter of unrecognized keys. */
  attempts: [429, "rate_limited"],
  key: [401, "unauthorized"],
  bucket: [429, "rate_limited"],
  plan: [403, "plan_required"],
  surface: [403, "surface_required"],
  resource: [403, "resource_required"],
  query: [400, "invalid_request"],
  environment: [403, "environment_not_in_scope"],
  project: [404, "project_not_found"],
  /** The listing does not verify, so nothing in it can be counted. */
  listing: [503, "decryption_failed"],
  count: [422, "too_many_items"],
  size: [422, "content_too_large"],
  decryption: [503, "decryption_failed"],
  dotenv: [422, "env_unrepresentable"],
  audit: [503, "unavailable"],
} as const;
type Gate = keyof typeof gates;

const front = ["path", "method", "attempts", "key", "bucket", "plan"] as const satisfies Gate[];
const values = ["query", "environment", "project", "listing", "count", "decryption"] as const satisfies Gate[];

type Endpoint = {
  readonly name: string;
  readonly gates: readonly Gate[];
  readonly bucket: "metadata" | "value" | "content";
  readonly surface: "rest_api" | "ci_action";
  readonly resource: string;
  /** A path and a query that are right, except for the project. */
  readonly target: (project: string) => readonly [path: string, query: readonly string[]];
};

const endpoints: readonly Endpoint[] = [
  {
    name: "/organization",
    gates: [...front, "query"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "projects",
    target: () => ["/organization", []],
  },
  {
    name: "/projects",
    gates: [...front, "surface", "resource", "query", "count"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "projects",
    target: () => ["/projects", []],
  },
  {
    name: "/projects/{slug}",
    gates: [...front, "surface", "resource", "query", "project"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "projects",
    target: (project) => [`/projects/${project}`, []],
  },
  {
    name: "/projects/{slug}/variables",
    gates: [...front, "surface", "resource", ...values, "audit"],
    bucket: "value",
    surface: "rest_api",
    resource: "variables",
    target: (project) => [`/projects/${project}/variables`, ["environment=staging"]],
  },
  {
    name: "/projects/{slug}/variables?prefix=",
    gates: [...front, "surface", "resource", ...values, "audit"],
    bucket: "value",
    surface: "rest_api",
    resource: "variables",
    target: (project) => [`/projects/${project}/variables`, ["environment=staging", "prefix=N"]],
  },
  {
    name: "/projects/{slug}/variables?format=env",
    gates: [...front, "surface", "resource", ...values, "dotenv", "audit"],
    bucket: "value",
    surface: "rest_api",
    resource: "variables",
    target: (project) => [`/projects/${project}/variables`, ["environment=staging", "format=env"]],
  },
  {
    name: "/projects/{slug}/variables?metadata_only=true",
    gates: [...front, "surface", "resource", "query", "environment", "project", "listing", "count"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "variables",
    target: (project) => [`/projects/${project}/variables`, ["metadata_only=true", "environment=staging"]],
  },
  {
    name: "/projects/{slug}/accounts",
    gates: [...front, "surface", "resource", ...values, "audit"],
    bucket: "value",
    surface: "rest_api",
    resource: "accounts",
    target: (project) => [`/projects/${project}/accounts`, ["environment=staging"]],
  },
  {
    name: "/projects/{slug}/accounts?metadata_only=true",
    gates: [...front, "surface", "resource", "query", "environment", "project", "listing", "count"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "accounts",
    target: (project) => [`/projects/${project}/accounts`, ["metadata_only=true", "environment=staging"]],
  },
  {
    name: "/files",
    gates: [
      ...front,
      "surface",
      "resource",
      "query",
      "environment",
      "project",
      "listing",
      "count",
      "size",
      "decryption",
      "audit",
    ],
    bucket: "content",
    surface: "rest_api",
    resource: "files",
    target: (project) => ["/files", [`project=${project}`, "environment=staging"]],
  },
  {
    name: "/files?metadataOnly=true",
    gates: [...front, "surface", "resource", "query", "environment", "project", "listing", "count"],
    bucket: "metadata",
    surface: "rest_api",
    resource: "files",
    target: (project) => ["/files", [`project=${project}`, "environment=staging", "metadataOnly=true"]],
  },
  {
    name: "/secrets",
    gates: [...front, "surface", ...values, "audit"],
    bucket: "value",
    surface: "ci_action",
    resource: "requests",
    target: (project) => ["/secrets", [`project=${project}`, "environment=staging"]],
  },
  {
    name: "/secrets?format=env",
    gates: [...front, "surface", ...values, "dotenv", "audit"],
    bucket: "value",
    surface: "ci_action",
    resource: "requests",
    target: (project) => ["/secrets", [`project=${project}`, "environment=staging", "format=env"]],
  },
];

describeBoth("the order of judgement", (world) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await setStage(world());
  });

  for (const endpoint of endpoints) {
    describe(endpoint.name, () => {
      test("answers 200 if no gate refuses", async () => {
        expect(await stage.answer(endpoint, [])).toEqual([200, undefined]);
      });
      endpoint.gates.forEach((earlier, at) => {
        const later = endpoint.gates.slice(at + 1);
        test(`${earlier} answers, alone and before ${later.join(", ") || "nothing"}`, async () => {
          expect(await stage.answer(endpoint, [earlier])).toEqual([...gates[earlier]]);
          for (const other of later) {
            expect([other, ...(await stage.answer(endpoint, [earlier, other]))]).toEqual([other, ...gates[earlier]]);
          }
        });
      });
      test("of several gates that refuse, the first answers", async () => {
        for (let at = 0; at < endpoint.gates.length; at++) {
          const broken = endpoint.gates.slice(at);
          expect(await stage.answer(endpoint, broken)).toEqual([...gates[broken[0] as Gate]]);
        }
      });
      test("a key that was recognized before pays first, and is then judged like any other", async () => {
        const { gates: own } = endpoint;
        expect(await stage.answer(endpoint, [], { recognized: true })).toEqual([200, undefined]);
        for (const gate of own.slice(own.indexOf("key"))) {
          expect(await stage.answer(endpoint, [gate], { recognized: true })).toEqual([...gates[gate]]);
          // The database is not asked, so nobody knows what has become of the key.
          const both = await stage.answer(endpoint, ["bucket", gate], { recognized: true });
          expect(both).toEqual([...gates.bucket]);
        }
      });
    });
  }
});

type Stage = Awaited<ReturnType<typeof setStage>>;

/** Requests with which some of the gates have something to refuse. */
async function setStage(w: World) {
  const [organization, crowded] = [await w.organization(), await w.organization()];
  const other = await w.project(organization, "other");
  await insertProjects(w, crowded, numbered("p", 1001));
  const projects = new Map<string, Placed>();
  const projectWith = async (broken: ReadonlySet<Gate>): Promise<Placed> => {
    const wrong = (["listing", "count", "size", "decryption", "dotenv"] as const).filter((gate) => broken.has(gate));
    const slug = ["with", ...wrong].join("-");
    const project = projects.get(slug) ?? (await makeProject(w, organization, slug, new Set(wrong)));
    projects.set(slug, project);
    return project;
  };
  const keys = new Map<string, Key>();
  const keyOf = async (home: Organization, endpoint: Endpoint, broken: ReadonlySet<Gate>): Promise<Key> => {
    const asked = {
      surfaces: broken.has("surface") ? surfaces.filter((name) => name !== endpoint.surface) : [endpoint.surface],
      resources: broken.has("resource") ? resources.filter((name) => name !== endpoint.resource) : [endpoint.resource],
      environments: [broken.has("environment") ? "production" : "staging"],
      // The project is there but out of scope, so everything that is wrong with it could be met.
      projects: broken.has("project") ? ["other"] : undefined,
    };
    const name = JSON.stringify([home.slug, asked, broken.has("key")]);
    let key = keys.get(name);
    if (!key) {
      key = await w.key(home, asked);
      if (broken.has("key")) await revokeKey(w.admin, key.id);
      keys.set(name, key);
    }
    return key;
  };
  const plans = new Map<string, string>();
  const refusing = new Journal({
    append: async () => ({ outcome: "refused" }),
    auditKey: new Uint8Array(32),
    now: Date.now,
    checkpoint: () => {},
    deadline: new Deadline(2000, () => new Fault("unavailable", "late")),
  });
  // One app with small parts that are replaced for each of some thousand questions.
  const parts: { -readonly [Part in keyof Keyhole]: Keyhole[Part] } = { ...w.keyhole };
  const { handle } = clientOf(parts);
  const answer = async (
    endpoint: Endpoint,
    wrong: readonly Gate[],
    { recognized = false } = {},
  ): Promise<readonly [status: number, code: string | undefined]> => {
    const broken = new Set(wrong);
    const home = endpoint.name === "/projects" && broken.has("count") ? crowded : organization;
    const project = home === crowded ? other : await projectWith(broken);
    const key = await keyOf(home, endpoint, broken);
    const limiter = new Limiter(128 * 3, 128);
    if (broken.has("bucket")) while (limiter.take(key.id, endpoint.bucket, 0).allowed);
    const unrecognized = new UnrecognizedLimiter(undefined, 1);
    if (broken.has("attempts")) while (unrecognized.take(key.key, 0).allowed);
    if (recognized) {
      limiter.recognize(digestKey(w.installation.systemKeys.pepper, key.key).toString("latin1"), key.id);
    }
    parts.gate = { ...w.keyhole.gate, limiter, unrecognized, nowUs: () => 0 };
    parts.journal = broken.has("audit") ? refusing : w.keyhole.journal;
    const plan = broken.has("plan") ? "free" : "pro";
    if (plan !== (plans.get(home.slug) ?? "pro")) await setPlan(w.admin, home.slug, plan);
    plans.set(home.slug, plan);
    const [path, query] = endpoint.target(project.slug);
    const asked = [...query, ...(broken.has("query") ? ["unknown=1"] : [])].join("&");
    const response = await handle(
      requestOf(`${path}${broken.has("path") ? "/nowhere/at/all" : ""}${asked ? `?${asked}` : ""}`, {
        key,
        method: broken.has("method") ? "POST" : "GET",
      }),
    );
    const text = await response.text();
    return [response.status, response.status === 200 ? undefined : (JSON.parse(text) as { code: string }).code];
  };
  return { answer };
}

/** A project with the same things wrong in every kind of item. */
async function makeProject(
  w: World,
  organization: Organization,
  slug: string,
  wrong: ReadonlySet<Gate>,
): Promise<Placed> {
  const project = await w.project(organization, slug);
  const items = wrong.has("count") ? 1001 : 2;
  const variables = numbered("N", items).map((name) => ({ name, value: `value of ${name}` }));
  if (wrong.has("dotenv")) variables[0] = { name: "N0000", value: "'\n$(id)" };
  await setVariables(w.admin, project.where, "staging", variables);
  await insertAccounts(w, project, numbered("account ", items), ["staging"]);
  await insertFiles(w, project, numbered("f/", items), ["staging"]);
  if (wrong.has("size")) await insertFiles(w, project, ["m", "n"], ["staging"], 4 * 1024 * 1024 + 1);
  if (wrong.has("decryption")) {
    await w.sql`update sets set sealed = listing_mac where project_id = ${project.id} and kind <> 'files'`;
    await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
  }
  if (wrong.has("listing")) await w.sql`update sets set version = 7 where project_id = ${project.id}`;
  return project;
}
