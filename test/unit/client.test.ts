import { describe, expect, test } from "bun:test";
import { type Api, Client } from "../../src/client/client.ts";
import type { Clock } from "../../src/client/wire.ts";
import { whyNoReply } from "../../src/core/json-request.ts";
import type { Problem } from "../../src/core/problem.ts";
import { moment } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";
import { failing } from "../support/failing.ts";
import { honestly, liarStarter, type Question, type Reply, refusal, type Truth } from "../support/liar.ts";
import retryAfter from "../vectors/retry-after.json" with { type: "json" };

const truth: Truth = {
  project: "web",
  environment: "production",
  variables: { A: "one", B: 'it\'s "two"\n', EMPTY: "" },
  files: [
    { path: "a.txt", content: Buffer.from("content of a") },
    { path: "config/b.bin", content: Buffer.alloc(5000, 7), mode: "0400" },
  ],
};
const asked = { project: "web", environment: "production" } as const;
const key = `kh_${"k".repeat(49)}`;

const startLiar = liarStarter();

describe("an honest answer", () => {
  test("returns every variable exactly, and the request carries only the key", async () => {
    const { client, liar } = await meet((question) => honestly(truth, question));
    expect(await client.variables(asked)).toEqual(
      Object.entries(truth.variables).map(([name, value]) => ({ name, value })),
    );
    const [question] = liar.questions;
    expect(question?.headers.get("authorization")).toBe(`Bearer ${key}`);
    expect(question?.headers.get("accept-encoding")).toBe("identity");
    expect(question?.headers.get("user-agent")).toMatch(/^keyhole\/\d/);
    expect(question?.query.toString()).toBe("environment=production");
  });

  test("may have members that this version does not know", async () => {
    const { client } = await meet(() => ({
      body: { environment: "production", etag: 1, variables: [{ key: "A", value: "b", updatedAt: 1, kind: "x" }] },
    }));
    expect(await client.variables(asked)).toEqual([{ name: "A", value: "b" }]);
  });

  test("returns files with the content that was listed", async () => {
    const { client } = await meet((question) => honestly(truth, question));
    const listed = await client.listFiles(asked);
    const fetched = await client.fetchFiles(asked, listed.slice(1), false);
    expect(fetched.map(({ path, content }) => [path, Buffer.from(content)])).toEqual([
      ["config/b.bin", Buffer.alloc(5000, 7)],
    ]);
  });
});

describe("a question that is asked again", () => {
  const etag = `"${"t".repeat(43)}"`;
  /** Knows one answer, by this tag. */
  const tagging = (tag: string) => (question: Question) =>
    question.headers.get("if-none-match") === tag
      ? { status: 304, headers: { ETag: tag } }
      : { ...honestly(truth, question), headers: { ETag: tag } };

  test("names the tag of its own last answer, and gives the same object if nothing changed", async () => {
    const { client, liar } = await meet(tagging(etag));
    const values = await client.variables(asked);
    const records = await client.listFiles(asked);
    expect(await client.variables(asked)).toBe(values);
    expect(await client.listFiles(asked)).toBe(records);
    expect(await client.variables(asked, { keys: ["A"] })).toEqual(values.slice(0, 1));
    const tags = () => liar.questions.map(({ headers }) => headers.get("if-none-match"));
    expect(tags()).toEqual([undefined, undefined, etag, etag, undefined]);
    await client.fetchFiles(asked, records, true);
    await client.fetchFiles(asked, records, true);
    expect(tags().slice(5)).toEqual([undefined, undefined]);
  });

  test("names a tag that a proxy made weak", async () => {
    const { client, liar } = await meet(tagging(`W/${etag}`));
    const first = await client.variables(asked);
    expect(await client.variables(asked)).toBe(first);
    expect(liar.questions[1]?.headers.get("if-none-match")).toBe(`W/${etag}`);
  });

  test.each([`w/${etag}`, "none", '""'])("names no tag that Keyhole does not send: %s", async (odd) => {
    const { client, liar } = await meet(tagging(odd));
    await client.variables(asked);
    await client.variables(asked);
    expect(liar.questions.some(({ headers }) => headers.has("if-none-match"))).toBe(false);
  });

  test("keeps no tag of an answer that cannot be trusted", async () => {
    const { client, liar } = await meet((question) => ({ ...one("A", "\0")(question), headers: { ETag: etag } }));
    await failing(client.variables(asked));
    await failing(client.variables(asked));
    expect(liar.questions.some(({ headers }) => headers.has("if-none-match"))).toBe(false);
  });
});

