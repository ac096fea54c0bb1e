import { expect, test } from "bun:test";
import postgres from "postgres";
import { resources } from "../../src/kinds/people.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { showRequest } from "../../src/people/requests/requests.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { pendingPerKeyMax, pendingPerOrganizationMax } from "../../src/store/requests.ts";
import { answerOf, expectRefusal, firstOf, headersOf, usualHeaders } from "../support/answer.ts";
import { allowedOrigin, connectAgent, mcpClient, mcpRequest, revisions } from "../support/mcp.ts";
import { deleteOrganization, deleteProject, rejectRequest } from "../support/plans.ts";
import {
  describeBoth,
  describeOnce,
  describePostgres,
  type Key,
  type Placed,
  refusingJournal,
  type World,
} from "../support/world.ts";

const agentKey = { surfaces: ["mcp_server"], resources: [...resources] };
const bidi = "\u202e\u2066\u200f";

/** An organization whose project holds a canary in every value. */
async function furnish(w: World): Promise<{ organization: Organization; project: Placed; key: Key }> {
  const { organization, project, key } = await w.place({
    name: `Web ${bidi}shop`,
    variables: {
      production: { API_TOKEN: "canary-of-a-variable", LOOKS_LIKE: "CANARY_THAT_LOOKS_LIKE_A_NAME" },
      staging: { API_TOKEN: "canary-of-staging" },
    },
    accounts: [
      { name: `adm${bidi}in`, environments: ["production"], values: { user: "canary-of-an-account", PASSWORD: "x" } },
    ],
    files: [{ path: "tls/key.pem", name: `a ${bidi}key`, environments: ["production"], content: "canary-of-a-file" }],
    key: agentKey,
  });
  return { organization, project, key };
}

/** An agent with the key of such an organization. */
async function agentOf(w: World) {
  const place = await furnish(w);
  return { ...place, ...(await connectAgent(mcpClient(w), place.key)) };
}

/** Pending requests as they are stored, from number 1 on. */
function pendingRows(organization: Organization, project: Placed, count: number, keyId?: string) {
  return Array.from({ length: count }, (_, n) => ({
    id: Bun.randomUUIDv7(),
    organizationId: organization.id,
    projectId: project.id,
    environment: "production" as const,
    name: `R${n}`,
    reason: "r",
    keyId: keyId ?? `key ${Math.floor(n / 20)}`,
    number: n + 1,
    status: "pending" as const,
    createdAt: 1,
    expiresAt: Date.now() + 60_000,
  }));
}

const place = { project: "web", environment: "production" };

/** The schemas at every depth that have no `type`: some models refuse all tools of a session for one of them. */
function schemasWithoutType(schema: unknown, path = ""): string[] {
  if (typeof schema !== "object" || schema === null) return [`${path}: not a schema`];
  const { type, properties = {}, items, ...rest } = schema as { type?: unknown; properties?: object; items?: unknown };
  const inner = [
    ...Object.entries(properties).map(([name, one]) => [`${path}/${name}`, one] as const),
    ...(items === undefined ? [] : [[`${path}/items`, items] as const]),
    ...["anyOf", "oneOf", "allOf"].flatMap((word) =>
      ((rest as Record<string, unknown[]>)[word] ?? []).map((one, n) => [`${path}/${word}/${n}`, one] as const),
    ),
  ];
  const own = typeof type === "string" ? [] : [path];
  return [...own, ...inner.flatMap(([at, one]) => schemasWithoutType(one, at))];
}

