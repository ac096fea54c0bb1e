import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import Provider from "oidc-provider";
import { eventually } from "../support/eventually.ts";
import { audience, compact, newSigningKey, publicJwk, startRunner, usualClaims } from "../support/issuer.ts";
import { runBinary } from "../support/keyhole.ts";
import { onBoth, type Server, serverOf, siteOf } from "../support/server.ts";

/** OpenID Connect as others wrote it: a certified provider, which gives its client `job` tokens. */
async function startProvider() {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const key = newSigningKey("RS256").privateKey.export({ format: "jwk" });
  const jwt = { accessTokenFormat: "jwt", accessTokenTTL: 300 } as const;
  const api = (_: unknown, resource: string) => ({ scope: "", audience: resource, ...jwt });
  const provider = new Provider(url, {
    jwks: { keys: [{ ...key, kid: "provider", alg: "RS256", use: "sig" }] },
    clients: [
      {
        client_id: "job",
        client_secret: "secret of the job",
        grant_types: ["client_credentials"],
        redirect_uris: [],
        response_types: [],
        token_endpoint_auth_method: "client_secret_post",
      },
    ],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: api },
    },
    extraTokenClaims: () => ({ run_id: "4711" }),
  });
  server.on("request", provider.callback());
  const token = async (resource = audience): Promise<string> => {
    const asked = { grant_type: "client_credentials", client_id: "job", client_secret: "secret of the job", resource };
    const response = await fetch(`${url}/token`, { method: "POST", body: new URLSearchParams(asked) });
    return ((await response.json()) as { access_token: string }).access_token;
  };
  return { url, token, stop: () => server.close() };
}

describe("a job that a stranger's change can start", () => {
  const site = siteOf("sqlite", { production: { API_TOKEN: "value of the token" } });
  const server = serverOf(site);
  const key = newSigningKey("ES256");

  test.each([
    ["https://token.actions.githubusercontent.com", "repository_id", "event_name", "pull_request_target"],
    ["https://gitlab.com", "project_id", "pipeline_source", "merge_request_event"],
    ["https://agent.buildkite.com", "organization_id", "build_branch", "thief:main"],
    [
      ...["https://oidc.circleci.com/org/1", "oidc.circleci.com/project-id"],
      ...["oidc.circleci.com/vcs-ref", "refs/heads/pull/7"],
    ],
  ])("is refused by the server and by trust test, and taken if the trust names it: %s", async (...row) => {
    const [iss, pin, claim, value] = row as [string, string, string, string];
    const jwks = join(site.folder, "jwks.json");
    writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", key)] }));
    const job = { [pin]: "1", [claim]: value, check_run_id: "1", job_id: "1", "oidc.circleci.com/job-id": "1" };
    const token = compact({ alg: "ES256", kid: "one" }, usualClaims(iss, job), key);
    const read = async () => (await server.get("/projects/web/variables?environment=production", token)).status;
    const add = async (...claims: readonly string[]) => {
      const terms = ["--issuer", iss, "--audience", audience, "--claim", `${pin}=1`, "--jwks-file", jwks, ...claims];
      const reach = ["--project", "web", "--env", "production"];
      return ((await site.json(["trust", "add", "--name", "job", ...terms, ...reach])) as { id: string }).id;
    };
    const id = await add();
    const tested = await site.here(["trust", "test", id], token);
    expect([tested.exitCode, await read()]).toEqual([3, 401]);
    expect(tested.stderr).toContain(`a trust takes it only by the claim ${claim}=${value}`);
    await site.json(["trust", "revoke", id]);
    const named = await add("--claim", `${claim}=${value}`);
    expect((await site.here(["trust", "test", named], token)).exitCode).toBe(0);
    // The server's list of trusts may be a tenth of a second old.
    await eventually(async () => (await read()) === 200);
  });
});