describe("a question whose answer may wait for a change", () => {
  const etag = `"${"t".repeat(43)}"`;
  const told = { status: 304, headers: { ETag: etag, "Preference-Applied": "wait=7" } };
  const tagged = (question: Question): Reply => ({ ...honestly(truth, question), headers: { ETag: etag } });
  const waiting = () => ({ waitS: 7, signal: new AbortController().signal });
  /** A client that has an answer, and asks again, where these come. */
  const again = async (...replies: readonly Reply[]) => {
    const given = waiting();
    const left = [...replies];
    const { client, liar } = await meet((question) => (question.count === 0 ? tagged(question) : (left.shift() ?? {})));
    const before = await client.variables(asked, {}, given);
    expect(client.waited).toBeFalse();
    const answer = await client.variables(asked, {}, given).catch(({ code }: Problem) => code);
    const preferred = liar.questions.map(({ headers }) => headers.get("prefer"));
    return { isSame: answer === before, answer, waited: client.waited, preferred };
  };

  test("is asked once if it has no tag, whatever the answer", async () => {
    const { client, liar } = await meet(() => refusal(401, "unauthorized", "No."));
    expect(await client.variables(asked, {}, waiting()).catch(({ code }: Problem) => code)).toBe("unauthorized");
    expect(liar.questions).toHaveLength(1);
  });

  test("says so once it has a tag, and tells whether the server waited", async () => {
    const preferred = [undefined, "wait=7"];
    expect(await again(told)).toMatchObject({ isSame: true, waited: true, preferred });
    expect(await again({ status: 304, headers: { ETag: etag } })).toMatchObject({ isSame: true, waited: false });
  });

  test.each<[what: string, reply: Reply]>([
    ["a gateway's refusal", { status: 504, body: "<html>" }],
    ["a connection that is cut", { raw: "" }],
    ["a token that ended meanwhile", refusal(401, "unauthorized", "No.")],
  ])("is asked again without a wait after %s", async (_, reply) => {
    const preferred = [undefined, "wait=7", undefined];
    expect(await again(reply, told)).toMatchObject({ isSame: true, preferred });
    expect(await again(reply, reply)).toMatchObject({ isSame: false, preferred });
  });

  test.each<[code: string, reply: Reply]>([
    ["rate_limited", refusal(429, "rate_limited", "", { "Retry-After": "9" })],
    ["unavailable", refusal(503, "unavailable", "")],
    ["project_not_found", refusal(404, "project_not_found", "")],
    ["http_429", { status: 429, body: "<html>" }],
  ])("is not asked again after %s", async (code, reply) => {
    expect(await again(reply, told)).toMatchObject({ answer: code, preferred: [undefined, "wait=7"] });
  });

  test("has its seconds beside those that every request has", async () => {
    const late = () => moment(400).then(() => told);
    const replies = (question: Question) => (question.count === 0 ? tagged(question) : late());
    const { client } = await meet(replies, { timeoutMs: 200 });
    const before = await client.variables(asked);
    expect(await client.variables(asked, {}, waiting())).toBe(before);
  });

  test("gives what was there if its wait is ended", async () => {
    const over = new AbortController();
    const { client, liar } = await meet((question) => (question.count === 0 ? tagged(question) : { silent: true }));
    const given = { waitS: 7, signal: over.signal };
    const before = await client.variables(asked, {}, given);
    const answer = client.variables(asked, {}, given);
    await eventually(() => liar.questions.length === 2);
    over.abort();
    expect(await answer).toBe(before);
    expect(liar.questions).toHaveLength(2);
  });
});

