import { afterEach, describe, expect, test } from "bun:test";
import { type Api, answerBytesMax, Client, type Clock } from "../../src/fetch/client.ts";
import { failing } from "../failing.ts";
import { honestly, type Liar, type Question, type Reply, refusal, startLiar, type Truth } from "../liar.ts";

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

const liars: Liar[] = [];
afterEach(async () => {
  for (const liar of liars.splice(0)) await liar.stop();
});

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

/** The answer to a question for variables, twisted. */
const lies: { lie: string; reply: (question: Question) => Reply; says: RegExp; code?: string }[] = [
  { lie: "another environment", reply: variables({ environment: "staging" }), says: /another environment/ },
  { lie: "no environment", reply: variables({ environment: undefined }), says: /another environment/ },
  { lie: "no list", reply: variables({ variables: undefined }), says: /no list of variables/ },
  { lie: "an object for a list", reply: variables({ variables: { A: "b" } }), says: /no list of variables/ },
  { lie: "null for an entry", reply: variables({ variables: [null] }), says: /a variable is not an object/ },
  { lie: "a list for an answer", reply: () => ({ body: [] }), says: /it is not an object/ },
  { lie: "null for an answer", reply: () => ({ body: null }), says: /it is not an object/ },
  { lie: "a name that is none", reply: one("a.b", "x"), says: /no valid name/ },
  { lie: "a name that is code", reply: one("A=1;touch /tmp/x;B", "x"), says: /no valid name/ },
  { lie: "__proto__", reply: () => ({ body: entry("__proto__", '"x"') }), says: /no valid name/ },
  { lie: "a name that is a number", reply: one(1, "x"), says: /no valid name/ },
  { lie: "a name twice", reply: variables({ variables: [pair("A", "x"), pair("A", "y")] }), says: /A is there twice/ },
  { lie: "no value", reply: one("A", undefined), says: /A has no value/ },
  { lie: "null for a value", reply: one("A", null), says: /A has no value/ },
  { lie: "a number for a value", reply: one("A", 1), says: /A has no value/ },
  { lie: "a NUL", reply: one("A", "x\0y"), says: /value of A is not text/ },
  { lie: "half a surrogate pair", reply: () => ({ body: entry("A", '"\\ud800"') }), says: /value of A is not text/ },
  { lie: "65 KiB of value", reply: one("A", "x".repeat(65 * 1024)), says: /value of A is too long/ },
  {
    lie: "1001 variables",
    reply: variables({ variables: Array.from({ length: 1001 }, (_, at) => pair(`A${at}`, "")) }),
    says: /more than 1000 variables/,
  },
  {
    lie: "text for JSON",
    reply: () => ({ body: "A=b\n", headers: { "Content-Type": "text/plain" } }),
    says: /not JSON/,
  },
  { lie: "a web page", reply: () => ({ body: "<html>", headers: { "Content-Type": "text/html" } }), says: /not JSON/ },
  {
    lie: "half a body",
    reply: () => ({ body: '{"environment":"production","variables":[' }),
    says: /not complete JSON/,
  },
  { lie: "no body", reply: () => ({ body: "" }), says: /not complete JSON/ },
  {
    lie: "bytes that are not UTF-8",
    reply: () => ({ body: Buffer.from('{"a":"\xff"}', "latin1") }),
    says: /not complete JSON/,
  },
  {
    lie: "a byte order mark",
    reply: () => ({ body: '\ufeff{"environment":"production"}' }),
    says: /not complete JSON/,
  },
  {
    lie: "compressed bytes",
    reply: () => ({ body: Bun.gzipSync(Buffer.alloc(1000)), headers: { "Content-Encoding": "gzip" } }),
    says: /not complete JSON/,
  },
  {
    lie: "a huge body that is announced",
    reply: () => ({ endless: Buffer.alloc(1000, 0x20), headers: { "Content-Length": String(2 ** 40) } }),
    says: /longer than 16384 KiB/,
  },
  {
    lie: "an endless body",
    reply: () => ({ endless: Buffer.alloc(65536, 0x20) }),
    says: /longer than 16384 KiB/,
  },
  {
    lie: "a redirect",
    reply: () => ({ status: 302, headers: { Location: "/api/v1/elsewhere" } }),
    says: /redirect \(302\)/,
    code: "redirected",
  },
  {
    lie: "a permanent redirect to another host",
    reply: () => ({ status: 308, headers: { Location: "http://198.51.100.1/" } }),
    says: /redirect \(308\)/,
    code: "redirected",
  },
  {
    lie: "a body cut short",
    reply: () => ({ raw: 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n{"env' }),
    says: /broke before the answer was complete/,
    code: "unreachable",
  },
  {
    lie: "a piece cut short",
    reply: () => ({
      raw: 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n{"env',
    }),
    says: /broke before the answer was complete/,
    code: "unreachable",
  },
  { lie: "no HTTP", reply: () => ({ raw: "220 smtp ready\r\n" }), says: /cannot be reached/, code: "unreachable" },
  { lie: "nothing", reply: () => ({ raw: "" }), says: /cannot be reached/, code: "unreachable" },
  { lie: "silence", reply: () => ({ silent: true }), says: /did not answer within 2 s/, code: "timeout" },
  { lie: "204", reply: () => ({ status: 204 }), says: /answered 204/, code: "http_204" },
  {
    lie: "206 with half a set",
    reply: (question) => ({ ...honestly(truth, question), status: 206 }),
    says: /answered 206/,
    code: "http_206",
  },
];

describe("an answer that lies is refused", () => {
  test.each(lies)("$lie", async ({ reply, says, code = "invalid_answer" }) => {
    const { client, liar } = await meet(reply, {
      timeoutMs: says.source.includes("within 2 s") ? 2000 : 10_000,
      waitMs: 60_000,
    });
    const problem = await failing(client.variables(asked));
    expect(problem.message).toMatch(says);
    expect(problem.code).toBe(code);
    expect(liar.questions).toHaveLength(1); // lies are never retried
  });

  test("a variable that was not asked for, by name or by prefix", async () => {
    const { client } = await meet(() => ({ body: { environment: "production", variables: [pair("A", "x")] } }));
    expect((await failing(client.variables(asked, { keys: ["B"] }))).message).toMatch(/A was not asked for/);
    expect((await failing(client.variables(asked, { prefix: "B" }))).message).toMatch(/A was not asked for/);
  });

  test("an endless body is not read for long", async () => {
    const { client, liar } = await meet(() => ({ endless: Buffer.alloc(65536, 0x20) }));
    await failing(client.variables(asked));
    // Bytes in socket buffers count too, and a kernel may keep as many again or more.
    expect(liar.endlessBytes()).toBeLessThan(4 * answerBytesMax);
  });
});

/** A listing of one file, or one of several, twisted. */
const fileLies: { lie: string; twist: (files: Record<string, unknown>[]) => unknown; says: RegExp }[] = [
  ...[
    ["an absolute path", "/etc/passwd", /is absolute/],
    ["a path that climbs", "../outside", /has a '\.\.' part/],
    ["a path that climbs later", "config/../../outside", /has a '\.\.' part/],
    ["a path that climbs the Windows way", "config\\..\\..\\outside", /has the character/],
    ["a drive", "C:/x", /has the character/],
    ["a device", "config/NUL", /Windows device NUL/],
    ["a device with an extension", "con.txt", /Windows device CON/],
    ["a repository's folder", ".git/hooks/post-checkout", /\.git/],
    ["a repository's folder spelled otherwise", ".GIT/config", /\.git/],
    ["a path with a NUL", "a\0b", /has the character/],
    ["a path that steers the terminal", "a\u001b[2Jb", /has the character/],
    ["an empty path", "", /is empty/],
    ["a path that ends in a slash", "a/", /has an empty part/],
    ["a path that ends in a dot", "a.", /ends with a dot/],
    ["a stream", "a:b", /has the character/],
    ["a path that is not in normal form", "e\u0301", /normal form/],
  ].map(([lie, path, says]) => ({
    lie: lie as string,
    twist: ([first]: Record<string, unknown>[]) => [{ ...first, path }],
    says: says as RegExp,
  })),
  { lie: "no path", twist: ([first]) => [{ ...first, path: undefined }], says: /no path/ },
  { lie: "a path twice", twist: ([first]) => [first, first], says: /is there twice/ },
  {
    lie: "paths that differ in case",
    twist: ([first]) => [first, { ...first, path: "A.TXT" }],
    says: /case is ignored/,
  },
  {
    lie: "a file that is a folder too",
    twist: ([first]) => [first, { ...first, path: "a.txt/b" }],
    says: /both a file and a folder/,
  },
  { lie: "a mode that others may read", twist: ([first]) => [{ ...first, mode: "0644" }], says: /a mode other/ },
  { lie: "a mode that runs", twist: ([first]) => [{ ...first, mode: "4755" }], says: /a mode other/ },
  { lie: "a mode that is a number", twist: ([first]) => [{ ...first, mode: 384 }], says: /a mode other/ },
  { lie: "a negative size", twist: ([first]) => [{ ...first, size: -1 }], says: /no size/ },
  { lie: "a size with a fraction", twist: ([first]) => [{ ...first, size: 1.5 }], says: /no size/ },
  { lie: "a size over 8 MiB", twist: ([first]) => [{ ...first, size: 2 ** 23 + 1 }], says: /no size/ },
  { lie: "no checksum", twist: ([first]) => [{ ...first, sha256: "" }], says: /no checksum/ },
  { lie: "a checksum in capitals", twist: ([first]) => [{ ...first, sha256: "A".repeat(64) }], says: /no checksum/ },
  {
    lie: "content that was not asked for",
    twist: ([first]) => [{ ...first, content: "" }],
    says: /content that was not asked for/,
  },
  { lie: "no list", twist: () => "files", says: /no list of files/ },
  {
    lie: "1001 files",
    twist: ([first]) => Array.from({ length: 1001 }, (_, at) => ({ ...first, path: `f${at}` })),
    says: /more than 1000 files/,
  },
];

describe("a listing that lies is refused", () => {
  test.each(fileLies)("$lie", async ({ twist, says }) => {
    const { client } = await meet((question) => twisted(question, twist));
    const problem = await failing(client.listFiles(asked));
    expect(problem.code).toBe("invalid_answer");
    expect(problem.message).toMatch(says);
    expect(problem.message).not.toContain("\u001b");
  });

  test("another project or environment", async () => {
    for (const more of [{ project: { slug: "other" } }, { project: "web" }, { environment: "staging" }]) {
      const { client } = await meet((question) => ({
        body: { ...(honestly(truth, question).body as object), ...more },
      }));
      expect((await failing(client.listFiles(asked))).code).toBe("invalid_answer");
    }
  });
});

const contentLies: { lie: string; twist: (files: Record<string, unknown>[]) => unknown; says: RegExp }[] = [
  { lie: "half a set", twist: (files) => files.slice(1), says: /was listed and is missing/ },
  { lie: "nothing", twist: () => [], says: /was listed and is missing/ },
  { lie: "a file more", twist: (files) => [...files, { ...files[0], path: "more" }], says: /not asked for/ },
  { lie: "a file twice", twist: (files) => [...files, files[0]], says: /is there twice/ },
  { lie: "no content", twist: ([first, ...rest]) => [{ ...first, content: undefined }, ...rest], says: /no content/ },
  {
    lie: "content cut short",
    twist: ([first, ...rest]) => [{ ...first, content: "Y29u" }, ...rest],
    says: /another size/,
  },
  {
    lie: "content of the right size and the wrong bytes",
    twist: ([first, ...rest]) => [{ ...first, content: Buffer.from("CONTENT of a").toString("base64") }, ...rest],
    says: /another checksum/,
  },
  {
    lie: "other content with its own checksum",
    twist: ([first, ...rest]) => {
      const content = Buffer.from("CONTENT of a");
      const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
      return [{ ...first, sha256, content: content.toString("base64") }, ...rest];
    },
    says: /not the file that was listed/,
  },
  {
    lie: "another mode than was listed",
    twist: ([first, ...rest]) => [{ ...first, mode: "0400" }, ...rest],
    says: /not the file that was listed/,
  },
  {
    lie: "base64 with junk in it",
    twist: ([first, ...rest]) => [{ ...first, content: "Y29udGVu*CBvZiBh" }, ...rest],
    says: /not valid base64/,
  },
  {
    lie: "base64 with blanks in it",
    twist: ([first, ...rest]) => [{ ...first, content: "Y29udGVu    ZiBh" }, ...rest],
    says: /not valid base64/,
  },
  {
    lie: "base64 of the URL kind",
    twist: ([first, ...rest]) => [{ ...first, content: "Y29udGVu-CBvZi_h" }, ...rest],
    says: /not valid base64/,
  },
  {
    lie: "a path that climbs, in the content alone",
    twist: ([first, ...rest]) => [{ ...first, path: "../a.txt" }, ...rest],
    says: /'\.\.' part/,
  },
];

describe("content that lies is refused", () => {
  test.each(contentLies)("$lie", async ({ twist, says }) => {
    const { client } = await meet((question) =>
      question.query.has("metadataOnly") ? honestly(truth, question) : twisted(question, twist),
    );
    const problem = await failing(client.fetchFiles(asked, await client.listFiles(asked), true));
    expect(problem.message).toMatch(says);
    expect(problem.code).toBe("invalid_answer");
  });
});

describe("a refusal", () => {
  const rows: [status: number, code: string, exitCode: number, tries: number][] = [
    [400, "invalid_request", 1, 1],
    [401, "unauthorized", 3, 1],
    [403, "plan_required", 3, 1],
    [403, "surface_required", 3, 1],
    [403, "resource_required", 3, 1],
    [403, "environment_not_in_scope", 3, 1],
    [404, "project_not_found", 4, 1],
    [404, "not_found", 4, 1],
    [405, "method_not_allowed", 1, 1],
    [422, "too_many_items", 5, 1],
    [422, "content_too_large", 5, 1],
    [429, "rate_limited", 5, 3],
    [500, "internal_error", 6, 1],
    [503, "decryption_failed", 6, 1],
    [503, "unavailable", 6, 3],
  ];
  test.each(rows)(
    "%d %s is exit code %d, and is retried only if that may help",
    async (status, code, exitCode, tries) => {
      const { client, liar } = await meet(() => refusal(status, code, "A sentence.", { "Retry-After": "2" }), {
        waitMs: 5000,
      });
      const problem = await failing(client.variables(asked));
      expect(problem).toMatchObject({ code, exitCode, requestId: "liar-1" });
      expect(problem.message).toContain(`${code}: A sentence.`);
      expect(liar.questions).toHaveLength(tries);
    },
  );

  test("that is not in Keyhole's format keeps its status and none of its text", async () => {
    const { client } = await meet(() => ({
      status: 502,
      body: "<b>secret</b>",
      headers: { "Content-Type": "text/html" },
    }));
    const problem = await failing(client.variables(asked));
    expect(problem).toMatchObject({ code: "http_502", exitCode: 6 });
    expect(problem.message).not.toContain("secret");
  });

  test("is read no further than 64 KiB", async () => {
    const { client } = await meet(() => ({
      status: 401,
      body: `{"error":"${"x".repeat(70_000)}","code":"unauthorized"}`,
    }));
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

  test("is never shorter than Retry-After, at most a tenth longer, and says why", async () => {
    for (const random of [0, 0.5, 0.999]) {
      const { client, slept, said } = await meet(busyThen(1, { "Retry-After": "3" }), { waitMs: 10_000 }, random);
      expect(await client.variables(asked)).toHaveLength(3);
      expect(slept).toEqual([Math.ceil(3000 * (1 + random / 10))]);
      expect(said[0]).toMatch(
        /^The server answered rate_limited: Wait\. \(request liar-1\) Trying again in 3\.\d s\.$/,
      );
    }
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

  test.each(["soon", "-1", "1.5", "", "Wed, 21 Oct 2099 07:28:00 GMT"])(
    "takes Retry-After: %p for no word",
    async (text) => {
      const { client, slept } = await meet(busyThen(1, { "Retry-After": text }), { waitMs: 10_000 });
      await client.variables(asked);
      expect(slept).toEqual([500]);
    },
  );

  test("continues while the connection is refused, until the time is up", async () => {
    const liar = await startLiar(() => ({}));
    await liar.stop();
    const { client, slept } = meetAt(liar.origin, { waitMs: 2000 });
    expect(await failing(client.variables(asked))).toMatchObject({ code: "unreachable", exitCode: 6 });
    expect(slept).toEqual([500, 1000, 500]);
  });

  test("is pointless for a host that does not exist", async () => {
    // A machine's resolver may look for long until it knows.
    const { client, slept } = meetAt("http://localhost.invalid:1", { waitMs: 2000, timeoutMs: 60_000 });
    expect(await failing(client.variables(asked))).toMatchObject({ code: "unreachable", exitCode: 6 });
    expect(slept).toEqual([]);
  }, 90_000);
});

test("the key is in no error message", async () => {
  const { client } = await meet(() => refusal(401, "unauthorized", "A valid API key is required."));
  const problem = await failing(client.variables(asked));
  expect(Bun.inspect(problem)).not.toContain(key);
  expect(Bun.inspect(client)).not.toContain(key);
  expect(JSON.stringify(client)).not.toContain(key);
});

async function meet(reply: (question: Question) => Reply, api: Partial<Api> = {}, random = 0) {
  const liar = await startLiar(reply);
  liars.push(liar);
  return { liar, ...meetAt(liar.origin, api, random) };
}

/** A client with a clock that moves only when it sleeps, without taking time. */
function meetAt(origin: string, api: Partial<Api> = {}, random = 0) {
  const slept: number[] = [];
  const said: string[] = [];
  let nowMs = 0;
  const clock: Clock = {
    nowMs: () => nowMs,
    sleep: async (durationMs) => {
      slept.push(durationMs);
      nowMs += durationMs;
    },
    random: () => random,
  };
  const settings: Api = {
    root: `${origin}/api/v1`,
    key,
    timeoutMs: 10_000,
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

function twisted(question: Question, twist: (files: Record<string, unknown>[]) => unknown): Reply {
  const body = honestly(truth, question).body as { files: Record<string, unknown>[] };
  return { body: { ...body, files: twist(body.files) } };
}
