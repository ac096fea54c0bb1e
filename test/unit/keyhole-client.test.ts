import { describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import * as client from "../../src/client/npm/client.ts";
import { createClient, type KeyholeClient, KeyholeError } from "../../src/client/npm/client.ts";
import { honestly, liarStarter, type Question, type Reply, refusal, type Truth } from "../support/liar.ts";

const key = `kh_${"k".repeat(49)}`;
const etag = '"0123456789012345678901234567890123456789012"';
const values = { A: "one", B: 'it\'s "two"\n', EMPTY: "" };
const truth: Truth = { project: "web", environment: "production", variables: values, files: [] };
const file = {
  name: "greeting",
  path: "etc/greeting.txt",
  mode: "0600",
  size: 6,
  sha256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
  contentType: "text/plain",
  environments: ["production"],
  updatedAt: 1,
  content: "aGVsbG8K",
};
const files = { project: { slug: "web" }, environment: "production", files: [file] };
const account = { name: "mail", environments: ["staging"], updatedAt: 1, values: { password: "two" } };
const summary = { id: "1", name: "Web", slug: "web", variableCount: 2, accountCount: 0 };
const project = { ...summary, environments: ["production"], fileCount: 1, createdAt: 1, updatedAt: 2 };

const startLiar = liarStarter();

/** A client, and a server that answers it like this. */
async function meet(reply: (question: Question) => Reply, options: Partial<client.ClientOptions> = {}) {
  const liar = await startLiar(reply);
  const keyhole = createClient({ url: liar.origin, apiKey: key, waitMs: 0, ...options } as client.ClientOptions);
  return { keyhole, liar };
}

const answering = async (body: unknown) => (await meet(() => ({ body }))).keyhole;

async function failureOf(promise: Promise<unknown>): Promise<KeyholeError> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof KeyholeError) return error;
  throw error;
}

test("nothing but what programs need is exported", () => {
  expect(Object.keys(client).sort()).toEqual(["KeyholeError", "createClient"]);
});

describe("an honest answer", () => {
  test("of variables is returned whole, and the request carries only the key", async () => {
    const headers = { ETag: etag, "Keyhole-Audit": "lane:12" };
    const { keyhole, liar } = await meet((question) => ({ ...honestly(truth, question), headers }));
    const variables = Object.entries(truth.variables).map(([key, value]) => ({ key, value, updatedAt: 1 }));
    const whole = { environment: "production", variables, etag, receipt: "lane:12" } as const;
    expect(await keyhole.variables("web", "production")).toEqual(whole);
    expect(await keyhole.values("web", "production")).toEqual({ ...truth.variables });
    expect(await keyhole.values("web", "production", { keys: ["A", "GONE"], prefix: "A" })).toEqual({ A: "one" });
    const [first, , third] = liar.questions;
    expect(first?.headers.get("authorization")).toBe(`Bearer ${key}`);
    expect(first?.headers.has("if-none-match")).toBe(false);
    expect(first?.query.toString()).toBe("environment=production");
    expect(third?.query.toString()).toBe("environment=production&keys=A%2CGONE&prefix=A");
  });

  const asked: [path: string, query: string, call: (keyhole: KeyholeClient) => Promise<unknown>, body: object][] = [
    ["/organization", "", (k) => k.organization(), { id: "1", name: "Acme", slug: "acme", plan: "pro" }],
    ["/projects", "", (k) => k.projects(), { projects: [summary] }],
    ["/projects/web", "", (k) => k.project("web"), project],
    [
      "/projects/web/variables",
      "prefix=A%26&metadata_only=true",
      (k) => k.variableNames("web", null, { prefix: "A&" }),
      { environment: null, variables: [{ key: "A&B", updatedAt: 1 }] },
    ],
    ["/projects/web/accounts", "", (k) => k.accounts("web", null), { environment: null, accounts: [account] }],
    ["/files", "project=web&environment=production", (k) => k.files("web", "production"), files],
    [
      "/files",
      "project=web&environment=production&path=etc%2Fgreeting.txt&path=b+c",
      (k) => k.files("web", "production", { paths: [file.path, "b c"] }),
      files,
    ],
  ];
  test.each(asked)("to %s?%s", async (path, query, call, body) => {
    const { keyhole, liar } = await meet(() => ({ body: { ...body, added: "by a later API" } }));
    expect(await call(keyhole)).toMatchObject(body);
    expect(liar.questions.map((one) => [one.path, one.query.toString()])).toEqual([[path, query]]);
  });

  // A proxy that compresses makes a tag weak.
  test.each([etag, `W/${etag}`])("that did not change since its etag is undefined: %s", async (etag) => {
    const { keyhole, liar } = await meet((question) =>
      question.headers.has("if-none-match") ? { status: 304 } : { body: files, headers: { ETag: etag } },
    );
    const first = await keyhole.files("web", "production", { ifNoneMatch: undefined });
    expect(first?.etag).toBe(etag);
    expect(await keyhole.files("web", "production", { ifNoneMatch: etag })).toBeUndefined();
    expect(liar.questions[1]?.headers.get("if-none-match")).toBe(etag);
  });

  test("may be asked for at the API root, with a token that is fetched for each request", async () => {
    let count = 0;
    const { liar } = await meet(() => ({ body: { projects: [] } }));
    const keyhole = createClient({ url: `${liar.origin}/api/v1/`, token: async () => `token-${++count}` });
    await keyhole.projects();
    await keyhole.projects();
    const sent = liar.questions.map(({ headers }) => headers.get("authorization"));
    expect(sent).toEqual(["Bearer token-1", "Bearer token-2"]);
  });
});