describe("a receipt", () => {
  const named = (receipt: string | undefined) => (question: Question) => ({
    ...honestly(truth, question),
    headers: { "x-request-id": "deploy-7", ...(receipt !== undefined && { "Keyhole-Audit": receipt }) },
  });

  test("is kept for each answer with values, before they are used, and for none without", async () => {
    const kept: string[] = [];
    const { client } = await meet(named("lane:1-2"), { keep: async (all) => void kept.push(JSON.stringify(all)) });
    const records = await client.listFiles(asked);
    expect(kept).toEqual([]);
    await client.fetchFiles(asked, records, true);
    await client.variables(asked);
    const one = { entries: "lane:1-2", requestId: "deploy-7", ...asked };
    expect(kept).toEqual([JSON.stringify([one]), JSON.stringify([one, one])]);
    expect(client.receipts).toEqual([one, one]);
  });

  test.each([
    undefined,
    ...["", "lane", "lane:0", "lane:2-1", "lane:1-1", "la ne:1", "lane:1, lane:2", "lane:9007199254740993"],
  ])("that is none (%p) is refused if one must be kept, and else passed over", async (odd) => {
    const keep = async () => {};
    const strict = await meet(named(odd), { keep });
    const problem = await failing(strict.client.variables(asked));
    expect(problem).toMatchObject({ code: "no_receipt", exitCode: 1, requestId: "deploy-7" });
    const { client } = await meet(named(odd));
    await client.variables(asked);
    expect(client.receipts).toEqual([]);
  });
});

const many = Array.from({ length: 1001 }, (_, at) => at);
const gzipped = Bun.gzipSync(Buffer.alloc(1000));
/** What no environment can carry. Lies to every client are in lies.test.ts. */
const lies: [lie: string, reply: (question: Question) => Reply, says: RegExp][] = [
  ["a name that is none", one("a.b", "x"), /no valid name/],
  ["a name that is code", one("A=1;touch /tmp/x;B", "x"), /no valid name/],
  ["__proto__", () => ({ body: entry("__proto__", '"x"') }), /no valid name/],
  ["a NUL", one("A", "x\0y"), /value of A is not text/],
  ["half a surrogate pair", () => ({ body: entry("A", '"\\ud800"') }), /value of A is not text/],
  ["65 KiB of value", one("A", "x".repeat(65 * 1024)), /value of A is too long/],
  ["1001 variables", variables({ variables: many.map((at) => pair(`A${at}`, "")) }), /more than 1000 variables/],
  ["compressed bytes", () => ({ body: gzipped, headers: { "Content-Encoding": "gzip" } }), /not complete JSON/],
];

test.each(lies)("an answer that lies is refused: %s", async (_, reply, says) => {
  const { client } = await meet(reply);
  const problem = await failing(client.variables(asked));
  expect(problem).toMatchObject({ code: "invalid_answer", exitCode: 1 });
  expect(problem.message).toMatch(says);
});

type Files = Record<string, unknown>[];
const form = /does not have the members that the API describes/;

/** A listing, altered. The other rules of paths are in path.test.ts. */
const fileLies: [lie: string, alter: (files: Files) => unknown, says: RegExp][] = [
  ["a path that differs in case alone", ([first]) => [first, { ...first, path: "A.TXT" }], /case is ignored/],
  ["a path that steers the terminal", ([first]) => [{ ...first, path: "a\u001b[2Jb" }], /has the character/],
  ["no path", ([first]) => [{ ...first, path: undefined }], form],
  ["a path twice", ([first]) => [first, first], /twice/],
  ["a mode that runs", ([first]) => [{ ...first, mode: "4755" }], form],
  ["a mode that is a number", ([first]) => [{ ...first, mode: 384 }], form],
  ["a negative size", ([first]) => [{ ...first, size: -1 }], form],
  ["a size with a fraction", ([first]) => [{ ...first, size: 1.5 }], form],
  ["a size over 8 MiB", ([first]) => [{ ...first, size: 2 ** 23 + 1 }], /size over 8 MiB/],
  ["no checksum", ([first]) => [{ ...first, sha256: "" }], /no checksum/],
  ["a checksum in capitals", ([first]) => [{ ...first, sha256: "A".repeat(64) }], /no checksum/],
  ["content that was not asked for", ([first]) => [{ ...first, content: "" }], /content that was not asked for/],
  ["no list", () => "files", form],
  ["1001 files", ([first]) => many.map((at) => ({ ...first, path: `f${at}` })), /more than 1000 files/],
];