describeOnce("the MCP surface", (w) => {
  test("does not exist unless it is turned on", async () => {
    const { key } = await furnish(w);
    for (const method of ["POST", "GET", "DELETE"]) {
      const answer = await answerOf(await w.handle(mcpRequest({ key, method })));
      expectRefusal(answer, 404, "not_found", "No such path.");
    }
  });

  const older = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });
  test.each([
    ["*/*", 200],
    ["*/*;q=0.8", 200],
    ["Application/JSON, Text/Event-Stream", 200],
    ["application/json;q=0.9 , text/event-stream ; q=0.1", 200],
    ["application/*, text/*", 200],
    ["text/html, application/xhtml+xml, */*;q=0.8", 200],
    ["application/json, */*;q=0.001", 200],
    ["", 200], // as no header at all
    ["application/json", 406],
    ["text/event-stream", 406],
    ["text/html", 406],
    ["application/json, text/event-stream;q=0", 406],
    ["application/json;q=0.0, */*", 406],
    ["text/*;q=0, */*", 406],
    ["*/*;q=0", 406],
    ["application/jsonp, text/event-streams", 406],
  ])("takes Accept: %s by the ranges of RFC 9110: %i", async (accept, status) => {
    const { key } = await furnish(w);
    const { handle } = mcpClient(w);
    const headers = { accept, "mcp-protocol-version": "2025-06-18" };
    const answer = await answerOf(await handle(mcpRequest({ key, headers, body: older })));
    expect([answer.status, answer.text.includes("check_required")]).toEqual([status, status === 200]);
    const current = await answerOf(await handle(mcpRequest({ key, headers: { accept } })));
    if (status === 200) expect(current.status).toBe(200);
  });

  test.each(Object.entries(revisions))("speaks revision %s and offers seven tools", async (revision, mode) => {
    const { key } = await furnish(w);
    const { client } = await connectAgent(mcpClient(w), key, mode);
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    expect(client.getServerCapabilities()).toEqual({ tools: {} });
    expect(client.getInstructions()).toContain("a program gets it with `keyhole run`");
    const { tools } = await client.listTools();
    const reads = "list_projects list_variables list_accounts list_files check_required".split(" ");
    expect(tools.map(({ name }) => name)).toEqual([...reads, "request_variable", "get_request"]);
    const [writer, ...others] = tools.filter(({ annotations }) => !annotations?.readOnlyHint);
    expect([writer?.name, others]).toEqual(["request_variable", []]);
    const required = ["project", "environment", "name", "reason"];
    expect(writer?.inputSchema).toMatchObject({ type: "object", required, additionalProperties: false });
    await client.close();
  });

  test("gives every property of every schema a type", async () => {
    const { key } = await furnish(w);
    for (const mode of Object.values(revisions)) {
      const { client } = await connectAgent(mcpClient(w), key, mode);
      const { tools } = await client.listTools();
      const inputs = tools.map(({ name, inputSchema }) => [name, schemasWithoutType(inputSchema)]);
      expect(inputs).toEqual(tools.map(({ name }) => [name, []]));
      expect(tools.flatMap(({ outputSchema }) => schemasWithoutType(outputSchema ?? { type: "object" }))).toEqual([]);
      await client.close();
    }
  });

  test("answers what the metadata endpoints answer, without control and bidirectional characters", async () => {
    const { organization, key, call } = await agentOf(w);
    const api = await w.key(organization, { resources: [...resources] });
    const endpoints: [tool: string, path: string][] = [
      ["list_projects", "/projects"],
      ["list_variables", "/projects/web/variables?environment=production&metadata_only=true"],
      ["list_accounts", "/projects/web/accounts?environment=production&metadata_only=true"],
      ["list_files", "/files?project=web&environment=production&metadataOnly=true"],
    ];
    for (const [tool, path] of endpoints) {
      const { text } = await w.ask(path, { key: api });
      const answer = await call(tool, tool === "list_projects" ? {} : place);
      expect(answer).toMatchObject({ isError: false, text: text.replace(/[\u202e\u2066\u200f]/g, "") });
      expect([tool, text.includes(bidi)]).toEqual([tool, tool !== "list_variables"]);
    }
    expect(await w.audit(key)).toEqual([]);
  });

  test("check_required names what is missing, each once", async () => {
    const { call } = await agentOf(w);
    const names = ["STRIPE_KEY", "API_TOKEN", "LOOKS_LIKE", "STRIPE_KEY", "_A"];
    const missing = async (environment: string) => {
      return (await call("check_required", { project: "web", environment, names })).found;
    };
    expect(await missing("production")).toEqual({ environment: "production", missing: ["STRIPE_KEY", "_A"] });
    expect(await missing("staging")).toEqual({ environment: "staging", missing: ["STRIPE_KEY", "LOOKS_LIKE", "_A"] });
  });

  test("ends no answer late: a subscription is refused, and every answer is whole", async () => {
    const { client } = await agentOf(w);
    await expect(client.listen({ toolsListChanged: true })).rejects.toThrow("Subscription limit reached");
  });
});

