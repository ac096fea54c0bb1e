/**
 * Faults that were found in other projects, tried on this one by machines. docs/maintainers/proofs-advisories.md lists
 * the advisories with their tests.
 */
import { expect, test } from "bun:test";
import { resources } from "../../src/kinds/people.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { TrustDirectory } from "../../src/serve/access/trust-directory.ts";
import { createApp, endpointPaths, serveOptions } from "../../src/serve/api/app.ts";
import { tools } from "../../src/serve/api/tools.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { trustFinder } from "../../src/store/lookups.ts";
import { answerOf, leaksIn, requestOf } from "../support/answer.ts";
import { impatient, unlimited } from "../support/attack.ts";
import { listAudit } from "../support/audit.ts";
import { throughDoorHere } from "../support/door.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { mcpClient, mcpRequest } from "../support/mcp.ts";
import { personsVisitor } from "../support/pages.ts";
import { grantRights } from "../support/plans.ts";
import { rawAnswer } from "../support/raw.ts";
import { stored } from "../support/rows.ts";
import { type Client, describeBoth, everything, type Place, refusingJournal, type World } from "../support/world.ts";

const content = {
  variables: { production: { TOKEN: "canary-of-a-variable" }, staging: { TOKEN: "canary-of-staging" } },
  accounts: [{ name: "mail", environments: ["production"] as const, values: { password: "canary-of-an-account" } }],
  files: [{ path: "a.pem", environments: ["production"], content: "canary-of-a-file" }],
};
/** Each way in which a machine gets values. */
const valuePaths = [
  ...["/projects/web/variables?environment=production", "/projects/web/variables?environment=production&keys=TOKEN"],
  ...["/projects/web/variables?environment=production&format=env", "/projects/web/accounts?environment=production"],
  ...["/files?project=web&environment=production", "/secrets?project=web&environment=production"],
  "/secrets?project=web&environment=production&format=env",
];

const issuer = "https://ci.example";
const signing = newSigningKey("ES256");
/** A trust, a token for it, and an app that looks for trusts from now on. */
async function trusted(w: World, { organization }: Pick<Place, "organization">) {
  const { trust } = await createTrust(w.admin, {
    ...{ organization: organization.slug, name: "ci", projects: null, environments: null },
    ...{ surfaces: everything.surfaces, resources: everything.resources, issuer, audience },
    claims: new Map([["sub", organization.slug]]),
    jwks: JSON.stringify({ keys: [publicJwk("one", signing)] }),
  });
  const claims = usualClaims(issuer, { sub: organization.slug, jti: "run-1" });
  const trusts = new TrustDirectory(trustFinder(w.keyhole.database), w.installation.systemKeys.grant, () => 0);
  const { handle } = mcpClient(w, ({ gate }) => ({
    gate: { ...gate, nowUs: impatient(), findTrusts: (token) => trusts.find(token) },
  }));
  return { trust, token: compact({ alg: signing.alg, kid: "one" }, claims, signing), handle };
}