describe("a listing that lies is refused", () => {
  test.each(fileLies)("%s", async (_, alter, says) => {
    const { client } = await meet((question) => altered(question, alter));
    const problem = await failing(client.listFiles(asked));
    expect(problem.code).toBe("invalid_answer");
    expect(problem.message).toMatch(says);
    expect(problem.message).not.toContain("\u001b");
  });

  test.each([
    ["text for a project", { project: "web" }, form],
    ["another project's files", { project: { slug: "api" } }, /another project/],
    ["another environment's files", { environment: "staging" }, /or environment/],
  ])("%s", async (_, more, says) => {
    const { client } = await meet((question) => ({ body: { ...(honestly(truth, question).body as object), ...more } }));
    const problem = await failing(client.listFiles(asked));
    expect(problem.code).toBe("invalid_answer");
    expect(problem.message).toMatch(says);
  });
});

/** Alters the first file. */
const altering =
  (alter: (first: Files[number]) => unknown) =>
  ([first = {}, ...rest]: Files) => [alter(first), ...rest];
const base64 = (content: string) => altering((first) => ({ ...first, content }));
/** Contents, altered. */
const contentLies: [lie: string, alter: (files: Files) => unknown, says: RegExp][] = [
  ["nothing", () => [], /was listed and is missing/],
  ["a file twice", (files) => [...files, files[0]], /files that were not asked for/],
  ["a file more", (files) => [...files, { ...files[0], path: "more" }], /files that were not asked for/],
  ["content cut short", base64(""), /another size/],
  ["content with another checksum", base64(Buffer.alloc(12).toString("base64")), /another checksum/],
  ["no content", altering((first) => ({ ...first, content: undefined })), form],
  [
    "other content with its own checksum",
    altering((first) => {
      const content = Buffer.from("CONTENT of a");
      const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
      return { ...first, sha256, content: content.toString("base64") };
    }),
    /not the file that was listed/,
  ],
  ["another mode than was listed", altering((first) => ({ ...first, mode: "0400" })), /not the file that was listed/],
  ["base64 with other characters in it", base64("Y29udGVu*CBvZiBh"), /not valid base64/],
  ["base64 with spaces in it", base64("Y29udGVu    ZiBh"), /not valid base64/],
  ["base64url", base64("Y29udGVu-CBvZi_h"), /not valid base64/],
  ["a path outside the root, in content alone", altering((first) => ({ ...first, path: "../a.txt" })), /'\.\.' part/],
];

test.each(contentLies)("content that lies is refused: %s", async (_, alter, says) => {
  const { client } = await meet((question) =>
    question.query.has("metadataOnly") ? honestly(truth, question) : altered(question, alter),
  );
  const problem = await failing(client.fetchFiles(asked, await client.listFiles(asked), true));
  expect(problem.message).toMatch(says);
  expect(problem.code).toBe("invalid_answer");
});

