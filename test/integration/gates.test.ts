import { beforeAll, describe, expect, test } from "bun:test";
import { resources } from "../../src/kinds/people.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { digestKey } from "../../src/serve/access/api-key.ts";
import { surfaces } from "../../src/serve/access/grant.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";
import { requestOf } from "../support/answer.ts";
import { setVariables } from "../support/plans.ts";
import { insertAccounts, insertFiles, insertProjects, numbered } from "../support/rows.ts";
import { clientOf, describeBoth, type Key, type Placed, refusingJournal, type World } from "../support/world.ts";

/** What each gate answers if it refuses, in the order of judgement. */
const gates = {
  path: [404, "not_found", "No such path."],
  method: [405, "method_not_allowed", "Only GET is allowed."],
  /** The key's own attempts are used up: the limiter of unrecognized keys. */
  attempts: [429, "rate_limited", "Too many requests; wait as long as Retry-After says."],
  key: [401, "unauthorized", "A valid API key is required."],
  bucket: [429, "rate_limited", "Too many requests; wait as long as Retry-After says."],
  plan: [403, "plan_required", "The organization's plan does not include the API."],
  surface: [403, "surface_required", "This key may not be used for this endpoint."],
  resource: [403, "resource_required", "This key may not read this kind of resource."],
  query: [400, "invalid_request", "The query parameter 'unknown' is not known here."],
  environment: [403, "environment_not_in_scope", "This key may not read this environment."],
  project: [404, "project_not_found", "No such project, or this key may not read it."],
  /** The listing does not verify, so nothing in it can be counted. */
  listing: [503, "decryption_failed", "Decryption failed for one or more items; nothing is returned."],
  count: [
    422,
    "too_many_items",
    "The answer would hold more than 1000 items; narrow the request or use a narrower key.",
  ],
  size: [422, "content_too_large", "The files hold more than 8 MiB; ask for fewer at a time with path."],
  decryption: [503, "decryption_failed", "Decryption failed for one or more items; nothing is returned."],
  dotenv: [
    422,
    "env_unrepresentable",
    "No harmless dotenv text can carry these variables; ask for format=json instead. They are: N0000.",
  ],
  audit: [503, "unavailable", "The service cannot answer now; nothing is returned."],
} as const;
type Gate = keyof typeof gates;

const front = ["path", "method", "attempts", "key", "bucket", "plan"] as const satisfies Gate[];
const read = [...front, "surface", "resource", "query"] as const satisfies Gate[];
const found = ["environment", "project", "listing", "count"] as const satisfies Gate[];
const names = [...read, ...found] as const satisfies Gate[];
const secrets = [...front, "surface", "query", ...found, "decryption"] as const satisfies Gate[];

type Endpoint = {
  readonly name: string;
  readonly gates: readonly Gate[];
  readonly bucket: "metadata" | "value" | "content";
  readonly surface: "rest_api" | "ci_action";
  readonly resource: string;
  /** A path and a query that are right, except for the project. */
  readonly target: (project: string) => readonly [path: string, query: readonly string[]];
};

/** An endpoint whose name is its path and what its query has beside the environment and the project. */
function endpoint(name: string, bucket: Endpoint["bucket"], resource: string, gates: readonly Gate[]): Endpoint {
  const [path = "", more] = name.split("?");
  const surface = path === "/secrets" ? "ci_action" : "rest_api";
  const query = gates.includes("environment") ? ["environment=staging", ...(more ? [more] : [])] : [];
  const target = (project: string) =>
    path.includes("{slug}") || !gates.includes("project")
      ? ([path.replace("{slug}", project), query] as const)
      : ([path, [`project=${project}`, ...query]] as const);
  return { name, gates, bucket, surface, resource, target };
}

const endpoints: readonly Endpoint[] = [
  endpoint("/organization", "metadata", "projects", [...front, "query"]),
  endpoint("/projects", "metadata", "projects", [...read, "count"]),
  endpoint("/projects/{slug}", "metadata", "projects", [...read, "project"]),
  endpoint("/projects/{slug}/variables", "value", "variables", [...names, "decryption", "audit"]),
  endpoint("/projects/{slug}/variables?prefix=N", "value", "variables", [...names, "decryption", "audit"]),
  endpoint("/projects/{slug}/variables?format=env", "value", "variables", [...names, "decryption", "dotenv", "audit"]),
  endpoint("/projects/{slug}/variables?metadata_only=true", "metadata", "variables", names),
  endpoint("/projects/{slug}/accounts", "value", "accounts", [...names, "decryption", "audit"]),
  endpoint("/projects/{slug}/accounts?metadata_only=true", "metadata", "accounts", names),
  endpoint("/files", "content", "files", [...names, "size", "decryption", "audit"]),
  endpoint("/files?metadataOnly=true", "metadata", "files", names),
  endpoint("/secrets", "value", "requests", [...secrets, "audit"]),
  endpoint("/secrets?format=env", "value", "requests", [...secrets, "dotenv", "audit"]),
];

