import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createApp, endpointPaths, serveOptions } from "../../src/serve/api/app.ts";
import { Waits } from "../../src/serve/api/waits.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { answerOf, below, expectRefusal, headersOf, leaksIn, requestOf, usualHeaders } from "../support/answer.ts";
import { rawAnswer } from "../support/raw.ts";
import { describeBoth, describeOnce, everything, type Key, type World } from "../support/world.ts";

const paths = endpointPaths.map((path) => path.replace("{slug}", "web"));

/** Gate 1, which needs neither a key nor a database. */
describe("a request that is not a GET, or not for a path of the API", () => {
  const { handle } = (() => {
    const app = createApp(nothing());
    return { handle: async (request: Request) => app.handle(request) };
  })();
  const ask = async (path: string, method: string, headers: Record<string, string> = {}) => {
    const response = await handle(new Request(`http://localhost${path}`, { method, headers }));
    return { status: response.status, text: await response.text(), headers: Object.fromEntries(response.headers) };
  };

  test("is handled without parsing cookies or copying each Response, which would cost a tenth of the time", () => {
    const app = createApp(nothing());
    const handlers = app.routes.map((route) => String(route.compile()));
    expect(handlers.length).toBe(paths.length);
    for (const handler of handlers) {
      expect(handler).toContain("handler(c)");
      expect(handler).not.toMatch(/parseCookie|getServer|set\.cookie/);
    }
  });

  describe("405", () => {
    for (const method of ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "QUERY"]) {
      test(`${method} is not allowed on any known path, and reaches nothing behind it`, async () => {
        for (const path of paths) {
          expect(await ask(`/api/v1${path}?environment=x`, method)).toEqual({
            status: 405,
            text: '{"error":"Only GET is allowed.","code":"method_not_allowed"}',
            headers: usualHeaders({ allow: "GET" }),
          } as never);
        }
      });
    }

    test("a preflight gets no CORS header, from any origin", async () => {
      const headers = { origin: "https://app.example", "access-control-request-method": "GET" };
      const answer = await ask("/api/v1/organization", "OPTIONS", headers);
      expect(answer.status).toBe(405);
      expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    });
  });

  describe("404", () => {
    const unknown = [
      ...["/", "/api", "/api/v1", "/api/v1/", "/api/v2/organization", "/api/v1x/organization"],
      ...["/API/v1/organization", "/organization", "/livez", "/readyz", "/metrics", "/favicon.ico"],
      ...["/api/v1/Organization", "/api/v1/organization/", "/api/v1/organization/x"],
      ...["/api/v1/organization%2F", "/api/v1/organization;x=1", "/api/v1/organization%20"],
      ...["/api/v1/%6Frganization", "/api/v1//organization", "//api/v1/organization", "/api/v1/projects/"],
      ...["/api/v1/projects//", "/api/v1/projects//variables", "/api/v1/projects/web/"],
      ...["/api/v1/projects/web/variables/", "/api/v1/projects/web/variables/A"],
      ...["/api/v1/projects/web/Variables", "/api/v1/projects/web/files", "/api/v1/projects/web/accounts/x"],
      ...["/api/v1/projects/web%2Fvariables/x/y", "/api/v1/files/", "/api/v1/files/x", "/api/v1/secrets/"],
      ...["/api/v1/secret", `/api/v1/${"x".repeat(8000)}`],
    ];
    for (const method of ["GET", "POST", "HEAD", "OPTIONS"]) {
      test(`${method} of an unknown path has one answer, with or without a key`, async () => {
        for (const path of unknown) {
          for (const headers of [{}, { authorization: "Bearer x" }]) {
            const answer = await ask(path, method, headers);
            const text = '{"error":"No such path.","code":"not_found"}';
            expect([path, answer]).toEqual([path, { status: 404, text, headers: usualHeaders() }] as never);
          }
        }
      });
    }
  });

  test.each<Record<string, string>>([
    { "content-length": "1" },
    { "content-length": "00" },
    { "content-length": "-1" },
    { "content-length": "x" },
    { "transfer-encoding": "chunked" },
    { "transfer-encoding": "identity", "content-length": "0" },
  ])("400: a GET that announces a body is refused and its connection closed: %j", async (headers) => {
    for (const path of paths) {
      expect(await ask(`/api/v1${path}`, "GET", headers)).toEqual({
        status: 400,
        text: '{"error":"The body must be left out.","code":"invalid_request"}',
        headers: usualHeaders({ connection: "close" }),
      } as never);
    }
    const { status, headers: own } = await ask("/api/v1/nowhere", "GET", headers);
    expect([status, own] as unknown[]).toEqual([404, usualHeaders({ connection: "close" })]);
  });
});