onBoth("a server that is killed while a job reads", (dialect) => {
  const site = siteOf(dialect, { production: { API_TOKEN: "value of the token" } });

  test("loses no count: before and after, the job gets no more than its trust says", async () => {
    const key = newSigningKey("ES256");
    const [jwks, iss] = [join(site.folder, "jwks.json"), "https://issuer.example"];
    writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", key)] }));
    const terms = ["--issuer", iss, "--audience", audience, "--claim", "sub=job", "--jwks-file", jwks];
    const reach = ["--project", "web", "--env", "production", "--reads-per-job", "20"];
    const added = await site.here(["trust", "add", "--name", "job", ...terms, ...reach]);
    expect(added.stderr).toContain("Each job gets 20 answers with values.\n");
    const token = compact({ alg: "ES256", kid: "one" }, usualClaims(iss), key);
    const answered = async (server: Server, isEnough: (count: number) => boolean) => {
      let count = 0;
      const asked = Array.from({ length: 30 }, async () => {
        const answer = await server.get("/projects/web/variables?environment=production", token).catch(() => undefined);
        if (answer?.status === 200 && isEnough(++count)) await server.stop("SIGKILL");
      });
      await Promise.all(asked);
      return count;
    };
    const before = await answered(await site.serve(), (count) => count === 5);
    expect(before).toBeWithin(5, 21);
    const after = await answered(await site.serve(), () => false);
    const [row] = await site.sql("select reads from job_reads");
    expect(Number(row?.["reads"])).toBeGreaterThanOrEqual(before + after);
    expect(before + after).toBeWithin(5, 21);
  });
});

