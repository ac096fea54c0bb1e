import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readApi } from "../../src/cli/machine.ts";
import { signed } from "../../src/client/aws-token.ts";
import { Client } from "../../src/client/client.ts";
import { tokensOf } from "../../src/client/token-giver.ts";
import { attempt } from "../../src/core/attempt.ts";
import { errorOf, secrets, startClouds } from "../support/clouds.ts";
import { contextOf } from "../support/context.ts";
import { eventually } from "../support/eventually.ts";
import { failing } from "../support/failing.ts";
import { newFolder } from "../support/folder.ts";
import { honestly, liarStarter, type Reply, type Truth } from "../support/liar.ts";

const folder = newFolder();
const startLiar = liarStarter();
const truth: Truth = { project: "web", environment: "production", variables: { A: "one" }, files: [] };
const webToken = join(folder, "web");
writeFileSync(webToken, `${secrets.web}\n`);

/** What the client would send to this server, with these settings. */
async function given(env: Record<string, string>, timeout = 10_000) {
  const whole = { KEYHOLE_URL: "https://keyhole.example.com", ...env };
  const { credential } = await readApi(contextOf({ env: whole }), { timeout });
  return credential();
}

/** What each source is asked by, at an origin of this machine. */
const at: Record<string, (origin: string) => Record<string, string>> = {
  gcp: (origin) => ({ KEYHOLE_OIDC: "gcp", GCE_METADATA_HOST: new URL(origin).host }),
  azure: (origin) => ({ KEYHOLE_OIDC: "azure", AZURE_POD_IDENTITY_AUTHORITY_HOST: origin }),
  "aws's instance": (origin) => ({ KEYHOLE_OIDC: "aws", AWS_EC2_METADATA_SERVICE_ENDPOINT: origin }),
  "aws's container": (origin) => ({
    KEYHOLE_OIDC: "aws",
    AWS_REGION: "eu-central-1",
    AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/v2/credentials/1`,
  }),
  "aws's STS": (origin) => ({
    KEYHOLE_OIDC: "aws",
    AWS_REGION: "eu-central-1",
    AWS_ACCESS_KEY_ID: secrets.id,
    AWS_SECRET_ACCESS_KEY: secrets.secret,
    AWS_SESSION_TOKEN: secrets.session,
    AWS_ENDPOINT_URL_STS: origin,
  }),
};

describe("a token", () => {
  const kinds = ["gcp", "azure", "aws", "aws in a container", "aws in Lambda", "aws by web identity"] as const;
  test.each(kinds)("of %s is for the server, or for the audience that is named", async (kind) => {
    const audiences: string[] = [];
    await using clouds = startClouds((audience) => {
      audiences.push(audience);
      return "a.b.c";
    });
    const [source = ""] = kind.split(" ");
    const env = { ...clouds.env[kind], AWS_WEB_IDENTITY_TOKEN_FILE: webToken };
    expect(await given({ ...env, KEYHOLE_OIDC: source })).toBe("a.b.c");
    expect(await given({ ...env, KEYHOLE_OIDC: `${source}:api://keyhole` })).toBe("a.b.c");
    expect(audiences).toEqual(["https://keyhole.example.com", "api://keyhole"]);
  });

  test("of one of a machine's identities at Azure is asked for by AZURE_CLIENT_ID", async () => {
    await using clouds = startClouds();
    const path = "/metadata/identity/oauth2/token";
    const asked: (string | null)[] = [];
    clouds.answers.set(path, ({ url }) => {
      asked.push(new URL(url).searchParams.get("client_id"));
      return Response.json({ access_token: "a.b.c" });
    });
    await given({ ...clouds.env.azure, KEYHOLE_OIDC: "azure", AZURE_CLIENT_ID: "of-web" });
    expect(asked).toEqual(["of-web"]);
  });

  test("is asked for again near its end, and not before", async () => {
    let asked = 0;
    const nowS = Math.floor(Date.now() / 1000);
    const endingAt = (exp: number) => `a.${Buffer.from(JSON.stringify({ exp })).toString("base64url")}.${asked++}`;
    const long = tokensOf(async () => endingAt(nowS + 3600));
    expect(await long()).toBe(await long());
    const short = tokensOf(async () => endingAt(nowS));
    expect(await short()).not.toBe(await short());
    expect(asked).toBe(3);
  });
});