describeBoth("every answer", (w, dialect) => {
  let key: Key;
  beforeAll(async () => {
    key = await webOf(w);
  });

  const ids = ["x", "A-Za-z0-9._-", "0", "..", "x".repeat(128), "01HX.trace-7_b"];
  test.each(ids)("keeps a well-formed request id: %p", async (id) => {
    const { ask } = w.client();
    const headers = { "x-request-id": id };
    for (const path of ["/organization", "/nowhere", "/projects/none", "/organization?x"]) {
      expect((await ask(path, { key, headers })).headers.get("x-request-id")).toBe(id);
    }
    expect((await ask("/organization", { headers })).headers.get("x-request-id")).toBe(id);
    expect((await ask("/organization", { method: "PUT", headers })).headers.get("x-request-id")).toBe(id);
    expect(w.log.at(-1)).toMatchObject({ requestId: id });
  });

  test.each([
    ...["", " ", "x".repeat(129), "a b", "a/b", "a,b", "a, b", "é", '"x"', "<script>", "a\tb", "%0a", "a;b"],
    "ä".repeat(3),
  ])("has a new request id in place of a malformed one: %p", async (id) => {
    const answer = await w.ask("/organization", { headers: { "x-request-id": id } });
    expect(headersOf(answer)).toEqual(usualHeaders({ "www-authenticate": 'Bearer realm="keyhole"' }));
  });

  test("has an id of its own if none was sent", async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, () => w.ask("/organization")));
    expect(new Set(answers.map(({ headers }) => headers.get("x-request-id"))).size).toBe(100);
  });

  test("is whole and not cacheable, whatever the headers of a request ask for", async () => {
    const { ask } = w.client();
    const headers = {
      origin: "https://app.example",
      "if-none-match": "x",
      "if-modified-since": "Fri, 20 Nov 2099 00:00:00 GMT",
      range: "bytes=0-0",
      "accept-encoding": "gzip, br, zstd",
      accept: "text/html",
      "x-http-method-override": "DELETE",
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-host": "evil.example",
    };
    const { rateLimit: _, ...plain } = await shape(() => ask("/projects/web/variables?environment=staging", { key }));
    const { rateLimit: __, ...odd } = await shape(() =>
      ask("/projects/web/variables?environment=staging", { key, headers }),
    );
    expect(odd).toEqual(plain);
    expect(odd.status).toBe(200);
  });

  describe("to an odd query string", () => {
    /** A path with its status 200, or with the sentence of its 400. */
    const variables = "/projects/web/variables";
    const one = "environment=staging";
    const ask = (path: string, outcome: 200 | string, ...queries: readonly string[]) =>
      queries.flatMap((query) => query.split(" ")).map((query) => [`${path}${query}`, outcome] as const);
    const [named, ofFiles] = [`${variables}?${one}&`, `/files?project=web&${one}`];
    const ofSecrets = `/secrets?project=web&${one}`;
    const [flag, flags] = [oneOf("metadata_only", "true, false"), oneOf("metadataOnly", "true, 1, false, 0")];
    const formats = oneOf("format", "json, env");
    const notWithNames = "The query parameter 'format' must not be env with metadata_only=true.";
    const rows = [
      ...ask(variables, required("environment"), "", "?", "?metadata_only=false"),
      ...ask(`${variables}?environment`, notAnEnvironment, "", "= =Staging =staging%00 =%00 =staging+"),
      ...ask(`${variables}?environment=`, notAnEnvironment, "staging,production %22staging%22 staging= staging;keys=A"),
      ...ask(
        `${variables}?`,
        200,
        "environment=sta%67ing %65nvironment=staging metadata_only=true metadata_only=tr%75e",
      ),
      ...ask(`${variables}?${one}`, once("environment"), "&environment=staging &environment=production"),
      ...ask(named, once("environment"), "%65nvironment=staging"),
      ...["Environment", "environment.x"].flatMap((name) => ask(`${variables}?`, unknown(name), `${name}=staging`)),
      ...ask(`${variables}?`, odd, "environment[]=staging +environment=staging environment+=staging"),
      ...ask(`${variables}?`, odd, `environment%00=staging =staging &${one}`),
      ...ask(named, odd, "", "&keys=A = %zz=1 %=1 %ff=1 %F0%9F%A6%94=1 %3Cscript%3E=1", `${"x".repeat(33)}=1`),
      ...ask(`${variables}?${one}?keys=A`, notAnEnvironment, ""),
      ...["x", "hasOwnProperty"].flatMap((name) => ask(named, unknown(name), name)),
      ...["cursor", "limit", "metdata_only", "metadataOnly", "Metadata_only", "project", "__proto__"]
        .concat("constructor", "toString")
        .flatMap((name) => ask(named, unknown(name), `${name}=true`)),
      ...["keys", "prefix"].flatMap((name) => ask(named, empty(name), `${name} ${name}=`)),
      ...ask(named, "The query parameter 'keys' has an empty name.", "keys=, keys=A, keys=A,,B"),
      ...ask(named, notUtf8("keys"), "keys=%ff keys=%c0%80 keys=%ed%a0%80 keys=% keys=%4"),
      ...ask(named, "The query parameter 'keys' may hold at most 1000 names.", `keys=${"A,".repeat(1000)}A`),
      ...ask(named, 200, `keys=${"A,".repeat(999)}A`, "keys=A%2CB keys=A%00 keys=%00 keys=* keys='%20or%201=1--"),
      ...ask(named, 200, "keys=__proto__,constructor,_ keys=%F0%9F%A6%94 prefix=%00 prefix=A%00 prefix=%25 prefix=_"),
      ...ask(named, 200, `prefix=%F4%8F%BF%BF prefix=${"A".repeat(4000)}`, "format=json format=env"),
      ...ask(named, 200, "format=json&metadata_only=true"),
      ...["keys=A&keys=B", "prefix=A&prefix=A", "format=json&format=env"].flatMap((query) =>
        ask(named, once(query.split("=", 1)[0] as string), query),
      ),
      ...ask(`${variables}?metadata_only`, flag, "", "= =1 =TRUE =true%20 =true%00"),
      ...ask(`${variables}?metadata_only=true`, once("metadata_only"), "&metadata_only=true &metadata%5Fonly=false"),
      ...ask(`${variables}?metadata_only=true&environment=`, notAnEnvironment, ""),
      ...ask(named, formats, "format=json%00 format=ENV format=yaml format="),
      ...ask(`${variables}?`, notWithNames, `${one}&format=env&metadata_only=true format=env&metadata_only=true`),
      ...ask("/organization", 200, "?"),
      ...["/organization?&", "/projects?%00", "/projects/web?="].flatMap((path) => ask(path, odd, "")),
      ...ask("/organization?x=1", unknown("x"), ""),
      ...["environment", "cursor", "page"].flatMap((name) => ask("/projects?", unknown(name), name)),
      ...["environment", "fields", "metadata_only"].flatMap((name) =>
        ask("/projects/web?", unknown(name), `${name}=1`),
      ),
      ...ask("/projects/web/accounts", 200, "", "?metadata_only=true"),
      ...ask("/projects/web/accounts?metadata_only=", flag, "0 %00"),
      ...ask("/projects/web/accounts?environment=", notAnEnvironment, "", "%00"),
      ...["keys", "format"].flatMap((name) => ask("/projects/web/accounts?", unknown(name), `${name}=json`)),
      ...["/files", "/secrets"].flatMap((path) => ask(path, required("project"), "", `?${one}`)),
      ...["/files", "/secrets"].flatMap((path) => ask(path, required("environment"), "?project=web")),
      ...ask("/files?", empty("project"), `project=&${one} project&${one}`),
      ...ask("/files?", once("project"), `project=web&project=web&${one}`),
      ...[ofFiles, ofSecrets].flatMap((path) => ask(path, unknown("metadata_only"), "&metadata_only=true")),
      ...ask(ofFiles, flags, "&metadataOnly=yes &metadataOnly &metadataOnly=1%00"),
      ...ask(ofFiles, once("metadataOnly"), "&metadataOnly=true&metadataOnly=1"),
      ...ask(ofFiles, empty("path"), "&path &path= &path=a&path="),
      ...ask(ofFiles, notUtf8("path"), "&path=%ff"),
      ...ask(
        ofFiles,
        200,
        "",
        "&path=%00 &path=a%00b&path=%F0%9F%A6%94 &path=../../etc/passwd",
        "&path=a".repeat(1000),
      ),
      ...ask(ofFiles, odd, "&path[]=a"),
      ...ask(ofFiles, unknown("path.0"), "&path.0=a"),
      ...ask(ofFiles, "The query parameter 'path' may be given at most 1000 times.", "&path=a".repeat(1001)),
      ...ask(ofSecrets, unknown("keys"), "&keys=A"),
      ...ask(ofSecrets, formats, "&format=shell &format=%00"),
      ...ask(ofSecrets, 200, "&format=env"),
      ...ask("/secrets?project=web&environment=prod", notAnEnvironment, ""),
    ];
    test.each(
      // Before the database is asked, it is all the same which one it is.
      rows
        .filter(([, outcome]) => outcome === 200 || dialect === "sqlite")
        .map(([path, outcome]) => [path.length > 100 ? `${path.slice(0, 100)}…` : path, path, outcome] as const),
    )("%s", async (_, path, outcome) => {
      const answer = await w.client().ask(path, { key });
      if (outcome === 200) expect(answer.status).toBe(200);
      else expectRefusal(answer, 400, "invalid_request", outcome);
    });

    test.each([
      ...["%00", "web%00", "%00web", "%ff", "%zz", "%", "%E2%80%AE", "web%2F", "web%252F", "Web", "web%20", "'--"],
      "%2e%2e%2fweb",
    ])("a project %p does not exist, on every path", async (slug) => {
      for (const path of [`/projects/${slug}`, `/projects/${slug}/variables?${one}`, `/projects/${slug}/accounts`]) {
        expect(await w.client().ask(path, { key })).toMatchObject({ status: 404, json: { code: "project_not_found" } });
      }
      for (const path of [`/files?${one}&project=${slug}`, `/secrets?${one}&project=${slug}`]) {
        const malformed = { status: 400, json: { error: notUtf8("project") } };
        const unknown = { status: 404, json: { code: "project_not_found" } };
        const expected = ["%ff", "%zz", "%"].includes(slug) ? malformed : unknown;
        expect(await w.client().ask(path, { key })).toMatchObject(expected);
      }
    });
  });

  test.each(["api_keys", "projects", "sets"])(
    "is 503 while the database cannot answer without its table %s, and 200 again as soon as it can",
    async (table) => {
      const needing = [
        ...below("/projects/web", "/variables?environment=staging", "/variables?metadata_only=true", "/accounts"),
        ...below("/files?project=web&environment=staging", "", "&metadataOnly=1"),
        "/secrets?project=web&environment=staging",
        ...(table === "sets" ? [] : ["/projects", "/projects/web"]),
        ...(table === "api_keys" ? ["/organization"] : []),
      ];
      const { ask } = w.client();
      await w.run(`alter table ${table} rename to table_gone`);
      const answers = await Promise.all(needing.map((path) => ask(path, { key })));
      await w.run(`alter table table_gone rename to ${table}`);
      for (const answer of answers) {
        expectRefusal(answer, 503, "unavailable", "The service cannot answer now; nothing is returned.");
      }
      for (const path of needing) expect([path, (await ask(path, { key })).status]).toEqual([path, 200]);
    },
  );

  test("is logged once, without the query, the key or a value", async () => {
    const before = w.log.length;
    await w.ask("/projects/web/variables?environment=staging&keys=WHATEVER", { key });
    await w.ask("/projects/web/variables?environment=WHATEVER", { key });
    await w.ask("/WHATEVER", { key });
    await w.ask("/projects/WHATEVER", { method: "POST" });
    const logged = w.log.slice(before);
    expect(JSON.stringify(logged)).not.toContain("WHATEVER");
    expect(leaksIn(w.secrets, JSON.stringify(w.log))).toEqual([]);
    // Once a minute the journal logs a checkpoint.
    expect(logged.filter(({ event }) => event !== "checkpoint")).toMatchObject([
      { event: "request", route: "/projects/{slug}/variables", status: 200, keyId: key.id },
      { event: "request", route: "/projects/{slug}/variables", status: 400, code: "invalid_request", keyId: key.id },
      { event: "request", route: "none", status: 404, code: "not_found" },
      { event: "request", route: "none", status: 405, code: "method_not_allowed" },
    ]);
  });
});