describe("a machine without a stored key", () => {
  const site = siteOf("sqlite", { production: { API_TOKEN: "value of the token" } });
  const server = serverOf(site);
  let provider: Awaited<ReturnType<typeof startProvider>>;
  let trustId: string;
  const machine = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const settings = { KEYHOLE_URL: server.origin, KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "production" };
    return runBinary(args, { cwd: site.folder, env: { PATH: process.env["PATH"] ?? "", ...settings, ...env } });
  };
  const ids = async () => ((await site.json(["trust", "list"])) as { id: string }[]).map(({ id }) => id);
  const reach = ["--project", "web", "--env", "production", "--resource", "variables,files"];

  beforeAll(async () => {
    provider = await startProvider();
    writeFileSync(join(site.folder, "tls.key"), "content of the key");
    await site.json(["file", "put", "acme/web", "tls.key", "--path", "config/tls.key", "--env", "production"]);
    const terms = ["--issuer", provider.url, "--audience", audience, "--claim", "sub=job"];
    const added = await site.here(["trust", "add", "--org", "acme", "--name", "job", ...terms, ...reach]);
    expect(added).toMatchObject({ exitCode: 0 });
    expect(added.stderr).toContain("it never expires");
    trustId = added.stdout.trim();
    // The server's list of trusts may be a tenth of a second old.
    const token = await provider.token();
    await eventually(async () => (await server.get("/organization", token)).status === 200);
  });
  afterAll(() => provider.stop());

  test("runs a command with the variables, and the command has nothing of the token", async () => {
    const token = await provider.token();
    const env = { KEYHOLE_OIDC: "env:JOB_TOKEN", JOB_TOKEN: token, ALSO: `Bearer ${token}`, KEPT: "yes" };
    const ran = await machine(["run", "--", "env"], env);
    expect(ran).toMatchObject({ exitCode: 0 });
    expect(ran.stdout).toContain("API_TOKEN=value of the token\n");
    expect(ran.stdout).toContain("KEPT=yes\n");
    expect(ran.stdout).not.toMatch(/KEYHOLE_|JOB_TOKEN|ALSO/);
    expect(ran.stdout).not.toContain(token);
  });

  test("runs a command that cannot ask the runner for another token", async () => {
    await using runner = startRunner(await provider.token());
    const ran = await machine(["run", "--", "env"], { KEYHOLE_OIDC: `github:${audience}`, ...runner.env });
    expect(ran).toMatchObject({ exitCode: 0 });
    expect(runner.audiences).toEqual([audience]);
    expect(ran.stdout).not.toContain("ACTIONS_ID_TOKEN_REQUEST");
    const withheld = "ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN";
    expect(ran.stderr).toContain(`Not passed to the command: ${withheld}`);
  });

  test("pulls variables and files with a token from a file", async () => {
    const path = join(site.folder, "token");
    writeFileSync(path, `${await provider.token()}\n`);
    const env = { KEYHOLE_OIDC: `file:${path}` };
    expect(await machine(["pull"], env)).toMatchObject({ exitCode: 0, stdout: "API_TOKEN='value of the token'\n" });
    expect(await machine(["files", "pull", "--root", site.folder], env)).toMatchObject({ exitCode: 0 });
    expect(readFileSync(join(site.folder, "config/tls.key"), "utf8")).toBe("content of the key");
  });

  test("can be explained: the log names the trust of a refused request", async () => {
    const answer = await server.get("/projects/web/accounts", await provider.token());
    expect(answer.status).toBe(403);
    const id = answer.headers.get("x-request-id") ?? "";
    const log = await eventually(() => server.said().stdout.includes(id) && server.said().stdout);
    const explained = await site.here(["explain", id], log);
    expect(explained.stdout).toContain(`keyhole trust show ${trustId}`);
  });

  test("can be tested: keyhole says which check a token fails", async () => {
    const tested = async (token: string) => site.here(["trust", "test", trustId.slice(0, 8)], token);
    const stderr = `Trust ${trustId} (job) accepts this token.\n`;
    expect(await tested(`${await provider.token()}\n`)).toEqual({ exitCode: 0, stdout: "", stderr });
    const other = await tested(await provider.token("https://other.example"));
    expect(other.exitCode).toBe(3);
    expect(other.stderr).toContain(`its audience is "https://other.example", not "${audience}"`);
    const [header, , signature] = (await provider.token()).split(".");
    const payload = Buffer.from(JSON.stringify({ iss: provider.url })).toString("base64url");
    const forged = await tested(`${header}.${payload}.${signature}`);
    expect(forged.stderr).toContain("its signature is not by the issuer's key");
    expect((await tested("kh_x")).stderr).toContain("it does not have the three parts of a token");
  });

  test("is trusted as a SPIFFE workload by a bundle, and follows the file that its helper writes", async () => {
    const signing = newSigningKey("ES256");
    const { alg: _, ...jwk } = publicJwk("one", signing);
    const bundle = { keys: [{ ...jwk, use: "jwt-svid" }], spiffe_sequence: 1, spiffe_refresh_hint: 300 };
    const [jwks, token] = [join(site.folder, "bundle.json"), join(site.folder, "svid")];
    writeFileSync(jwks, JSON.stringify(bundle));
    const sub = "spiffe://example.org/web";
    const terms = ["--issuer", "example.org", "--audience", "keyhole", "--spiffe-id", sub, "--jwks-file", jwks];
    await site.json(["trust", "add", "--name", "workload", ...terms, ...reach]);
    const write = (iat: number) => {
      const svid = { iss: "example.org", sub, aud: ["keyhole"], iat, exp: iat + 300 };
      writeFileSync(token, compact({ alg: "ES256", kid: "one", typ: "JWT" }, svid, signing));
    };
    const env = { KEYHOLE_OIDC: `file:${token}` };
    const now = Math.floor(Date.now() / 1000);
    write(now);
    // The server's list of trusts may be a tenth of a second old.
    await eventually(async () => (await machine(["pull"], env)).exitCode === 0);
    write(now - 1000);
    expect(await machine(["pull"], env)).toMatchObject({ exitCode: 3, stdout: "" });
    write(now);
    expect(await machine(["pull"], env)).toMatchObject({ exitCode: 0, stdout: "API_TOKEN='value of the token'\n" });
  });

  test.each([
    ...["0", "ten", "10001"].map((reads): [what: string, terms: string[], says: string] => {
      const terms = ["--issuer", "https://issuer.example", "--claim", "sub=a", "--reads-per-job", reads];
      return [`${reads} reads for each job`, terms, "it takes a whole number from 1 to 10000, or unlimited"];
    }),
    ["a claim twice", ["--issuer", "https://issuer.example", "--claim", "sub=a", "--claim", "sub=b"], "given before"],
    [
      "a name that can be registered again",
      ["--issuer", "https://token.actions.githubusercontent.com", "--claim", "repository=acme/web"],
      "GitHub needs --claim repository_id=… or --claim repository_owner_id=…",
    ],
  ])("is not trusted by %s", async (_, terms, says) => {
    const before = await ids();
    const args = ["trust", "add", "--name", "x", "--audience", audience, ...terms, ...reach];
    const refused = await site.here(args);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toContain(says);
    expect(await ids()).toEqual(before);
  });
});
