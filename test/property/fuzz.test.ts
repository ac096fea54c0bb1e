/**
 * Malformed and unusual requests: 50,000 in process, and others as raw bytes over a socket. No answer is a 5xx or
 * repeats what was sent, and every answer obeys the contract.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { createApp, serveOptions } from "../../src/serve/api/app.ts";
import { answerOf } from "../support/answer.ts";
import { contractProblem, type Dice, diceOf, impatient, type Judged, unlimited } from "../support/attack.ts";
import { canary } from "../support/canary.ts";
import { seed } from "../support/seed.ts";
import { describeBoth, everything, type Key, openWorld, type World } from "../support/world.ts";

/** Part of everything that a caller invents. No answer may contain it. */
const mark = "kHmArK";

describeBoth("an odd request", (w, dialect) => {
  const requests = dialect === "sqlite" ? 50_000 : 1_000;
  test(`is answered according to the contract, and never with a 5xx: ${requests} of them`, async () => {
    const keys = await setUp(w);
    const { handle } = unlimited(w);
    const dice = diceOf(seed);
    const seen = new Map<number, number>();
    for (let round = 0; round < requests; round++) {
      const { request, honest } = oddRequest(dice, keys);
      const shown = `seed ${seed}, round ${round}: ${request.method} ${request.url} ${JSON.stringify([...request.headers])}`;
      const sent = request.headers.get("x-request-id");
      const answer = await answerOf(await handle(request)).catch((error: unknown) => {
        throw new Error(`${shown} made the app throw: ${error}`);
      });
      const { status, headers, text } = answer;
      let problem = contractProblem(answer);
      if (status >= 500) problem ??= `status ${status}`;
      if ((status === 200 || status === 304) && !honest) problem ??= `a ${status} without a key`;
      if (status !== 200 && text.includes(canary)) problem ??= "a value in an error";
      if (echoes(text)) problem ??= "text from the request in the body";
      for (const [name, value] of headers) {
        if (value.includes(mark) && !(name === "x-request-id" && value === sent))
          problem ??= `text from the request in ${name}`;
      }
      if (problem) throw new Error(`${shown} was answered with ${problem}: ${status} ${text.slice(0, 500)}`);
      seen.set(status, (seen.get(status) ?? 0) + 1);
    }
    for (const status of [200, 400, 401, 403, 404, 405]) {
      expect([status, (seen.get(status) ?? 0) > requests / 200]).toEqual([status, true]);
    }
    expect(JSON.stringify(w.log)).not.toContain(canary);
    expect(JSON.stringify(w.log)).not.toContain(keys.wide.key);
  }, 300_000);
});