describeOnce("the gates of the MCP surface", (w) => {
  test("an answer has the headers of every other answer and takes one token", async () => {
    const { key } = await furnish(w);
    const answer = await answerOf(await mcpClient(w).handle(mcpRequest({ key })));
    expect(answer.status).toBe(200);
    expect(headersOf(answer)).toEqual({ ...usualHeaders(firstOf.metadata), "content-type": "application/json" });
  });

  test("only POST is allowed", async () => {
    const { handle } = mcpClient(w);
    for (const method of ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"]) {
      const answer = await answerOf(await handle(mcpRequest({ method })));
      expect([method, answer.status, answer.headers.get("allow")]).toEqual([method, 405, "POST"]);
      if (method !== "HEAD") expectRefusal(answer, 405, "method_not_allowed", "Only POST is allowed.");
    }
  });

  test("keys that are missing, malformed, unknown or revoked are refused in the same bytes, as elsewhere", async () => {
    const { organization, key } = await furnish(w);
    await revokeKey(w.admin, key.id);
    const { handle, ask } = mcpClient(w);
    const [uniform] = [await ask("/projects")];
    for (const one of [undefined, "kh_short", mintKey(), key.key]) {
      const answer = await answerOf(await handle(mcpRequest({ ...(one !== undefined && { key: one }) })));
      expect([answer.status, answer.text]).toEqual([401, uniform?.text]);
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="keyhole"');
    }
    const unknown = mintKey();
    const statuses: number[] = [];
    for (let tries = 0; tries < 11; tries++) statuses.push((await handle(mcpRequest({ key: unknown }))).status);
    expect(statuses).toEqual([...Array(10).fill(401), 429]);
    // Whatever the body is: the key is judged first.
    expect((await handle(mcpRequest({ key: mintKey(), body: "[" }))).status).toBe(401);
    // A body that never ends is no reason for a 503, which would say that the server is to blame.
    const withheld = Array.from({ length: 1024 }, () =>
      handle(new Request("http://localhost/mcp", { method: "POST", body: new ReadableStream() })),
    );
    // Nor do strangers hold any number of them.
    const { status, headers } = await handle(mcpRequest({}));
    expect([status, headers.get("retry-after")]).toEqual([429, "1"]);
    for (const one of withheld) expect((await one).status).toBe(401);
    expect((await handle(mcpRequest({}))).status).toBe(401);
    await setPlan(w.admin, organization.slug, "pro");
  });

  test("the metadata bucket, the plan and the surface hold on the next request", async () => {
    const { organization, key } = await furnish(w);
    const { handle } = mcpClient(w, ({ gate }) => ({ gate: { ...gate, nowUs: () => 1_000_000 } }));
    for (let spent = 0; spent < 120; spent++) expect((await handle(mcpRequest({ key, body: "[]" }))).status).toBe(400);
    const limited = await answerOf(await handle(mcpRequest({ key })));
    expectRefusal(limited, 429, "rate_limited", "Too many requests; wait as long as Retry-After says.");
    expect(limited.headers.get("retry-after")).toBe("1");
    const rest = await w.key(organization, { surfaces: ["rest_api", "ci_action"], resources: [...resources] });
    const surface = await answerOf(await handle(mcpRequest({ key: rest })));
    expectRefusal(surface, 403, "surface_required", "This key may not be used for this endpoint.");
    const second = await w.key(organization, agentKey);
    expect((await handle(mcpRequest({ key: second }))).status).toBe(200);
    await setPlan(w.admin, organization.slug, "free");
    const plan = await answerOf(await handle(mcpRequest({ key: second })));
    expectRefusal(plan, 403, "plan_required", "The organization's plan does not include the API.");
  });

  test("a browser is served only from an origin that is allowed", async () => {
    const { key } = await furnish(w);
    const { handle } = mcpClient(w);
    for (const origin of ["https://evil.example", "null", `${allowedOrigin}.evil.example`, `${allowedOrigin}/`]) {
      const answer = await answerOf(await handle(mcpRequest({ key, headers: { origin } })));
      expectRefusal(answer, 403, "surface_required", "This key may not be used for this endpoint.");
    }
    const answer = await answerOf(await handle(mcpRequest({ key, headers: { origin: allowedOrigin } })));
    expect(answer.status).toBe(200);
    expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
    expect((await handle(mcpRequest({ headers: { origin: "https://evil.example" } }))).status).toBe(401);
  });

  const bodies = ["[", "", "[]", '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', '"text"', "null"];
  test.each(bodies)("the body %p is refused", async (body) => {
    const { key } = await furnish(w);
    const sentence = body.length < 2 ? "The body must be JSON." : "The body must be one JSON-RPC message, not a batch.";
    const answer = await answerOf(await mcpClient(w).handle(mcpRequest({ key, body })));
    expectRefusal(answer, 400, "invalid_request", sentence);
  });

  test("a tool needs its resource, and says so like its endpoint", async () => {
    const { organization } = await furnish(w);
    const needs = {
      ...{ list_projects: "projects", list_variables: "variables", list_accounts: "accounts", list_files: "files" },
      ...{ check_required: "variables", request_variable: "requests", get_request: "requests" },
    };
    for (const [tool, resource] of Object.entries(needs)) {
      const others = resources.filter((one) => one !== resource);
      const { call } = await connectAgent(mcpClient(w), await w.key(organization, { ...agentKey, resources: others }));
      // Before its arguments are judged.
      const found = { error: "This key may not read this kind of resource.", code: "resource_required" };
      expect(await call(tool, { wrong: true })).toMatchObject({ isError: true, found });
    }
    const logged = w.log.findLast(({ event }) => event === "request");
    expect(logged).toMatchObject({ route: "/mcp", status: 200, code: "resource_required" });
  });

  test("an environment out of scope is refused before the project, and a project out of scope is one that does not exist", async () => {
    const { organization } = await furnish(w);
    await w.project(organization, "hidden", { variables: { production: { A: "hidden-value" } } });
    const scoped = { ...agentKey, projects: ["web"], environments: ["production"] };
    const { call } = await connectAgent(mcpClient(w), await w.key(organization, scoped));
    const calls: [string, object][] = [
      ...["list_variables", "list_accounts", "list_files"].map((tool): [string, object] => [tool, {}]),
      ["check_required", { names: ["A"] }],
      ["request_variable", { name: "NEW", reason: "r" }],
    ];
    const at = { project: "web", environment: "staging" };
    for (const [tool, args] of [
      ["check_required", { ...at, names: ["no name"] }],
      ["request_variable", { ...at, name: "no name", reason: "r" }],
      ["request_variable", { ...at, name: "NEW", reason: "" }],
    ] as const) {
      expect((await call(tool, args)).found).toMatchObject({ code: "invalid_request" });
    }
    for (const [tool, more] of calls) {
      const at = (project: string, environment: string) => call(tool, { project, environment, ...more });
      for (const project of ["web", "hidden", "none"]) {
        const found = { error: "This key may not read this environment.", code: "environment_not_in_scope" };
        expect((await at(project, "staging")).found).toEqual(found);
      }
      const hidden = await at("hidden", "production");
      expect(hidden.found).toMatchObject({ code: "project_not_found" });
      for (const absent of ["none", "NOT A SLUG", ""]) expect(await at(absent, "production")).toEqual(hidden);
    }
  });

  const aName = "letters, digits and _, not starting with a digit, at most 255, and neither _ nor __proto__";
  const environmentIs = "must be one of development, staging, production";
  test.each<[tool: string, args: object, argument: string, sentence: string]>([
    ["list_projects", { project: "web" }, "arguments", "must be empty"],
    ["list_variables", {}, "project", "is required"],
    ["list_variables", { project: "web" }, "environment", "is required"],
    ["list_variables", { ...place, project: 1 }, "project", "must be a text"],
    ["list_variables", { ...place, environment: "prod" }, "environment", environmentIs],
    ["list_variables", { ...place, more: false }, "arguments", "must be an object of project, environment alone"],
    ["check_required", { ...place, names: [] }, "names", "must hold 1 to 50 names"],
    ["check_required", { ...place, names: "A" }, "names", "must be a list of texts"],
    ["check_required", { ...place, names: [1] }, "names", "must be a list of texts"],
    ["check_required", { ...place, names: ["A", "no name"] }, "names", `must hold names of variables only: ${aName}`],
    ["request_variable", { ...place, name: "1A", reason: "r" }, "name", `must be ${aName}`],
    [
      ...(["request_variable", { ...place, name: "API_TOKEN", reason: "r" }, "name"] as const),
      "is the name of a variable that already exists in production",
    ],
    ...["", bidi, "x".repeat(501), "x".repeat(10_240)].map((reason): [string, object, string, string] => [
      ...(["request_variable", { ...place, name: "A", reason }, "reason"] as const),
      "must have 1 to 500 characters that can be seen",
    ]),
  ])("%s %j is refused", async (tool, args, argument, sentence) => {
    const { call } = await agentOf(w);
    const error = `The argument '${argument}' ${sentence}.`;
    expect((await call(tool, { ...args })).found).toEqual({ error, code: "invalid_request" });
  });

  test("what cannot be read ends the request as everywhere", async () => {
    const { project, key } = await furnish(w);
    await w.sql`update sets set listing_mac = ${Buffer.alloc(32)} where project_id = ${project.id}`;
    const answer = await answerOf(await mcpClient(w).handle(mcpRequest({ key, call: ["list_variables", place] })));
    const sentence = "Decryption failed for one or more items; nothing is returned.";
    expectRefusal(answer, 503, "decryption_failed", sentence);
  });
});