describe("a source that gives no token yet", () => {
  const once = join(folder, "once");
  const script = `if test -e '${once}'; then echo a.b.c; else touch '${once}'; exit 1; fi`;
  const sources: [source: string, path: string, waits: number[]][] = [
    ["gcp", "/computeMetadata/v1/instance/service-accounts/default/identity", [500, 2000]],
    ["azure", "/metadata/identity/oauth2/token", [500, 2000]],
    ["aws", "/latest/api/token", [500, 2000]],
    ["aws", "/latest/meta-data/iam/security-credentials/web", [500, 2000]],
    ["aws in a container", "/v2/credentials/1", [500, 2000]],
    ["aws in Lambda", "/", [500, 2000]],
    [`command:${JSON.stringify(["sh", "-c", script])}`, "", [500]],
  ];

  test.each(sources)("is asked again within --wait: %s, %s", async (source, path, waits) => {
    await using clouds = startClouds();
    const refusals = [
      new Response("", { status: 503 }),
      new Response("", { status: 429, headers: { "Retry-After": "2" } }),
    ];
    clouds.answers.set(path, () => refusals.shift());
    const server = await startLiar((question) => honestly(truth, question));
    const kind = source as keyof typeof clouds.env;
    const setting = source.startsWith("command") ? source : source.split(" ")[0];
    const env = { ...clouds.env[kind], KEYHOLE_OIDC: setting, KEYHOLE_URL: server.origin, PATH: "/usr/bin:/bin" };
    const pauses: number[] = [];
    const sleep = async (ms: number) => void pauses.push(ms);
    const clock = { nowMs: () => pauses.reduce((sum, ms) => sum + ms, 0), dateMs: () => 0, sleep, random: () => 0 };
    const said: string[] = [];
    const say = (line: string) => said.push(line);
    const api = await readApi(contextOf({ env: env as Record<string, string> }), { wait: 20_000 });
    const read = await new Client({ ...api, say }, clock).variables({ project: "web", environment: "production" });
    expect(read).toMatchObject([{ name: "A", value: "one" }]);
    expect([pauses, server.questions.map(({ headers }) => headers.get("authorization"))]).toEqual([
      waits,
      ["Bearer a.b.c"],
    ]);
    expect(said.join("")).toContain("gave no token");
    for (const secret of Object.values(secrets)) expect(said.join("")).not.toContain(secret);
  });
});