describeBoth("the faults of others, tried by a machine", (w) => {
  const odd = ["__proto__", "constructor", "prototype", "__proto__[kh]", "__proto__.kh", "constructor[prototype][kh]"];

  test("CVE-2025-66456: nothing that is sent reaches a prototype of this process", async () => {
    const { organization } = await w.place(content);
    const key = await w.key(organization, everything);
    const prototypes = [Object, Array, Function, String, Map].map(({ prototype }) => prototype);
    const before = prototypes.map((one) => Reflect.ownKeys(one).map(String));
    const { handle } = mcpClient(w, ({ gate }) => ({ gate: { ...gate, nowUs: impatient() } }));
    for (const name of odd) {
      const encoded = encodeURIComponent(name);
      const headers = { [name.replaceAll(/[[\]]/g, ".")]: "kh", cookie: `${name}=kh; ${name}[kh]=kh` };
      for (const path of [`/projects/${encoded}`, ...valuePaths.map((one) => `${one}&${encoded}=kh&${encoded}[kh]=kh`)])
        expect((await handle(requestOf(path, { key, headers }))).status).toBeLessThan(500);
      const nested = `"${name}":{"kh":"kh","${name}":{"kh":"kh"}}`;
      const call = `"method":"tools/call","params":{"name":"list_projects","arguments":{${nested}},${nested}},${nested}`;
      const deep = [`{"jsonrpc":"2.0","id":1,${call}}`, `{${nested}}`, `{"jsonrpc":"2.0","id":{${nested}},${call}}`];
      for (const body of deep) {
        JSON.parse(body);
        expect((await handle(mcpRequest({ key, headers, body }))).status).toBeLessThan(500);
      }
    }
    expect(prototypes.map((one) => Reflect.ownKeys(one).map(String))).toEqual(before);
    expect(({} as Record<string, unknown>)["kh"]).toBeUndefined();
  });

  test("CVE-2026-25536: 200 calls of two agents with one JSON-RPC id get their own answers", async () => {
    const places = [await w.place({ slug: "mine", ...content }), await w.place({ slug: "theirs", ...content })];
    const keys = await Promise.all(
      places.map(({ organization }) => w.key(organization, { surfaces: ["mcp_server"], resources: [...resources] })),
    );
    const { handle } = mcpClient(w, ({ gate }) => ({ gate: { ...gate, nowUs: impatient() } }));
    const gone = new AbortController();
    const answers = Array.from({ length: 200 }, async (_, n) => {
      const request = mcpRequest({ key: keys[n % 2] });
      const asked = n % 10 === 9 ? new Request(request, { signal: gone.signal }) : request;
      if (n === 100) gone.abort();
      const answer = await handle(asked).then(answerOf, () => undefined);
      if (answer === undefined || n % 10 === 9) return;
      const { id, result } = answer.json as {
        id: number;
        result: { structuredContent: { projects: { slug: string }[] } };
      };
      const slugs = result.structuredContent.projects.map(({ slug }) => slug);
      expect([id, slugs]).toEqual([1, [n % 2 === 0 ? "mine" : "theirs"]]);
    });
    await Promise.all(answers);
  });

  test("GHSA-w48q-cv73-mx4w: a page whose name was rebound to this machine is refused, and nothing is done", async () => {
    const { organization } = await w.place(content);
    const key = await w.key(organization, { surfaces: ["mcp_server"], resources: [...resources] });
    const { handle } = mcpClient(w);
    const before = await stored(w);
    const args = { project: "web", environment: "production", name: "WANTED", reason: "r" };
    for (const one of [key, undefined]) {
      const headers = { host: "evil.example", origin: "http://evil.example" };
      const asked = mcpRequest({ ...(one && { key: one }), headers, call: ["request_variable", args] });
      expect((await handle(asked)).status).toBe(one ? 403 : 401);
    }
    const requests = await w.sql`select * from variable_requests where key_id = ${key.id}`;
    expect([await stored(w), requests]).toEqual([before, []]);
  });

  test("GHSA-rh46-vc3j-w2w3: a token reaches the seven paths and /mcp by one method each, whatever it says", async () => {
    const parts: ApiParts = { ...w.keyhole, mcp: async () => new Response(null) };
    const routes = createApp(parts).routes.map(({ method, path }) => `${method} ${path}`);
    const paths = endpointPaths.map((path) => `GET /api/v1${path.replace("{slug}", ":slug")}`);
    expect([routes.sort(), paths.length]).toEqual([[...paths, "POST /mcp"].sort(), 7]);
    const { token, handle } = await trusted(w, await w.place(content));
    const before = JSON.parse(await stored(w)) as unknown[];
    const known = [...valuePaths, "/projects", "/projects/web"];
    for (const path of [...known, "/people", "/projects/web/variables/TOKEN"]) {
      const ask = async (more: Parameters<typeof requestOf>[1] = {}, query = "") =>
        answerOf(await handle(requestOf(`${path}${query}`, { key: token, ...more })));
      const plain = await ask();
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]) {
        expect((await ask({ method })).status).toBe(known.includes(path) ? 405 : 404);
        const names = ["x-http-method-override", "x-http-method", "x-method-override"];
        const { status, text } = await ask({ headers: Object.fromEntries(names.map((name) => [name, method])) });
        expect([status, text]).toEqual([plain.status, plain.text]);
        const asked = await ask({}, `${path.includes("?") ? "&" : "?"}_method=${method}`);
        expect(asked.status).toBe(known.includes(path) ? 400 : 404);
      }
    }
    const none = ["var_set", "var set", "write_variable", "reveal", "key_create", "constructor", "list_projects/.."];
    for (const name of none) {
      expect(Object.hasOwn(tools, name)).toBe(false);
      const answer = await answerOf(await handle(mcpRequest({ key: token, call: [name, { project: "web" }] })));
      expect(answer.text).toContain("There is no such tool");
    }
    // Reads are on record, in the last of these tables, and nothing else was written.
    expect((JSON.parse(await stored(w)) as unknown[]).slice(0, -1)).toEqual(before.slice(0, -1));
  });

  test("CVE-2026-46358: an entry has every field, whichever door the value left by", async () => {
    const place = await w.place(content);
    const { organization, project, where } = place;
    const key = await w.key(organization, everything);
    const { trust, token, handle } = await trusted(w, place);
    const signIn = { issuer: "https://id.example", subject: `ana-${organization.slug}` };
    const name = `ana-${organization.slug}`;
    await addPerson(w.admin, { name, organization: organization.slug, signIn });
    await grantRights(w.admin, name, { rights: ["see", "reveal"], projects: ["web"], environments: null });
    const asMachine = { requestId: "request-1", userAgent: "agent/1", clientAddress: "" };
    const headers = { "x-request-id": asMachine.requestId, "user-agent": asMachine.userAgent };
    const ask = async (path: string, credential: string) => {
      const answer = await answerOf(await handle(requestOf(path, { key: credential, headers })));
      expect(answer.status).toBe(200);
    };
    const asPerson = { requestId: "", userAgent: "", clientAddress: "" };
    const byKey = { ...asMachine, actor: { type: "key", id: key.id } };
    const words = { jti: "run-1", sub: organization.slug, run: "" };
    const byToken = { ...asMachine, actor: { type: "trust", id: trust.id }, token: words };
    const doors: [action: string, fields: object, names: string[], leaves: () => Promise<unknown>][] = [
      ...(
        [
          [byKey, key.key],
          [byToken, token],
        ] as const
      ).flatMap(([by, credential]) => [
        ["variables.read", by, ["TOKEN"], () => ask(valuePaths[0] as string, credential)] as never,
        ["accounts.read", by, ["mail"], () => ask(valuePaths[3] as string, credential)] as never,
        ["file.read", by, ["a.pem"], () => ask(valuePaths[4] as string, credential)] as never,
        ["secrets.read", by, ["TOKEN"], () => ask(valuePaths[5] as string, credential)] as never,
        [
          "request.file",
          by,
          [expect.any(String), `N${credential.length}`],
          async () => {
            const args = { project: "web", environment: "production", name: `N${credential.length}`, reason: "r" };
            const asked = mcpRequest({ key: credential, headers, call: ["request_variable", args] });
            expect(await answerOf(await handle(asked))).toMatchObject({ status: 200 });
          },
        ] as never,
      ]),
      [
        "variables.reveal",
        { ...asPerson, actor: { type: "person", name, from: signIn } },
        ["TOKEN"],
        async () => {
          const fields = { name: "TOKEN", environment: "production", projectId: project.id };
          const shown = await personsVisitor(w, signIn).send(`/p/${where}/variables/reveal`, fields);
          expect(shown.secret).toBe("canary-of-a-variable");
        },
      ],
      [
        "variables.reveal",
        { ...asPerson, actor: { type: "person", name, from: "ssh" } },
        ["TOKEN"],
        async () => {
          const { code, out } = await throughDoorHere(w, name, ["var", "get", where, "production", "TOKEN"]);
          expect([code, out.trim()]).toEqual(["done", "canary-of-a-variable"]);
        },
      ],
    ];
    for (const [action, fields, names, leaves] of doors) {
      const since = Math.max(0, ...(await listAudit(w.admin, { limit: 1 })).map(({ time }) => time));
      const [before] = await listAudit(w.admin, { limit: 1 });
      await leaves();
      const [entry] = await listAudit(w.admin, { limit: 1 });
      expect([entry?.lane, entry?.seq]).not.toEqual([before?.lane, before?.seq]);
      expect(entry).toEqual({
        ...{ time: expect.any(Number), lane: expect.any(String), seq: expect.any(Number) },
        ...{ action, names, count: names.length },
        ...{ organization: organization.slug, project: "web", environment: "production" },
        ...fields,
      } as never);
      expect(entry?.time).toBeGreaterThanOrEqual(since);
    }
  });

  test("CVE-2026-46405: whatever stage fails, a refusal holds no value", async () => {
    const { organization } = await w.place(content);
    const key = await w.key(organization, everything);
    const fails = () => Promise.reject(new Error("canary-of-a-variable"));
    const throws = () => {
      throw new Error("canary-of-a-variable");
    };
    type Change = (keyhole: ApiParts) => Partial<ApiParts>;
    const stages: Record<string, Change> = {
      lookup: ({ gate }) => ({ gate: { ...gate, lookUp: fails } }),
      sets: ({ source }) => ({
        source: { ...source, remembered: { find: throws, add: throws }, sets: { fetch: fails } } as never,
      }),
      contents: ({ source }) => ({
        source: {
          ...source,
          contents: new Proxy(source.contents, { get: () => fails }),
          rememberedContents: { find: () => undefined },
        } as never,
      }),
      memory: ({ source }) => ({ source: { ...source, memory: { claim: fails } } as never }),
      "data key": ({ source }) => ({ source: { ...source, keyring: { ...source.keyring, dataKey: throws } } as never }),
      audit: () => ({ journal: refusingJournal }),
      "audit with another error": () => ({ journal: { record: fails } }),
    };
    for (const [stage, change] of Object.entries(stages)) {
      const client: Client = unlimited(w, change);
      const statuses = [];
      for (const path of valuePaths) {
        const answer = await answerOf(await client.handle(requestOf(path, { key })));
        statuses.push(answer.status);
        if (answer.status === 200) continue;
        const sent = answer.text + JSON.stringify([...answer.headers]);
        expect([stage, path, leaksIn(w.secrets, sent), sent.includes("canary")]).toEqual([stage, path, [], false]);
      }
      expect([stage, statuses.some((status) => status >= 500)]).toEqual([stage, true]);
    }
  });

  test("CVE-2025-6203, CVE-2025-59043: a body costs nothing before its key is judged but 16 KiB of reading", async () => {
    const { organization } = await w.place();
    const key = await w.key(organization, { surfaces: ["mcp_server"], resources: [...resources] });
    const { handle } = mcpClient(w, ({ gate }) => ({ gate: { ...gate, nowUs: impatient() } }));
    const half = serveOptions(() => {}).maxRequestBodySize / 2;
    const lists = ["[".repeat(2 * half), "[".repeat(half) + "]".repeat(half)];
    for (const body of [...lists, '{"a":'.repeat(half / 3), "9".repeat(half)]) {
      expect((await handle(mcpRequest({ body }))).status).toBe(401);
      expect((await handle(mcpRequest({ key, body }))).status).toBe(400);
    }
  });

  test("CVE-2026-3605: a path is one spelling: dots, slashes and escapes lead nowhere else", async () => {
    const { organization } = await w.place(content);
    await w.project(organization, "hidden", { variables: { production: { HIDDEN: "canary-of-the-hidden" } } });
    const key = await w.key(organization, { ...everything, projects: ["web"] });
    const app = createApp({ ...w.keyhole, gate: { ...w.keyhole.gate, nowUs: impatient() } });
    app.listen({ ...serveOptions, hostname: "127.0.0.1", port: 0 });
    const port = app.server?.port as number;
    const ask = async (target: string) => {
      const head = `GET ${target} HTTP/1.1\r\nHost: x\r\nx-request-id: r\r\nAuthorization: Bearer ${key.key}\r\n`;
      const answer = await rawAnswer(port, `${head}Connection: close\r\n\r\n`);
      return answer.replace(/\r\nDate: .*|\r\nratelimit: .*/gi, "");
    };
    const query = "?environment=production";
    const unknown = await ask("/api/v1/nothing");
    const outside = await ask(`/api/v1/projects/hidden/variables${query}`);
    expect(unknown).toStartWith("HTTP/1.1 404 ");
    expect(outside).toContain(`"code":"project_not_found"`);
    for (const target of [
      ...["//api/v1/projects/web/variables", "/api/v1//projects/web/variables", "/api/v1/projects//web/variables"],
      ...["/api/v1/projects/web/variables/", "/api/v1/projects/web/variables%00"],
      ...["/API/v1/projects/web/variables", "/api/v1/projects/web/variables%2f", "/api/v1/projects%2fweb%2fvariables"],
      ...["/api/v1/projects/web/%76ariables", "/%61pi/v1/projects/web/variables", "/api/v1/projects/web/variables;x"],
    ]) {
      const answer = await ask(`${target}${query}`);
      expect([target, answer.includes("canary")]).toEqual([target, false]);
      expect([target, answer]).toEqual([target, unknown]);
    }
    // One project's name in the place of a name: a name that nobody has.
    for (const slug of "web%2f..%2fhidden ..%2fhidden %2e%2e hidden%00 hidden%20 HIDDEN web;hidden".split(" ")) {
      expect([slug, await ask(`/api/v1/projects/${slug}/variables${query}`)]).toEqual([slug, outside]);
    }
    // What a client or this server may resolve is judged as what it was resolved to.
    const odd = ["/api/v1/projects/web/../hidden/variables", "http://other/api/v1/projects/hidden/variables"];
    for (const target of odd) {
      expect([target, [unknown, outside].includes(await ask(`${target}${query}`))]).toEqual([target, true]);
    }
    await app.server?.stop(true);
  });
});