describe("a refusal", () => {
  const kinds: [status: number, codes: string, exitCode: number, tries: number][] = [
    [400, "invalid_request", 1, 1],
    [401, "unauthorized", 3, 1],
    [403, "plan_required surface_required resource_required environment_not_in_scope", 3, 1],
    [404, "project_not_found not_found", 4, 1],
    [405, "method_not_allowed", 1, 1],
    [422, "too_many_items content_too_large", 5, 1],
    [429, "rate_limited", 5, 3],
    [500, "internal_error", 6, 1],
    [503, "decryption_failed", 6, 1],
    [503, "unavailable", 6, 3],
  ];
  const rows = kinds.flatMap(([status, codes, ...more]) =>
    codes.split(" ").map((code) => [status, code, ...more] as const),
  );
  test.each(rows)(
    "%d %s is exit code %d, and is retried only if that may help",
    async (status, code, exitCode, tries) => {
      const reply = () => refusal(status, code, "A sentence.", { "Retry-After": "2" });
      const { client, liar } = await meet(reply, { waitMs: 5000 });
      const problem = await failing(client.variables(asked));
      expect(problem).toMatchObject({ code, exitCode, requestId: "liar-1" });
      expect(problem.message).toContain(`${code}: ${status === 429 ? "too many requests for now." : "A sentence."}`);
      expect(liar.questions).toHaveLength(tries);
    },
  );

  test("is one line, whatever the server's sentence has: a runner takes lines for commands", async () => {
    const { client } = await meet(() => refusal(401, "unauthorized", "No.\n::stop-commands::abc\r\n##[error]x\u2028y"));
    const { message } = await failing(client.variables(asked));
    expect(message).toContain(String.raw`No.\u000a::stop-commands::abc\u000d\u000a##[error]x\u2028y`);
  });

  test("of the environment says how to see what the key reaches", async () => {
    const { client } = await meet(() => refusal(403, "environment_not_in_scope", "No."));
    expect((await failing(client.variables(asked))).message).toContain("`keyhole key show ID` says which");
  });

  test("that is not in Keyhole's format has the exit code of its status", async () => {
    const { client } = await meet(() => ({ status: 401, body: "<html>" }));
    expect(await failing(client.variables(asked))).toMatchObject({ code: "http_401", exitCode: 3 });
  });

  test("without --wait is final", async () => {
    const { client, liar, slept } = await meet(() => refusal(429, "rate_limited", "Wait.", { "Retry-After": "1" }));
    expect(await failing(client.variables(asked))).toMatchObject({ code: "rate_limited", exitCode: 5 });
    expect([liar.questions.length, slept.length]).toEqual([1, 0]);
  });
});

describe("waiting", () => {
  const busyThen = (times: number, headers: Readonly<Record<string, string>>) => (question: Question) =>
    question.count < times ? refusal(429, "rate_limited", "Wait.", headers) : honestly(truth, question);

  test("is never shorter than Retry-After, at most a second longer at first, and says why", async () => {
    for (const random of [0, 0.5, 0.9]) {
      const { client, slept, said } = await meet(busyThen(1, { "Retry-After": "3" }), { waitMs: 10_000 }, random);
      expect(await client.variables(asked)).toHaveLength(3);
      expect(slept).toEqual([Math.ceil(3000 + random * 1000)]);
      expect(said[0]).toMatch(
        /^The server answered rate_limited: too many requests for now\. \(request liar-1\) Trying again in 3\.\d s\.$/,
      );
    }
  });

  test("spreads those who wait more after each try, up to 15 s and to what --wait leaves", async () => {
    const spread = async (random: number, waitMs: number) => {
      const { client, slept } = await meet(busyThen(7, { "Retry-After": "2" }), { waitMs }, random);
      await client.variables(asked).catch(() => {});
      return slept;
    };
    expect(await spread(0, 300_000)).toEqual(Array(7).fill(2000));
    expect(await spread(0.5, 300_000)).toEqual([2500, 3000, 4000, 6000, 9500, 9500, 9500]);
    expect(await spread(0.5, 7000)).toEqual([2500, 3000]);
    expect(await spread(0.9, 5000)).toEqual([2900, 2100]);
  });

  test("longer than --wait allows does not start", async () => {
    const { client, slept } = await meet(busyThen(1, { "Retry-After": "11" }), { waitMs: 10_000 });
    const problem = await failing(client.variables(asked));
    expect(problem).toMatchObject({ code: "rate_limited", exitCode: 5, requestId: "liar-1" });
    expect(problem.message).toContain("which --wait does not allow");
    expect(slept).toEqual([]);
  });

  test("without a Retry-After doubles, and the last try comes when the time is up", async () => {
    const { client, slept, liar } = await meet(() => refusal(503, "unavailable", "Down."), { waitMs: 6000 });
    await failing(client.variables(asked));
    expect(slept).toEqual([500, 1000, 2000, 2500]);
    expect(liar.questions).toHaveLength(5);
  });

  test.each(retryAfter.cases)("reads $header as $seconds s", async ({ header, seconds }) => {
    const dateMs = Date.parse(retryAfter.now);
    const { client, slept } = await meet(busyThen(1, { "Retry-After": header }), { waitMs: 1e13 }, 0, dateMs);
    await client.variables(asked);
    expect(slept).toEqual([seconds === null ? 500 : seconds * 1000]);
  });

  test("continues while the connection is refused, until the time is up", async () => {
    const liar = await startLiar(() => ({}));
    await liar.stop();
    const { client, slept } = meetAt(liar.origin, { waitMs: 2000 });
    expect(await failing(client.variables(asked))).toMatchObject({ code: "unreachable", exitCode: 6 });
    expect(slept).toEqual([500, 1000, 500]);
  });

  test("is pointless for what does not speak TLS, and each failure is said in words", async () => {
    await using plain = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { client, slept } = meetAt(`https://127.0.0.1:${plain.port}`, { waitMs: 2000 });
    const { message } = await failing(client.variables(asked));
    expect([message, slept]).toEqual([expect.stringContaining("it answers, but not with TLS"), []]);
    const noName = { failed: "unreachable", reason: "EAI_AGAIN", proxy: undefined, proxyStatus: undefined } as const;
    expect(whyNoReply({ ...noName, headers: undefined }, 1)).toContain("its name cannot be looked up now");
  });

  test("is pointless for a host that does not exist", async () => {
    // A machine's resolver may look for long until it knows.
    const { client, slept } = meetAt("http://localhost.invalid:1", { waitMs: 2000, timeoutMs: 60_000 });
    expect(await failing(client.variables(asked))).toMatchObject({ code: "unreachable", exitCode: 6 });
    expect(slept).toEqual([]);
  }, 90_000);
});