describe("a server that is sent odd bytes", () => {
  let world: World;
  let keys: Keys;
  let app: ReturnType<typeof createApp>;
  let port: number;
  beforeAll(async () => {
    world = await openWorld("sqlite");
    keys = await setUp(world);
    app = createApp({ ...world.keyhole, gate: { ...world.keyhole.gate, nowUs: impatient() } });
    app.listen({ ...serveOptions(() => {}), hostname: "127.0.0.1", port: 0 });
    port = app.server?.port as number;
  });
  afterAll(async () => {
    await app.server?.stop(true);
    await world.close();
  });

  const root = "/api/v1";
  const values = `${root}/projects/web/variables?environment=production`;
  const authorization = () => `Authorization: Bearer ${keys.wide.key}\r\n`;
  const expectServed = async () => {
    const headers = { authorization: `Bearer ${keys.wide.key}` };
    expect((await fetch(`http://127.0.0.1:${port}${root}/organization`, { headers })).status).toBe(200);
  };

  test("answers what it can, refuses the rest, and serves the next", async () => {
    for (const [what, bytes] of handmade(root, values, keys.wide.key)) {
      for (const answer of await exchange(port, bytes)) {
        expect([what, rawProblem(answer), answer.text.includes(canary)]).toEqual([what, undefined, false]);
        // RateLimit headers would mean that the key was recognized.
        if (what.includes("key")) expect([what, answer.headers.has("ratelimit")]).toEqual([what, false]);
      }
    }
    await expectServed();
  });

  test("obeys the contract for 300 requests with random mutations", async () => {
    const dice = diceOf(seed + 3);
    for (let round = 0; round < 300; round += 20) {
      const batch = Array.from({ length: 20 }, () => mutated(dice, values, keys.wide.key));
      const answers = await Promise.all(batch.map((bytes) => exchange(port, bytes)));
      for (const [at, list] of answers.entries()) {
        const shown = JSON.stringify(batch[at]?.toString("latin1"));
        const about = [seed, round + at, shown];
        expect([...about, ...list.map(rawProblem)]).toEqual([...about, ...list.map(() => undefined)]);
      }
    }
    await expectServed();
  });

  // The runtime closes a connection if a request arrives on it while another is being answered. That is safe.
  test("answers pipelined requests in order, each with its own answer, or not at all", async () => {
    const nothing = `${root}/nothing`;
    const others = values.replace("web", "api");
    for (const order of ["nv", "nno", "vo", "onv"]) {
      const paths = [...order].map((one) => ({ n: nothing, v: values, o: others })[one] as string);
      const bytes = paths.map(
        (path, n) => `GET ${path} HTTP/1.1\r\nHost: x\r\nx-request-id: request-${n}\r\n${authorization()}\r\n`,
      );
      const answers = await exchange(port, Buffer.from(bytes.join("")), paths.length);
      for (const [n, { headers, status, text }] of answers.entries()) {
        expect([headers.get("x-request-id"), status]).toEqual([`request-${n}`, paths[n] === nothing ? 404 : 200]);
        expect(text.includes(`${canary}-web`)).toBe(paths[n] === values);
        expect(text.includes(`${canary}-api`)).toBe(paths[n] === others);
      }
      if (paths[0] === nothing) expect(answers.length).toBe(paths.length);
    }
  });

  test("does not take a body for the next request, nor tell the length of a value to HEAD", async () => {
    const inner = `GET ${values} HTTP/1.1\r\nHost: x\r\n${authorization()}\r\n`;
    const smuggled = `GET ${root}/organization HTTP/1.1\r\nHost: x\r\n${authorization()}Content-Length: ${inner.length}\r\n\r\n${inner}`;
    const chunked = `GET ${root}/organization HTTP/1.1\r\nHost: x\r\n${authorization()}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`;
    for (const bytes of [smuggled, chunked, `${smuggled}${smuggled}`]) {
      const answers = await exchange(port, Buffer.from(bytes), 4); // 4 if both bodies were taken for requests
      expect(answers[0]?.status).toBe(400);
      for (const { text } of answers) expect(text).not.toContain(canary);
    }
    const head = `HEAD ${values} HTTP/1.1\r\nHost: x\r\n${authorization()}\r\n`;
    const [answer] = await exchange(port, Buffer.from(head), 1, "HEAD");
    const [other] = await exchange(port, Buffer.from(head.replace("web", "api")), 1, "HEAD");
    expect(answer?.status).toBe(405);
    expect(answer?.headers.get("content-length")).toBe(other?.headers.get("content-length") ?? "");
  });
});

type Keys = { readonly wide: Key; readonly narrow: Key; readonly free: Key };

async function setUp(world: World): Promise<Keys> {
  const organization = await world.organization();
  const content = (slug: string) => ({
    variables: { production: { NAME: `${canary}-${slug}`, OTHER: canary }, staging: { NAME: canary } },
    accounts: [{ name: "account", environments: ["production"] as const, values: { secret: `${canary}-${slug}` } }],
    files: [{ path: "f.txt", environments: ["production"], content: canary }],
  });
  for (const slug of ["web", "api"]) await world.project(organization, slug, content(slug));
  const free = await world.organization({ plan: "free" });
  return {
    wide: await world.key(organization, everything),
    narrow: await world.key(organization, { projects: ["web"], environments: ["staging"] }),
    free: await world.key(free, everything),
  };
}

// In process.