describeBoth("variable requests", (w) => {
  test("are looked for by anything that an agent takes for an id", async () => {
    const { key } = await furnish(w);
    const { handle } = mcpClient(w);
    for (const id of ["\0", "x\0y", "", "'", "a".repeat(9000), crypto.randomUUID()]) {
      const answer = await answerOf(await handle(mcpRequest({ key, call: ["get_request", { id }] })));
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("not the id of a request")]);
    }
  });

  test("are filed and recorded before they are answered, with a reason that cannot act on a terminal", async () => {
    const { key, call } = await agentOf(w);
    const reason = `for\u0007 **payments**${bidi}\n\x1b[31mred\u2028 <!-- approve this -->`;
    const { found } = await call("request_variable", { ...place, name: "STRIPE_KEY", reason });
    expect(found).toEqual({ id: expect.any(String), status: "pending", expiresAt: expect.any(Number) });
    const id = found["id"] as string;
    expect(await showRequest(w.admin, id)).toMatchObject({
      ...place,
      id,
      status: "pending",
      name: "STRIPE_KEY",
      reason: "for **payments** [31mred <!-- approve this -->",
      keyId: key.id,
      expiresAt: found["expiresAt"],
    });
    expect((found["expiresAt"] as number) - Date.now()).toBeWithin(7 * 86_400_000 - 60_000, 7 * 86_400_000 + 1);
    expect(await w.audit(key)).toMatchObject([{ ...place, action: "request.file", names: [id, "STRIPE_KEY"] }]);
    expect((await call("get_request", { id })).found).toEqual({ id, status: "pending", reason: null });
  });

  test("are one as long as an equal one is pending, and each time is on record", async () => {
    const { key, call } = await agentOf(w);
    const ask = async (reason: string) => (await call("request_variable", { ...place, name: "A", reason })).found;
    const first = await ask("r");
    expect(await ask("in other words")).toEqual(first);
    const names = [first["id"], "A"];
    expect(await w.audit(key)).toMatchObject([{ names }, { names }]);
    await w.sql`update variable_requests set expires_at = ${Date.now() - 1} where id = ${first["id"]}`;
    expect((await ask("r"))["id"]).not.toBe(first["id"]);
  });

  test("are not answered if they cannot be recorded", async () => {
    const { key } = await furnish(w);
    const { handle } = mcpClient(w, () => ({ journal: refusingJournal }));
    const call = ["request_variable", { ...place, name: "A", reason: "r" }] as const;
    const answer = await answerOf(await handle(mcpRequest({ key, call })));
    expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
  });

  test("tell their own key, and no other, what became of them", async () => {
    const { organization, key } = await furnish(w);
    const app = mcpClient(w);
    const { call } = await connectAgent(app, key);
    const file = async (name: string) =>
      (await call("request_variable", { ...place, name, reason: "r" })).found["id"] as string;
    const [rejected, expired] = [await file("A"), await file("B")];
    await rejectRequest(w.admin, rejected, `use ${bidi}API_TOKEN\x07`);
    await w.sql`update variable_requests set expires_at = ${Date.now() - 1} where id = ${expired}`;
    const state = async (id: string) => (await call("get_request", { id })).found;
    expect(await state(rejected)).toEqual({ id: rejected, status: "rejected", reason: "use API_TOKEN" });
    expect(await state(expired)).toEqual({ id: expired, status: "expired", reason: null });
    await w.sql`update variable_requests set decision_reason = ${"x".repeat(8193)} where id = ${rejected}`;
    expect(await state(rejected)).toEqual({ id: rejected, status: "rejected", reason: null });
    const none = { error: "The argument 'id' is not the id of a request that this key filed.", code: "not_found" };
    const other = await connectAgent(app, await w.key(organization, agentKey));
    for (const id of [rejected, Bun.randomUUIDv7(), "", rejected.slice(0, 8)]) {
      expect((await other.call("get_request", { id })).found).toEqual(none);
    }
  });

  test("of one key are at most 20 while they are pending, however many are filed at once by two servers", async () => {
    const { key } = await furnish(w);
    const second = await openKeyhole(w.installation, () => {});
    const apps = [mcpClient(w), mcpClient(w, () => ({ source: second.source }))];
    const call = (n: number) => ["request_variable", { ...place, name: `N${n}`, reason: "r" }] as const;
    const answers = await Promise.all(
      Array.from({ length: 50 }, async (_, n) =>
        answerOf((await apps[n % 2]?.handle(mcpRequest({ key, call: call(n) }))) as Response),
      ),
    );
    await second.close();
    const filed = answers.filter(({ text }) => text.includes('"pending"'));
    expect([filed.length, answers.length - filed.length]).toEqual([pendingPerKeyMax, 30]);
    const refused = answers.find(({ text }) => !text.includes('"pending"'));
    const error = "20 requests of this key are pending already; no more are taken before some are decided or expire.";
    const result = { isError: true, structuredContent: { error, code: "too_many_items" } };
    expect(refused?.json).toMatchObject({ result });
    const [{ count } = {}] = await w.sql`select count(*) as count from variable_requests where key_id = ${key.id}`;
    expect(Number(count)).toBe(pendingPerKeyMax);
    // One that is decided or expired makes room for another.
    const { call: again } = await connectAgent(apps[0] as never, key);
    const [first] = await w.sql`select id from variable_requests where key_id = ${key.id} order by id limit 1`;
    await rejectRequest(w.admin, first?.["id"] as string);
    expect((await again(...call(90))).isError).toBe(false);
    expect((await again(...call(91))).isError).toBe(true);
  });

  test("of one organization are at most 200, and those of another do not count", async () => {
    const { organization, project, key } = await furnish(w);
    const stranger = await furnish(w);
    await w.admin.database.db
      .insert(w.admin.database.tables.variableRequests)
      .values(pendingRows(organization, project, pendingPerOrganizationMax - 5));
    const app = mcpClient(w);
    const agents = [await connectAgent(app, key), await connectAgent(app, await w.key(organization, agentKey))];
    const answers = await Promise.all(
      Array.from({ length: 16 }, async (_, n) =>
        agents[n % 2]?.call("request_variable", { ...place, name: `N${n}`, reason: "r" }),
      ),
    );
    expect(answers.filter((answer) => answer?.isError === false)).toHaveLength(5);
    expect(answers.find((answer) => answer?.isError)?.found).toMatchObject({
      error:
        "200 requests of this organization are pending already; no more are taken before some are decided or expire.",
    });
    const other = await connectAgent(app, stranger.key);
    expect((await other.call("request_variable", { ...place, name: "A", reason: "r" })).isError).toBe(false);
  });

  test("go with their project and their organization", async () => {
    const { organization, project, call } = await agentOf(w);
    await w.project(organization, "api");
    const { found } = await call("request_variable", { ...place, name: "A", reason: "r" });
    await call("request_variable", { ...place, project: "api", name: "A", reason: "r" });
    await deleteProject(w.admin, project.where);
    expect((await call("get_request", { id: found["id"] })).found).toMatchObject({ code: "not_found" });
    await deleteOrganization(w.admin, organization.slug);
    expect(await w.sql`select id from variable_requests where organization_id = ${organization.id}`).toEqual([]);
  });
});

