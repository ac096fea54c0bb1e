/**
 * What Keyhole connects to, one after the other, in an environment that people make for other programs: it turns off the
 * check of certificates, and prints every request.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { guardedFetch } from "../../src/core/guarded-fetch.ts";
import { type Fetch, requestJson, whyNoReply } from "../../src/core/json-request.ts";
import { encodeVerifier, encodeWitness, signerOf, witnessOf } from "../../src/record/note.ts";
import { redisBuckets } from "../../src/serve/process/redis-buckets.ts";
import { startTraces } from "../../src/serve/process/traces.ts";
import { makeBadCertificates, makeCertificates } from "../support/certificates.ts";
import { newFolder } from "../support/folder.ts";
import { audience, compact, newSigningKey, usualClaims } from "../support/issuer.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { remote } from "../support/outgoing.ts";
import { freePort } from "../support/port.ts";
import { run, startProgram } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";
import { type Server, siteOf } from "../support/server.ts";

const blind = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
const verbose = { BUN_CONFIG_VERBOSE_FETCH: "curl" };
const key = `kh_${"k".repeat(49)}`;
const token = "aaa.bbb.ccc";
const witnessKey = encodeWitness(witnessOf("stranger", new Uint8Array(32).fill(7)));
const where = { KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "production" };

/** A server that takes whatever comes, and keeps what it heard. */
async function startListener(tls?: { readonly cert: string; readonly key: string }) {
  let heard = "";
  let opened = 0;
  const hear = (socket: Socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      heard += bytes.toString("latin1");
      socket.end("HTTP/1.1 404 No\r\n\r\n");
    });
  };
  const server = tls === undefined ? createServer(hear) : createTlsServer(tls, hear);
  server.on("connection", () => {
    opened += 1;
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = () => void server.close();
  return { at: `127.0.0.1:${port}`, heard: () => heard, opened: () => opened, [Symbol.dispose]: stop };
}

/** How a connection is made to this origin. What it prints comes back. */
type Way = (origin: string, env: Readonly<Record<string, string>>) => Promise<string>;

const printed = ({ exitCode, stdout, stderr }: Awaited<ReturnType<typeof run>>) => {
  expect(exitCode).not.toBe(0);
  return stdout + stderr;
};
const site = siteOf("sqlite", { production: { A: "b" } });
const machine = (env: Readonly<Record<string, string>>) =>
  runBinary(["pull"], { cwd: site.folder, env: { ...where, ...env } }).then(printed);
const program = (text: string, env: Readonly<Record<string, string>>) =>
  run([process.execPath, "--no-env-file", "--eval", text], { cwd: join(import.meta.dir, "../.."), env });

/** By HTTP, in a process of its own: who asks, and what must not be printed. */
const asking: Readonly<Record<string, readonly [way: Way, secret: string | undefined]>> = {
  server: [(origin, env) => machine({ ...env, KEYHOLE_URL: origin, KEYHOLE_API_KEY: key }), key],
  "server, by the npm package": [
    async (origin, env) => {
      const client = 'const { createClient } = await import("./src/client/npm/client.ts");';
      const ask = `await createClient({ url: "${origin}", apiKey: "${key}", waitMs: 0 }).organization();`;
      return printed(await program(`${client} await (async () => { ${ask} })().catch(() => process.exit(1));`, env));
    },
    key,
  ],
  "giver of tokens": [
    (origin, env) => {
      const job = { ACTIONS_ID_TOKEN_REQUEST_URL: origin, ACTIONS_ID_TOKEN_REQUEST_TOKEN: "bearer-of-the-runner" };
      return machine({ ...env, ...job, KEYHOLE_OIDC: "github", KEYHOLE_URL: "http://127.0.0.1:1" });
    },
    "bearer-of-the-runner",
  ],
  issuer: [
    async (origin, env) => {
      const terms = [
        "--org",
        "acme",
        "--name",
        "job",
        "--issuer",
        origin,
        "--audience",
        audience,
        "--claim",
        "sub=job",
      ];
      const added = await site.here(["trust", "add", ...terms, "--project", "web", "--env", "staging"]);
      const stdin = compact({ alg: "ES256", kid: "one", typ: "JWT" }, usualClaims(origin), newSigningKey("ES256"));
      const options = { cwd: site.folder, env: { ...site.env, ...env }, stdin };
      return printed(await runBinary(["trust", "test", added.stdout.trim()], options));
    },
    undefined,
  ],
  witness: [
    async (origin, env) => {
      const own = { ...site.env, ...env, KEYHOLE_WITNESS: `${origin}#${witnessKey}` };
      const { stdout, stderr } = await runBinary(["audit", "verify"], { cwd: site.folder, env: own });
      return stdout + stderr;
    },
    undefined,
  ],
};
/** Not here: `blackbox/postgres-url` has the database, and below is what servers connect to. */
const elsewhere = ["database", "identity provider", "limits", "traces"];

withPrograms(["openssl"], "a connection", (openssl) => {
  let stranger: { cert: string; key: string };
  beforeAll(() => {
    const folder = newFolder();
    makeCertificates(openssl ?? "", folder, "IP:127.0.0.1");
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    stranger = { cert: read("keyhole.crt"), key: read("keyhole.key") };
  });

  test("is tried here, or is one of four that are tried elsewhere", () => {
    expect([...Object.keys(asking), ...elsewhere].sort()).toEqual(Object.keys(remote).sort());
  });

  test.each(Object.entries(asking))("to a %s takes no stranger's certificate", async (_, [way]) => {
    using listener = await startListener(stranger);
    await way(`https://${listener.at}`, { ...blind });
    expect(listener.opened()).toBeGreaterThan(0);
    expect(listener.heard()).toBe("");
  });

  test.each(Object.entries(asking))("to a %s prints no request", async (_, [way, secret]) => {
    using listener = await startListener();
    const said = await way(`http://${listener.at}`, { ...verbose });
    expect(listener.heard()).toContain(secret ?? "HTTP/1.1");
    if (secret !== undefined) expect(said).not.toContain(secret);
    expect(said).not.toMatch(/curl --http|^[<>] |^ ?HTTP\/1\.1 [A-Z]/m);
  });

  test("with a job's token prints no token", async () => {
    using listener = await startListener();
    const env = { KEYHOLE_OIDC: "env:JOB", JOB: token, KEYHOLE_URL: `http://${listener.at}` };
    const said = await machine({ ...verbose, ...env });
    expect(listener.heard()).toContain(`Bearer ${token}`);
    expect(said).not.toContain(token);
  });

  describe("of a server to", () => {
    const before = process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
    beforeAll(() => {
      process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0";
    });
    afterAll(() => {
      if (before === undefined) delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];
      else process.env["NODE_TLS_REJECT_UNAUTHORIZED"] = before;
    });

    test("its store for limits takes no stranger's certificate, and says what is wrong with it", async () => {
      using listener = await startListener(stranger);
      const buckets = redisBuckets(`rediss://user:not-a-secret@${listener.at}`);
      const failed = await buckets.connect().catch((error: unknown) => error);
      expect(failed).toMatchObject({ code: "UNABLE_TO_VERIFY_LEAF_SIGNATURE" });
      buckets.close();
      expect(listener.heard()).toBe("");
    });

    test("its collector of traces takes no stranger's certificate", async () => {
      using listener = await startListener(stranger);
      const traces = startTraces(`https://${listener.at}`, "0.0.0");
      const request = { route: "/x", startedAtMs: 0, stages: undefined, traceparent: null };
      traces.trace(request as never, 200, undefined, 1);
      await traces.close();
      expect(listener.opened()).toBeGreaterThan(0);
      expect(listener.heard()).toBe("");
    });
  });

  test("fails with what is wrong with the certificate, and with no other cause", async () => {
    const folder = newFolder();
    makeBadCertificates(openssl ?? "", folder);
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    const ca = read("root.crt");
    const said: string[] = [];
    for (const name of ["cut", "old", "young", "other"]) {
      using server = await startListener({ cert: read(`${name}.crt`), key: read("leaf.key") });
      const ask: Fetch = (url, init) => guardedFetch(url, { ...init, tls: { ca } });
      const request = { headers: {}, timeoutMs: 10_000, bytesMax: 1, fetch: ask };
      const reply = await requestJson(`https://localhost:${server.at.split(":")[1]}`, request);
      if (!("failed" in reply)) throw new Error(`${name} is trusted`);
      said.push(whyNoReply(reply, 10_000));
    }
    const unknown = "from an unknown authority (NODE_EXTRA_CA_CERTS may name a file with yours)";
    expect(said.map((words) => words.replace("cannot be reached: its certificate ", ""))).toEqual([
      `comes without the intermediate certificates of its chain, or ${unknown}`,
      "has expired, or this machine's clock is ahead",
      "is not valid yet, or this machine's clock is behind",
      "belongs to another host",
    ]);
  });

  test("of a server to its collector of traces prints no header", async () => {
    using listener = await startListener();
    const headers = { OTEL_EXPORTER_OTLP_HEADERS: "authorization=of-the-collector" };
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://${listener.at}` };
    const server: Server = await site.serve({ env: { ...verbose, ...headers, ...endpoint } });
    await server.get("/organization", key);
    await server.stop();
    expect(listener.heard()).toContain("of-the-collector");
    expect(Object.values(server.said()).join("")).not.toContain("of-the-collector");
  });

  test("of the dashboard to its identity provider prints no secret", async () => {
    const port = freePort();
    const heard: string[] = [];
    using provider = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        const { pathname, origin: issuer } = new URL(request.url);
        heard.push(request.headers.get("authorization") ?? "");
        if (!pathname.startsWith("/.well-known")) return Response.json({ error: "invalid_grant" }, { status: 400 });
        const at = (path: string) => `${issuer}/${path}`;
        const endpoints = {
          authorization_endpoint: at("authorize"),
          token_endpoint: at("token"),
          jwks_uri: at("jwks"),
        };
        return Response.json({ issuer, ...endpoints, response_types_supported: ["code"] });
      },
    });
    const origin = `http://localhost:${port}`;
    const words = ["--origin", origin, "--issuer", `http://127.0.0.1:${provider.port}`, "--client-id", "keyhole"];
    const env = { ...site.env, ...verbose, KEYHOLE_CLIENT_SECRET: "secretoftheclient" };
    const command = [binary, "dashboard", ...words, "--port", String(port)];
    const dashboard = startProgram(command, { cwd: site.folder, env });
    try {
      await dashboard.says("Serving");
      const ask = (path: string, cookie = "") =>
        fetch(origin + path, { redirect: "manual", headers: { cookie, "sec-fetch-mode": "navigate" } });
      const begun = await ask("/sign-in");
      const state = new URL(begun.headers.get("location") ?? "").searchParams.get("state");
      const cookie = (begun.headers.get("set-cookie") ?? "").split(";")[0];
      await ask(`/signed-in?code=code-of-the-sign-in&state=${state}`, cookie);
    } finally {
      await dashboard.stop();
    }
    expect(heard.at(-1)).toBe(`Basic ${btoa("keyhole:secretoftheclient")}`);
    const said = Object.values(dashboard.said()).join("");
    for (const secret of [heard.at(-1) ?? "", "secretoftheclient", "code-of-the-sign-in", "code_verifier"]) {
      expect(said).not.toContain(secret);
    }
  });
});