const [noText, bare] = [
  { ...account, values: { a: null } },
  { ...file, content: undefined },
];
/** Lies to every client are in lies.test.ts. */
const lies: [lie: string, body: unknown, call: (keyhole: KeyholeClient) => Promise<unknown>][] = [
  ["another project", { ...project, slug: "shop" }, (k) => k.project("web")],
  ["an unknown plan", { id: "1", name: "Acme", slug: "acme", plan: "gold" }, (k) => k.organization()],
  ["a negative count", { projects: [{ ...summary, accountCount: -1 }] }, (k) => k.projects()],
  ["an account twice", { environment: "staging", accounts: [account, account] }, (k) => k.accounts("web", "staging")],
  ["a field that is no text", { environment: "staging", accounts: [noText] }, (k) => k.accounts("web", "staging")],
  ["files of another project", { ...files, project: { slug: "shop" } }, (k) => k.files("web", "production")],
  ["a file not asked for", files, (k) => k.files("web", "production", { paths: ["b"] })],
  ["a file without content", { ...files, files: [bare] }, (k) => k.files("web", "production")],
  ["a file twice", { ...files, files: [file, file] }, (k) => k.files("web", "production")],
];
test.each(lies)("an answer that no honest server sends is refused: %s", async (_, body, call) => {
  expect(await failureOf(call(await answering(body)))).toMatchObject({ code: "invalid_answer" });
});

describe("a failure", () => {
  test("has the code, the request id and the seconds that the server sent", async () => {
    const headers = { "x-request-id": "r-1", "Retry-After": "7" };
    const { keyhole } = await meet(() => refusal(429, "rate_limited", "Too many requests.", headers));
    const error = await failureOf(keyhole.projects());
    expect(error).toMatchObject({ name: "KeyholeError", code: "rate_limited", requestId: "r-1", retryAfter: 7 });
    expect(error.message).toBe("The server answered rate_limited: Too many requests.");
  });

  // When it is repeated: client.test.ts, by the same wire.
  test("named unavailable is repeated, and any other is not", async () => {
    const then = (code: string) => (question: Question) =>
      question.count === 0 ? refusal(503, code, "No.") : { body: { projects: [] } };
    const { keyhole } = await meet(then("unavailable"), { waitMs: 30_000 });
    expect(await keyhole.projects()).toEqual({ projects: [] });
    const broken = await meet(then("decryption_failed"), { waitMs: 30_000 });
    expect(await failureOf(broken.keyhole.projects())).toMatchObject({ code: "decryption_failed" });
  });

  test("to answer in time ends the request, its body included", async () => {
    const silent = await meet(() => ({ silent: true }), { timeoutMs: 50 });
    expect(await failureOf(silent.keyhole.projects())).toMatchObject({ code: "timeout" });
    const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    const stuck = new ReadableStream({ start: (controller) => controller.enqueue(new TextEncoder().encode(head)) });
    const fetch = async (_: string, { signal }: RequestInit) => {
      const body = stuck.pipeThrough(new TransformStream(), { signal: signal as AbortSignal });
      return new Response(body, { headers: { "Content-Type": "application/json" } });
    };
    const keyhole = createClient({ url: "https://keyhole.test", apiKey: key, timeoutMs: 50, fetch });
    expect(await failureOf(keyhole.projects())).toMatchObject({ code: "timeout" });
  });

  test("to connect has the network's code", async () => {
    const { keyhole, liar } = await meet(() => ({}));
    await liar.stop();
    const error = await failureOf(keyhole.projects());
    expect(error).toMatchObject({ code: "unreachable", requestId: undefined, retryAfter: undefined });
    expect(error.message).toMatch(/^http:\S+ cannot be reached: the connection was refused\.$/);
  });

  test("of a token function that never settles comes within timeoutMs, to reads and to a watch", async () => {
    const token = () => new Promise<string>(() => {});
    const keyhole = createClient({ url: "https://keyhole.test", token, timeoutMs: 20, waitMs: 0 });
    expect(await failureOf(keyhole.projects())).toMatchObject({
      code: "timeout",
      message: "The token function gave no token within 0.02 s.",
    });
    const watch = keyhole.watch("web", "production");
    expect(await failureOf(watch.ready)).toMatchObject({ code: "timeout" });
    watch.close();
  });

  test("of the token function is passed on", async () => {
    const problem = new Error("no token today");
    const keyhole = createClient({ url: "https://keyhole.test", token: () => Promise.reject(problem) });
    expect(await keyhole.projects().catch((error: unknown) => error)).toBe(problem);
  });
});