describeBoth("the order of judgement", (w, dialect) => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await setStage(w);
  });

  for (const endpoint of endpoints) {
    describe(endpoint.name, () => {
      test("answers 200 if no gate refuses", async () => expect(await stage.answer(endpoint, [])).toEqual([200]));
      test("of several gates that refuse, the first answers", async () => {
        for (let at = 0; at < endpoint.gates.length; at++) {
          const broken = endpoint.gates.slice(at);
          expect(await stage.answer(endpoint, broken)).toEqual([...gates[broken[0] as Gate]]);
        }
      });
      if (dialect === "postgres") return; // Whatever a gate asks its database, that is in the two above.
      endpoint.gates.forEach((earlier, at) => {
        const later = endpoint.gates.slice(at + 1);
        test(`${earlier} answers, alone and before ${later.join(", ") || "nothing"}`, async () => {
          expect(await stage.answer(endpoint, [earlier])).toEqual([...gates[earlier]]);
          for (const other of later) {
            expect([other, ...(await stage.answer(endpoint, [earlier, other]))]).toEqual([other, ...gates[earlier]]);
          }
        });
      });
      test("a key that was recognized before pays first, and is then judged like any other", async () => {
        const { gates: own } = endpoint;
        expect(await stage.answer(endpoint, [], { recognized: true })).toEqual([200]);
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
  const projectWith = async ({ name }: Endpoint, broken: ReadonlySet<Gate>): Promise<Placed> => {
    const wrong = (["listing", "count", "size", "decryption", "dotenv"] as const).filter((gate) => broken.has(gate));
    const kind = /accounts|files/.exec(name)?.[0] ?? "variables";
    const slug = [kind, "with", ...wrong].join("-");
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
  // One app with small parts that are replaced for each of some thousand questions.
  const parts: { -readonly [Part in keyof ApiParts]: ApiParts[Part] } = { ...w.keyhole };
  const { handle } = clientOf(parts);
  const answer = async (
    endpoint: Endpoint,
    wrong: readonly Gate[],
    { recognized = false } = {},
  ): Promise<readonly [status: number, code?: string, error?: string]> => {
    const broken = new Set(wrong);
    const home = endpoint.name === "/projects" && broken.has("count") ? crowded : organization;
    const project = home === crowded ? other : await projectWith(endpoint, broken);
    const key = await keyOf(home, endpoint, broken);
    const limiter = new Limiter(128 * 3, 128);
    const payer = { keyId: key.id, rate: null, from: null };
    if (broken.has("bucket")) while (limiter.take(payer, endpoint.bucket, 0).allowed);
    const unrecognized = new UnrecognizedLimiter(undefined, 1);
    if (broken.has("attempts")) while (unrecognized.take(key.key, 0).allowed);
    if (recognized) {
      limiter.recognize(digestKey(w.installation.systemKeys.pepper, key.key).toString("latin1"), payer);
    }
    parts.gate = { ...w.keyhole.gate, limiter, unrecognized, nowUs: () => 0 };
    parts.journal = broken.has("audit") ? refusingJournal : w.keyhole.journal;
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
    if (response.status === 200) return [200];
    const { code, error } = JSON.parse(text) as { code: string; error: string };
    return [response.status, code, error];
  };
  return { answer };
}

/** A project with items of the kind that its slug begins with, and what is wrong with them. */
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
  if (slug.startsWith("variables")) await setVariables(w.admin, project.where, "staging", variables);
  if (slug.startsWith("accounts")) await insertAccounts(w, project, numbered("account ", items), ["staging"]);
  if (slug.startsWith("files")) await insertFiles(w, project, numbered("f/", items), ["staging"]);
  if (wrong.has("size")) await insertFiles(w, project, ["m", "n"], ["staging"], 4 * 1024 * 1024 + 1);
  if (wrong.has("decryption")) {
    await w.sql`update sets set sealed = listing_mac where project_id = ${project.id} and kind <> 'files'`;
    await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
  }
  if (wrong.has("listing")) await w.sql`update sets set version = 7 where project_id = ${project.id}`;
  return project;
}