test.each([
  "serve --port 0",
  "notary",
  `witness --port 0 --folder w --log ${encodeVerifier(signerOf("keyhole/0123456789abcdef", new Uint8Array(32)))}`,
  "dashboard --port 0",
  "door --person ana",
])("%s does not start if any certificate would do, and says why", async (line) => {
  const env = { ...site.env, ...blind, KEYHOLE_LIMITER_URL: "rediss://u:not-a-secret@127.0.0.1:1" };
  const { exitCode, stdout, stderr } = await runBinary(line.split(" "), { cwd: site.folder, env });
  expect([exitCode, stdout]).toEqual([2, ""]);
  expect(stderr).toStartWith("keyhole: NODE_TLS_REJECT_UNAUTHORIZED is 0, ");
});

describe("what a job sets for its own Bun programs", () => {
  test.each([
    ["run", 125, ["run", "--", "true"]],
    ["pull", 2, ["pull"]],
    ["serve", 2, ["serve", "--port", "0"]],
    ["org", 2, ["org", "list"]],
  ])("stops keyhole %s with its name, and what to do", async (_, code, words) => {
    const env = {
      ...site.env,
      ...where,
      KEYHOLE_URL: "http://127.0.0.1:1",
      KEYHOLE_API_KEY: key,
      BUN_OPTIONS: "--smol",
    };
    const { exitCode, stdout, stderr } = await runBinary(words, { cwd: site.folder, env });
    expect([exitCode, stdout]).toEqual([code, ""]);
    expect(stderr).toStartWith("keyhole: BUN_OPTIONS is set, ");
    expect(stderr).toContain("env -u BUN_OPTIONS");
  });

  test.each(["BUN_INSPECT", "BUN_INSPECT_CONNECT_TO", "BUN_INSPECT_PRELOAD"])(
    "stops a server with %s",
    async (name) => {
      const env = { ...site.env, ...where, [name]: "unix:///nowhere/a.sock" };
      const { exitCode, stdout, stderr } = await runBinary(["serve", "--port", "0"], { cwd: site.folder, env });
      expect([exitCode, stdout]).toEqual([2, ""]);
      expect(stderr).toContain(`keyhole: ${name} is set, `);
    },
  );
});