test("a 401 of a token says that it was the token, and how an operator finds the reason", async () => {
  const reply = () => refusal(401, "unauthorized", "A valid API key is required.", { "x-request-id": "0f6e2c1a-5b7d" });
  const { client } = await meet(reply, { credential: async () => "aa.bb.cc" });
  const problem = await failing(client.variables(asked));
  expect(problem).toMatchObject({ code: "unauthorized", exitCode: 3, requestId: "0f6e2c1a-5b7d" });
  const how = "An operator sees the reason in the server's log: keyhole explain 0f6e2c1a-5b7d LOG";
  expect(problem.message).toBe(`The server refused the token of KEYHOLE_OIDC. ${how}`);
});

async function meet(
  reply: (question: Question) => Reply | Promise<Reply>,
  api: Partial<Api> = {},
  random = 0,
  dateMs = 0,
) {
  const liar = await startLiar(reply);
  return { liar, ...meetAt(liar.origin, api, random, dateMs) };
}

/** A client with a clock that moves only when it sleeps, without taking time. */
function meetAt(origin: string, api: Partial<Api> = {}, random = 0, dateMs = 0) {
  const slept: number[] = [];
  const said: string[] = [];
  let nowMs = 0;
  const clock: Clock = {
    nowMs: () => nowMs,
    dateMs: () => dateMs,
    sleep: async (durationMs) => {
      slept.push(durationMs);
      nowMs += durationMs;
    },
    random: () => random,
  };
  const settings: Api = {
    root: `${origin}/api/v1`,
    credential: async () => key,
    timeoutMs: 60_000,
    waitMs: 0,
    say: (line) => said.push(line),
    ...api,
  };
  return { client: new Client(settings, clock), slept, said };
}

function variables(more: Readonly<Record<string, unknown>>): (question: Question) => Reply {
  return (question) => ({ body: { ...(honestly(truth, question).body as object), ...more } });
}

function one(name: unknown, value: unknown): (question: Question) => Reply {
  return variables({ variables: [pair(name, value)] });
}

function pair(key: unknown, value: unknown) {
  return { key, value, updatedAt: 1 };
}

/** Written by hand, for what JSON.stringify would not write. */
function entry(name: string, value: string): string {
  return `{"environment":"production","variables":[{"key":"${name}","value":${value},"updatedAt":1}]}`;
}

function altered(question: Question, alter: (files: Files) => unknown): Reply {
  const body = honestly(truth, question).body as { files: Files };
  return { body: { ...body, files: alter(body.files) } };
}