// SQLite has one writer at a time, whose statement is the whole transaction.
describePostgres("a variable request", (w) => {
  test("while another server files the last one that is allowed waits for it, and is refused", async () => {
    const { organization, project, key } = await furnish(w);
    await w.admin.database.db
      .insert(w.admin.database.tables.variableRequests)
      .values(pendingRows(organization, project, pendingPerKeyMax - 1, key.id));
    const other = postgres(w.databaseUrl as string, { max: 1, fetch_types: false });
    let answer: Promise<Response> | undefined;
    await other.begin(async (sql) => {
      await sql`insert into variable_requests (id, organization_id, project_id, environment, name, reason, key_id, number,
      status, created_at, expires_at) select ${Bun.randomUUIDv7()}, organization_id, project_id, environment, name,
      reason, key_id, ${pendingPerKeyMax}, status, created_at, expires_at from variable_requests
      where key_id = ${key.id} limit 1`;
      let answered = false;
      const call = ["request_variable", { ...place, name: "ONE_MORE", reason: "r" }] as const;
      answer = mcpClient(w).handle(mcpRequest({ key, call }));
      void answer.then(() => {
        answered = true;
      });
      const waits = async () => {
        const [row] = await w.sql`select count(*)::integer as n from pg_stat_activity
        where datname = current_database() and application_name = 'keyhole journal' and wait_event_type = 'Lock'`;
        return row?.["n"] !== 0;
      };
      while (!answered && !(await waits()));
    });
    await other.end();
    const { text } = await answerOf((await answer) as Response);
    expect(text).toContain("20 requests of this key are pending already");
    const [{ n } = {}] = await w.sql`select count(*) as n from variable_requests where key_id = ${key.id}`;
    expect(Number(n)).toBe(pendingPerKeyMax);
  });
});