// https://docs.aws.amazon.com/general/latest/gr/signature-v4-test-suite.html
describe("a request to AWS STS", () => {
  const session =
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";
  const form = { "content-type": "application/x-www-form-urlencoded" };
  const vectors: [
    name: string,
    headers: Record<string, string>,
    body: string,
    session: string | undefined,
    is: string,
  ][] = [
    ["post-vanilla", {}, "", undefined, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
    [
      "post-x-www-form-urlencoded",
      form,
      "Param1=value1",
      undefined,
      "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
    ],
    ["post-sts-header-before", {}, "", session, "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"],
  ];
  test.each(vectors)("signs as AWS has published: %s", (_, headers, body, session, signature) => {
    const keys = { id: "AKIDEXAMPLE", secret: secrets.secret, session };
    const how = { region: "us-east-1", service: "service", now: new Date("2015-08-30T12:36:00Z") };
    const all = signed({ host: "example.amazonaws.com", ...headers }, body, keys, how);
    const names = Object.keys(all).filter((name) => name !== "authorization");
    expect(all["authorization"]).toBe(
      `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=${names.sort().join(";")}, Signature=${signature}`,
    );
  });

  test("with credentials of a container, which are asked for on no other host", async () => {
    for (const url of ["http://10.0.0.1/", "https://127.0.0.1/", "http://169.254.170.2@evil.example/", "x"]) {
      const env = { KEYHOLE_OIDC: "aws", AWS_REGION: "eu-central-1", AWS_CONTAINER_CREDENTIALS_FULL_URI: url };
      expect((await failing(given(env))).message).toContain("must be http to a link-local address");
    }
    const relative = { AWS_CONTAINER_CREDENTIALS_RELATIVE_URI: "@evil.example/" };
    const problem = await failing(given({ KEYHOLE_OIDC: "aws", AWS_REGION: "eu-central-1", ...relative }));
    expect(problem.message).toContain("must be http to a link-local address");
  });

  test("is not sent for a region that is none", async () => {
    const env = { ...at["aws's STS"]?.("http://127.0.0.1:1"), AWS_REGION: "evil.example/x" };
    expect(await given(env)).toMatchObject({
      failure: { message: expect.stringContaining('"evil.example/x" is none') },
    });
  });
});

describe("an endpoint that gives no token", () => {
  const big = new TextEncoder().encode("x".repeat(64 * 1024));
  const replies: [what: string, reply: Reply, says: RegExp, passes: boolean | "of metadata"][] = [
    ["503", { status: 503 }, /it answered 503\./, true],
    ["throttling", { status: 429, headers: { "Retry-After": "2" } }, /it answered 429\./, true],
    ["404 before there is an identity", { status: 404 }, /it answered 404\./, "of metadata"],
    ["401", { status: 401 }, /it answered 401\./, false],
    ["a connection that breaks", { raw: "" }, /the connection broke/, true],
    ["garbage", { body: "\u0000<html>no" }, /its answer has none\./, false],
    ["an empty answer", { body: "" }, /its answer has none\./, false],
    ["10 MiB", { endless: big }, /its answer has none\./, false],
    ["silence", { silent: true }, /did not answer within 0\.2 s/, true],
    ["a byte at a time", { drip: "H" }, /did not answer within 0\.2 s/, true],
  ];
  for (const [source, envAt] of Object.entries(at)) {
    test.each(replies)(`of ${source} says so in a sentence: %s`, async (_, reply, says, passes) => {
      const liar = await startLiar(() => reply);
      const isSlow = reply.silent || reply.drip !== undefined;
      const outcome = await given(envAt(liar.origin), isSlow ? 200 : 10_000);
      expect(outcome).toHaveProperty("failure.code", "unavailable");
      const { failure } = outcome as { failure: { message: string; isTokenAwaited?: true; retryAfter?: number } };
      expect(failure.message).toMatch(says);
      const isAwaited = passes === "of metadata" ? !/STS|container/.test(source) : passes;
      expect(failure.isTokenAwaited ?? false).toBe(isAwaited);
      if (reply.status === 429) expect(failure.retryAfter).toBe(2);
      for (const secret of Object.values(secrets)) expect(failure.message).not.toContain(secret);
      expect(liar.questions).toHaveLength(1);
      expect(liar.endlessBytes()).toBeLessThan(10 * 1024 * 1024);
    });

    test(`of ${source} is not followed elsewhere`, async () => {
      const other = await startLiar(() => ({ body: "a.b.c" }));
      const liar = await startLiar(() => ({ status: 307, headers: { Location: other.origin } }));
      const message = expect.stringContaining("it answered 307.");
      expect(await given(envAt(liar.origin))).toMatchObject({ failure: { message } });
      expect(other.questions).toHaveLength(0);
    });
  }

  test("names the hop limit if the instance's metadata is silent, as it is in a container", async () => {
    const liar = await startLiar(() => ({ silent: true }));
    const outcome = await given(at["aws's instance"]?.(liar.origin) ?? {}, 200);
    const message = expect.stringContaining("http-put-response-hop-limit must be 2");
    expect(outcome).toMatchObject({ failure: { message } });
  });

  test("gets no second question without the session that it gave", async () => {
    await using clouds = startClouds();
    clouds.answers.set("/latest/api/token", () => new Response("no", { status: 403 }));
    expect(await given({ ...clouds.env.aws, KEYHOLE_OIDC: "aws" })).toMatchObject({ failure: { code: "unavailable" } });
    expect(clouds.asked).toEqual(["PUT /latest/api/token"]);
  });

  test.each([
    ["AccessDenied", 403, "AccessDenied). The role needs the permission sts:GetWebIdentityToken", false],
    ["Throttling", 400, "it answered 400 (Throttling).", true],
    ["ExpiredToken", 403, "it answered 403 (ExpiredToken).", true],
    ["OutboundWebIdentityFederationDisabled", 403, "(OutboundWebIdentityFederationDisabled).", false],
    ["x y", 400, "it answered 400.", false],
  ])("of AWS STS is quoted by its code alone: %s", async (code, status, says, passes) => {
    await using clouds = startClouds();
    clouds.answers.set("/", () => new Response(errorOf(code), { status }));
    const outcome = await given({ ...clouds.env["aws in Lambda"], KEYHOLE_OIDC: "aws" });
    expect(outcome).toMatchObject({ failure: { message: expect.stringContaining(says) } });
    expect("isTokenAwaited" in (outcome as { failure: object }).failure).toBe(passes);
  });
});

describe("a program", () => {
  const program = (...argv: string[]) => ({ KEYHOLE_OIDC: `command:${JSON.stringify(argv)}`, PATH: "/usr/bin:/bin" });
  const printing = (text: string) => program("printf", "%s", text);

  test("gives what it prints, with its arguments as they are and without Keyhole's settings", async () => {
    expect(await given(printing("a.b.c\n"))).toBe("a.b.c");
    expect(await given(program("printf", "$HOME.b.c"))).toMatchObject({ failure: {} });
    const env = { ...program("sh", "-c", "echo a.b.$(printenv KEYHOLE_URL || echo unset)"), KEYHOLE_PROJECT: "web" };
    expect(await given(env)).toBe("a.b.unset");
  });

  test("ends, and all that it started", async () => {
    const file = join(folder, "pid");
    const started = await given(program("sh", "-c", `sleep 600 & echo $! > '${file}'; wait`), 1000);
    expect(started).toMatchObject({ failure: { message: expect.stringContaining("within 1 s.") } });
    const pid = readFileSync(file, "utf8").trim();
    const isRunning = () => attempt(() => readFileSync(`/proc/${pid}/stat`, "utf8").split(" ")[2] !== "Z") ?? false;
    expect(pid).toMatch(/^\d+$/);
    await eventually(() => !isRunning());
  });

  test.each([
    ["prints something else", printing("hunter2"), "what it printed is none.", false],
    ["prints nothing", program("true"), "what it printed is none.", false],
    ["prints too much", program("head", "-c", "100000", "/dev/zero"), "", false],
    ["fails", program("sh", "-c", "echo a.b.c; exit 7"), "it ended with 7.", true],
    ["is not there", program("no-such-program"), "it cannot be started.", false],
    ["does not end", program("sleep", "600"), "it did not end within 0.2 s.", true],
    ["leaves another that does not end", program("sh", "-c", "sleep 600 & echo a.b.c"), "within 0.2 s.", true],
  ])("a program that %s gives no token", async (what, env, says, passes) => {
    const outcome = await given(env, /not end/.test(what) ? 200 : 10_000);
    expect(outcome).toHaveProperty("failure.code", "unavailable");
    const { failure } = outcome as { failure: { message: string } };
    expect(failure.message).toStartWith(
      `The program ${JSON.stringify(JSON.parse(env.KEYHOLE_OIDC.slice(8))[0])} of KEYHOLE_OIDC`,
    );
    expect(failure.message).toContain(says);
    expect(failure.message).not.toContain("hunter2");
    if (what !== "prints too much") expect("isTokenAwaited" in failure).toBe(passes);
  });
});