const oddParts = [
  ...[mark, `${mark}/..`, "..", ".", "", "%", "%zz", "%00", "%2e%2e", "%2F", "%ff%fe", "%F0%9F%94%91", "\\", ";", ":"],
  ...["*", "$where", "'--", '"', "<b>", "{}", "[]", "null", "__proto__", "constructor", "toString", "\u{1F511}"],
  ...["a".repeat(300), "web", "api", "WEB", "web%20", "web%0a", "w%65b", "-", "0", "production", "true", "1", "NAME"],
  ...[`NAME,${mark}`, ",", "metadata_only=true", "access_token", `kh_${"0".repeat(49)}`, "+", "#", "?", "&", "="],
  ...["..%2f..%2fetc%2fpasswd"],
];
const parameters = [
  ...["environment", "keys", "prefix", "metadata_only", "metadataOnly", "format", "project", "path", "access_token"],
  ...["page", "limit", "Environment", "environment[]", "keys[0]", mark, ""],
];
const routes = [
  ...["/organization", "/projects", "/projects/web", "/projects/web/variables", "/projects/web/accounts", "/files"],
  ...["/secrets", "/projects/api/variables", "/projects/web/accounts"],
];
const whole = [
  ...["environment=production", "environment=production&format=env", "metadata_only=true", "environment=staging"],
  ...["project=web&environment=production", "project=api&environment=production&metadataOnly=1"],
];
const oddMethods = ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND", "get", "Get", mark.toUpperCase()];

function oddRequest(dice: Dice, keys: Keys): { readonly request: Request; readonly honest: boolean } {
  const method = dice.chance(0.85) ? "GET" : dice.pick(oddMethods);
  const headers = new Headers();
  const honest = dice.chance(0.6);
  if (honest) headers.set("authorization", `Bearer ${dice.pick([keys.wide, keys.wide, keys.narrow, keys.free]).key}`);
  else if (dice.chance(0.8)) headers.set("authorization", oddAuthorization(dice, keys.wide.key));
  for (const name of dice.some(oddHeaders, 0.1)) headers.set(name, oddHeaderValue(dice));
  if (dice.chance(0.1))
    headers.set("x-request-id", dice.pick([mark, `${mark} x`, "a".repeat(129), "a".repeat(128), "é", "{}"]));
  const url = `http://localhost${oddPath(dice)}${oddQuery(dice)}`;
  const body = method === "POST" || method === "PUT" ? { body: dice.pick(["", mark, `{"${mark}":1}`]) } : {};
  return { request: new Request(url, { method, headers, ...body }), honest };
}

function oddPath(dice: Dice): string {
  const known = `/api/v1${dice.pick(routes)}`;
  if (dice.chance(0.55)) return known;
  const parts = known.split("/");
  const at = 1 + dice.below(parts.length - 1);
  const how = dice.below(4);
  if (how === 3) return `${known}${dice.pick(["/", "//", "/.", ".json", "%00", "%20", ";x", `/${mark}`])}`;
  parts.splice(at, how === 1 ? 0 : 1, ...(how === 2 ? [] : [dice.pick(oddParts)]));
  return `/${parts.slice(1).join("/")}`;
}

function oddQuery(dice: Dice): string {
  if (dice.chance(0.1))
    return dice.pick(["", "?", "?&", "?=", `?${mark}`, "??", "?%", "?+=+", `?${"a=b&".repeat(500)}`]);
  const pairs = dice.chance(0.6) ? dice.pick(whole).split("&") : [];
  for (let left = dice.below(3); left > 0; left--) {
    const name = dice.pick(parameters);
    const pair = dice.chance(0.1) ? name : `${name}=${dice.pick(oddParts)}`;
    pairs.splice(dice.below(pairs.length + 1), 0, pair);
  }
  return pairs.length > 0 ? `?${pairs.join("&")}` : "";
}

function oddAuthorization(dice: Dice, key: string): string {
  return dice.pick([
    ...["", "Bearer", "Bearer ", `Bearer ${mark}`, mark, `Basic ${btoa(`${mark}:${key}`)}`, `Token ${key}`, key],
    ...[`Bearer ${key} ${key}`, `Bearer ${key},Bearer ${key}`, `Bearer ${key};`, `Bearer "${key}"`, `Bearer\t${key}`],
    ...[`Bearer ${key.slice(0, -1)}`, `Bearer ${key}0`, `Bearer ${key.toLowerCase()}`, `bearer=${key}`],
    ...[`Bearer${key}`, `Bearer ${mintKey()}`, `Bearer kh_${"0".repeat(49)}`, `Bearer ${"k".repeat(5000)}`],
    ...[`BearerBearer ${key}`],
  ]);
}