/** What only a socket shows. */
describeOnce("on the wire", (w) => {
  let key: Key;
  let app: ReturnType<typeof createApp>;
  beforeAll(async () => {
    key = await webOf(w);
    app = createApp(w.keyhole);
    app.listen({ ...serveOptions(() => {}), hostname: "127.0.0.1", port: 0 });
  });
  afterAll(() => app.server?.stop(true));
  /** Sends bytes as they are and reads until the server closes, which nearly every request asks for. */
  const exchange = async (head: string) => {
    const sent = Buffer.from(`${head.replaceAll("\n", "\r\n")}\r\n\r\n`).toString("latin1");
    const text = Buffer.from(await rawAnswer(app.server?.port as number, sent), "latin1").toString();
    const end = text.indexOf("\r\n\r\n");
    const [statusLine = "", ...fields] = text.slice(0, end).split("\r\n");
    return { status: Number(statusLine.split(" ")[1]), fields, body: text.slice(end + 4) };
  };
  const asking = (target: string, more = "Connection: close") =>
    exchange(`GET ${target} HTTP/1.1\nHost: localhost\nAuthorization: Bearer ${key.key}\n${more}`);

  test("a defect that no handler caught has the headers of every answer, and its id is in the log", async () => {
    const log: Readonly<Record<string, unknown>>[] = [];
    const fetchOf = (): Response => {
      throw new RangeError("words of a request");
    };
    const options = { ...serveOptions((event) => log.push(event)), hostname: "127.0.0.1", port: 0 };
    const server = Bun.serve({ ...options, fetch: fetchOf });
    const answer = await answerOf(await fetch(`http://127.0.0.1:${server.port}/`));
    await server.stop(true);
    expectRefusal(answer, 500, "internal_error", "Internal error.");
    expect(headersOf(answer)).toMatchObject(usualHeaders());
    const requestId = answer.headers.get("x-request-id");
    expect(log).toMatchObject([
      { event: "request", requestId, status: 500, code: "internal_error", defect: "RangeError" },
    ]);
    expect(JSON.stringify(log)).not.toContain("words of a request");
  });

  test("an answer has exactly these fields", async () => {
    const { status, fields, body } = await asking("/api/v1/organization");
    expect(status).toBe(200);
    const usual = "cache-control content-length content-type date ratelimit ratelimit-policy x-content-type-options";
    const found = fields.map((field) => field.split(":")[0]?.toLowerCase());
    expect(found.sort().join(" ")).toBe(`${usual} x-request-id`);
    expect(fields).toContain(`Content-Length: ${Buffer.byteLength(body)}`);
  });

  test("two Authorization fields are refused, even if each alone would be accepted", async () => {
    const good = `Authorization: Bearer ${key.key}`;
    const head = "GET /api/v1/organization HTTP/1.1\nHost: localhost\nConnection: close";
    for (const two of [`${good}\n${good}`, `${good}\nAuthorization: Basic eA==`, `Authorization: x\n${good}`]) {
      expect((await exchange(`${head}\n${two}`)).status).toBe(401);
    }
  });

  test("two request ids are replaced by a new one", async () => {
    const { fields } = await asking("/api/v1/organization", "X-Request-Id: a\nX-Request-Id: b\nConnection: close");
    const ids = fields.filter((field) => field.toLowerCase().startsWith("x-request-id"));
    expect(ids).toEqual([expect.stringMatching(/: [0-9a-f-]{36}$/)]);
  });

  test("a malformed Host does not change the path", async () => {
    const of = (path: string, host: string) =>
      exchange(`GET ${path} HTTP/1.1\nHost: ${host}\nAuthorization: Bearer ${key.key}\nConnection: close`);
    const none = { status: 404, body: '{"error":"No such path.","code":"not_found"}' };
    for (const host of ["a b", "a/b", "a?b", "a#b", "localhost/api/v1/organization?", "", "[", "a:b:c"]) {
      expect(await of("/api/v1/nowhere", host)).toMatchObject(none);
    }
    for (const host of ["a", "a:1", "x.example", "[::1]:80"]) {
      expect((await of("/api/v1/organization", host)).status).toBe(200);
    }
  });

  test("an audit entry has the peer's address, not a forwarded one, and a printable user agent", async () => {
    const odd =
      "X-Forwarded-For: 203.0.113.9\nForwarded: for=203.0.113.9\nUser-Agent: ci/1.0 (é)\tx\nConnection: close";
    const { status, body } = await asking("/api/v1/projects/web/variables?environment=staging", odd);
    expect({ status, leaks: leaksIn(["first value of web"], body).length }).toEqual({ status: 200, leaks: 1 });
    expect((await w.audit(key)).at(-1)).toMatchObject({ clientAddress: "127.0.0.1", userAgent: "ci/1.0 (??)?x" });
  });

  test("the server closes connections while it drains", async () => {
    const draining = createApp({ ...w.keyhole, draining: () => true });
    const response = await draining.handle(requestOf("/organization", { key }));
    expect(response.headers.get("connection")).toBe("close");
    expect((await app.handle(requestOf("/organization", { key }))).headers.get("connection")).toBeNull();
  });
});