describe("the key", () => {
  test("is not shown by the client or by errors", async () => {
    const thrower = async (_: string, init: RequestInit) => {
      throw new TypeError(`bad header ${JSON.stringify(init.headers)}`);
    };
    const options = { url: "https://keyhole.test", apiKey: key, fetch: thrower };
    const keyhole = createClient(options);
    const wrongUrl = await failureOf(Promise.try(() => createClient({ ...options, url: key })));
    const wrongKey = await failureOf(Promise.try(() => createClient({ ...options, apiKey: `${key}\n` })));
    const errors = [wrongUrl, wrongKey, await failureOf(keyhole.projects())];
    for (const shown of [keyhole, keyhole.projects, ...errors]) {
      const all = { depth: null, showHidden: true } as const;
      const texts = [inspect(shown, all), JSON.stringify(shown), String(shown), (shown as Error).stack];
      for (const text of [...texts, Bun.inspect(shown)]) expect(text ?? "").not.toContain("kkkkkkkk");
    }
    expect(errors.map(({ code }) => code)).toEqual(["invalid_options", "invalid_options", "unreachable"]);
    expect(JSON.parse(JSON.stringify(errors[2]))).toMatchObject({ name: "KeyholeError", code: "unreachable" });
  });

  test("is asked for exactly once", () => {
    const both = { url: "https://keyhole.test", apiKey: key, token: key } as unknown as client.ClientOptions;
    expect(() => createClient(both)).toThrow("One of apiKey and token is required.");
    expect(() => createClient({ ...both, apiKey: undefined, token: undefined } as never)).toThrow("One of apiKey");
  });

  // The other rules of addresses are in client-settings.test.ts.
  const urls: [url: string, allowHttp: boolean, refused: RegExp | undefined][] = [
    ["https://keyhole.test", false, undefined],
    ["http://127.0.0.1:4100", false, undefined],
    ["http://keyhole.internal", true, undefined],
    ["http://keyhole.internal", false, /plain http to another machine/],
    ["http://127.0.0.1.keyhole.test", false, /plain http to another machine/],
    ["ftp://keyhole.test", true, /must be a URL/],
    ["https://keyhole.test/api/v2", false, /ends in \/api\/v1/],
  ];
  test.each(urls)("for %s, with allowHttp %p: %p", (url, allowHttp, refused) => {
    const make = () => createClient({ url, apiKey: key, allowHttp });
    if (refused === undefined) expect(make).not.toThrow();
    else expect(make).toThrow(refused);
  });

  const arguments_: [what: string, call: (keyhole: KeyholeClient) => Promise<unknown>][] = [
    ["a project that is a path", (k) => k.project("..")],
    ["no project", (k) => k.values("", "production")],
    ["no paths, which would be all", (k) => k.files("web", "production", { paths: [] })],
    ["a tag with a line break", (k) => k.variables("web", "production", { ifNoneMatch: '"a\r\nX: y"' })],
  ];
  test.each(arguments_)("is not sent with %s", async (_, call) => {
    const { keyhole, liar } = await meet(() => ({}));
    expect(await failureOf(call(keyhole))).toMatchObject({ code: "invalid_request" });
    expect(liar.questions).toEqual([]);
  });

  test.each([Number.NaN, -1, 2 ** 31])("is not sent with a timeout of %p", (timeoutMs) => {
    expect(() => createClient({ url: "https://keyhole.test", apiKey: key, timeoutMs })).toThrow("timeoutMs must be");
  });
});

test("a proxy that refuses is named as one, as Bun's fetch fails", async () => {
  const fetch = async () => {
    throw Object.assign(new Error("refused"), { code: "ERR_PROXY_TUNNEL", status: 407 });
  };
  const keyhole = createClient({ url: "https://keyhole.test", apiKey: key, fetch });
  const { code, message } = await failureOf(keyhole.organization());
  expect(code).toBe("unreachable");
  expect(message).toContain(
    "cannot be reached through the proxy of the environment: the proxy answered 407, so it wants",
  );
});

test("the key is not sent to a port that fetch refuses, and the error says so", async () => {
  // As Node's fetch fails, without a code.
  const fetch = async () => {
    throw new TypeError("fetch failed", { cause: new Error("bad port") });
  };
  const keyhole = createClient({ url: "http://127.0.0.1:4190", apiKey: key, fetch });
  const { code, message } = await failureOf(keyhole.organization());
  expect(code).toBe("unreachable");
  expect(message).toContain("http://127.0.0.1:4190 cannot be reached: fetch refuses this port (bad port).");
});