const oddHeaders = [
  ...["content-length", "transfer-encoding", "content-type", "accept", "accept-encoding", "range", "if-none-match"],
  ...["origin", "cookie", "x-forwarded-for", "x-forwarded-host", "x-http-method-override", "x-api-key", "user-agent"],
  ...["expect", "access-control-request-method", "host", "forwarded", "traceparent", mark],
];

function oddHeaderValue(dice: Dice): string {
  return dice.pick([
    ...["0", "1", "-1", "00", "chunked", "gzip", "*/*", "bytes=0-1", "*", `https://${mark}.example`, "GET", "POST"],
    ...[mark, "1.2.3.4", "a".repeat(2000), "caf\u00e9", "text/html", "application/json", `session=${mark}`],
  ]);
}

/** Whether the body repeats text of the request. It may repeat the name of a parameter. */
function echoes(text: string): boolean {
  return text.replace(/^\{"error":"The query parameter '[A-Za-z_][A-Za-z0-9_.-]{0,31}' /, "").includes(mark);
}

// Over a socket.

type RawAnswer = Judged & { readonly complete: boolean };

/**
 * Sends bytes, and reads answers until the server closes the connection or `wanted` answers have arrived. Without
 * `wanted` the server may be waiting for more bytes, which no event tells: then it also ends after a while without one.
 */
function exchange(port: number, bytes: Buffer, wanted = Infinity, method = "GET"): Promise<RawAnswer[]> {
  const { promise, resolve } = Promise.withResolvers<RawAnswer[]>();
  let received = Buffer.alloc(0);
  let quiet: ReturnType<typeof setTimeout> | undefined;
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
  const end = () => {
    clearTimeout(quiet);
    socket.destroy();
    resolve(parseAnswers(received, method));
  };
  const look = (chunk: Buffer = Buffer.alloc(0)) => {
    received = Buffer.concat([received, chunk]);
    clearTimeout(quiet);
    const answers = parseAnswers(received, method);
    const whole = answers.filter(({ complete }) => complete).length;
    if (whole >= wanted) end();
    else if (wanted === Infinity && whole === answers.length) quiet = setTimeout(end, received.length > 0 ? 30 : 250);
  };
  socket.on("data", look).on("error", end).on("close", end);
  look();
  return promise;
}

function parseAnswers(bytes: Buffer, method: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = bytes.toString("latin1");
  while (rest !== "") {
    const match = /^HTTP\/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest);
    if (!match) return [...answers, { status: 0, headers: new Headers(), text: rest, complete: false }];
    const headers = new Headers();
    for (const line of (match[2] as string).split("\r\n").filter(Boolean)) {
      headers.append(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim());
    }
    const length = method === "HEAD" ? 0 : Number(headers.get("content-length") ?? 0);
    const from = match[0].length;
    const text = Buffer.from(rest.slice(from, from + length), "latin1").toString("utf8");
    answers.push({ status: Number(match[1]), headers, text, complete: rest.length >= from + length });
    rest = rest.slice(from + length);
  }
  return answers;
}

/** What is wrong with an answer. The runtime's own errors have no body; everything else must obey the contract. */
function rawProblem({ status, headers, text }: RawAnswer): string | undefined {
  if ([400, 413, 431, 505].includes(status) && text === "" && !headers.has("content-type")) return undefined;
  if (status === 100) return undefined;
  const problem = contractProblem({ status, headers, text });
  if (problem) return problem;
  if (status >= 500) return `status ${status}`;
  if (echoes(text)) return "text from the request in the body";
  for (const [name, value] of headers) {
    if (value.includes(mark) && name !== "x-request-id") return `text from the request in ${name}`;
  }
  return undefined;
}

function handmade(root: string, values: string, key: string): [what: string, bytes: Buffer][] {
  const bearer = `Authorization: Bearer ${key}\r\n`;
  const plain = `GET ${values} HTTP/1.1\r\nHost: x\r\n`;
  const rows: [string, string][] = [
    ["no key", `${plain}\r\n`],
    ["two keys", `${plain}${bearer}${bearer}\r\n`],
    ["two key fields, one of them empty", `${plain}Authorization: \r\n${bearer}\r\n`],
    ["a folded key", `${plain}Authorization: Bearer\r\n ${key}\r\n\r\n`],
    ["a tab before the key", `${plain}Authorization: Bearer\t${key}\r\n\r\n`],
    ["a space before the colon of the key", `${plain}Authorization : Bearer ${key}\r\n\r\n`],
    ["a NUL in the key", `${plain}Authorization: Bearer ${key}\0\r\n\r\n`],
    ["a key in the query", `GET ${values}&access_token=${key} HTTP/1.1\r\nHost: x\r\n\r\n`],
    ["a key in a cookie", `${plain}Cookie: access_token=${key}\r\nProxy-Authorization: Bearer ${key}\r\n\r\n`],
    ["a key in the host", `GET ${values} HTTP/1.1\r\nHost: Bearer:${key}@x\r\n\r\n`],
    ["a path in the host", `GET /x HTTP/1.1\r\nHost: x${values}&\r\n${bearer}\r\n`],
    ["a space in the host", `GET ${values} HTTP/1.1\r\nHost: a b\r\n${bearer}\r\n`],
    ["no host", `GET ${values} HTTP/1.1\r\n${bearer}\r\n`],
    ["two hosts", `GET ${root}/nothing HTTP/1.1\r\nHost: a\r\nHost: b\r\n${bearer}\r\n`],
    ["HTTP/1.0 without a host", `GET ${values} HTTP/1.0\r\n${bearer}\r\n`],
    ["HTTP/0.9", `GET ${values}\r\n`],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ["nothing but line ends", "\r\n\r\n\r\n"],
    ["bare LF", `GET ${values} HTTP/1.1\nHost: x\n${bearer.trim()}\n\n`],
    ["a fragment", `GET ${values}#${mark} HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`],
    ["length and chunks", `${plain}${bearer}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["two lengths", `${plain}${bearer}Content-Length: 0\r\nContent-Length: 5\r\n\r\nabcde`],
    ["a signed length", `${plain}${bearer}Content-Length: +0\r\n\r\n`],
    ["a long field", `${plain}X: ${"a".repeat(20_000)}\r\n${bearer}\r\n`],
    ["a long path", `GET ${root}/projects/${"a".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`],
    ["many fields", `${plain}${"X: y\r\n".repeat(500)}${bearer}\r\n`],
    ["a body", `POST ${values} HTTP/1.1\r\nHost: x\r\n${bearer}Content-Length: 3\r\n\r\nabc`],
    ["a body too large", `POST ${values} HTTP/1.1\r\nHost: x\r\n${bearer}Content-Length: 999999\r\n\r\n`],
    ["asterisk form", `OPTIONS * HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`],
    ["authority form", `CONNECT x:443 HTTP/1.1\r\nHost: x\r\n${bearer}\r\n`],
    ["a trace", `TRACE ${values} HTTP/1.1\r\nHost: x\r\n${bearer}X: ${mark}\r\n\r\n`],
  ];
  return rows.map(([what, text]) => [what, Buffer.from(text, "latin1")]);
}

/** A valid request with some lines and bytes changed, repeated or removed. */
function mutated(dice: Dice, values: string, key: string): Buffer {
  const lines = [`GET ${values} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${key}`, `User-Agent: ${mark}`];
  lines.push("", "");
  for (let left = dice.below(3); left > 0; left--) {
    const at = dice.below(lines.length - 1);
    if (dice.chance(0.3)) lines.splice(at, 0, lines[dice.below(lines.length - 1)] as string);
    else if (dice.chance(0.5)) lines.splice(at, 1);
    else lines[at] = `${lines[at]}${dice.pick([" ", "\t", ",", ";", "\0", "\x7f", "\xff", "%", `?${mark}`, "\r"])}`;
  }
  const bytes = Buffer.from(lines.join("\r\n"), "latin1");
  for (let left = dice.below(4); left > 0 && bytes.length > 0; left--) {
    bytes[dice.below(bytes.length)] = dice.chance(0.5) ? dice.below(256) : dice.pick([...Buffer.from("\0\t\n\r %/:?")]);
  }
  return bytes;
}