/** Parts that throw if anything uses them. */
function nothing(): ApiParts {
  const untouchable = new Proxy({}, { get: (_, part) => untouched(String(part)) });
  return {
    gate: untouchable as ApiParts["gate"],
    source: untouchable as ApiParts["source"],
    etagKey: untouchable as ApiParts["etagKey"],
    journal: untouchable as ApiParts["journal"],
    log: () => {},
    draining: () => false,
    waits: new Waits(() => untouched("the end of the lane")),
  };
}

function untouched(part: string): never {
  throw new Error(`${part} was touched`);
}

async function webOf(w: World): Promise<Key> {
  const { key } = await w.place({
    variables: { staging: { A: "first value of web", B: "second value of web" } },
    accounts: [{ name: "ci", environments: ["staging"], values: { a: "value of an account" } }],
    files: [{ path: "a", environments: ["staging"], content: "content of a" }],
    key: everything,
  });
  return key;
}

const odd = "The query parameter with an unusual name is not known here.";

const sentence = (end: string) => (name: string) => `The query parameter '${name}' ${end}.`;
const required = sentence("is required");
const unknown = sentence("is not known here");
const empty = sentence("is empty");
const once = sentence("may be given only once");
const notUtf8 = sentence("is not percent-encoded UTF-8");
const oneOf = (name: string, values: string) => sentence(`must be one of ${values}`)(name);
const notAnEnvironment = oneOf("environment", "development, staging, production");

/** An answer without what differs each time. */
async function shape(ask: () => ReturnType<World["ask"]>) {
  const answer = await ask();
  const { ratelimit: rateLimit, "x-request-id": _, "keyhole-audit": __, ...headers } = headersOf(answer);
  return { status: answer.status, text: answer.text, headers, rateLimit };
}
