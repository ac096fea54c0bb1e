/**
 * docs/aws.md, docs/google.md and docs/azure.md as they are printed, from a machine's start to a value in a process. No
 * cloud is reachable from a test: its endpoints are played, and a proxy leads to each https host that a page names.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cloudTokens, secrets, startClouds } from "../support/clouds.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { startInternet } from "../support/internet.ts";
import { compact, newSigningKey, publicJwk } from "../support/issuer.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { blocksOf } from "../support/markdown.ts";
import { run, startProgram } from "../support/program.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { furnish, makeSite, type Server, type Site } from "../support/server.ts";

const clouds = {
  AWS: { page: "docs/aws.md", ...cloudTokens.AWS },
  Google: { page: "docs/google.md", ...cloudTokens.Google },
  Azure: { page: "docs/azure.md", ...cloudTokens.Azure },
};
type Cloud = keyof typeof clouds;
const names = Object.keys(clouds) as Cloud[];

/** The machines of each page, by the name that {@link startClouds} gives to what they have. */
const machines = [
  ["an instance of EC2", "AWS", "aws"],
  ["a task of ECS, and a pod of EKS with Pod Identity", "AWS", "aws in a container"],
  ["a pod of EKS with a role by IRSA", "AWS", "aws by web identity"],
  ["a machine of Google", "Google", "gcp"],
  ["a machine of Azure", "Azure", "azure"],
] as const;

/** What a machine may have for other programs: a proxy for all, and everything that prints requests. */
const loud = { NODE_DEBUG: "http,https,net,tls,fetch", BUN_CONFIG_VERBOSE_FETCH: "curl", DEBUG: "*" };
const value = "postgres://shop";

withPrograms(["openssl", "bash", "node"], "without a stored key", (openssl, bash, node) => {
  const folder = newFolder();
  const bin = join(folder, "bin");
  const signing = Object.fromEntries(names.map((cloud) => [cloud, newSigningKey(clouds[cloud].alg)]));
  const tokenOf = (cloud: Cloud, changed: object = {}, ageS = 0) => {
    const iat = Math.floor(Date.now() / 1000) - ageS;
    const payload = { ...clouds[cloud].claims, iat, nbf: iat, exp: iat + 90_000, ...changed };
    return compact({ alg: clouds[cloud].alg, kid: "one", typ: "JWT" }, payload, signing[cloud] as never);
  };
  const trusts = {} as Record<Cloud, string>;
  let site: Site;
  let server: Server;
  let internet: Awaited<ReturnType<typeof startInternet>>;
  let sts: ReturnType<typeof startClouds> | undefined;

  /** What an issuer publishes. */
  const issuerOf = (cloud: Cloud) => (request: Request) => {
    const { iss } = clouds[cloud].claims;
    const jwks = new URL("/keys", request.url).href;
    return request.url === jwks
      ? Response.json({ keys: [publicJwk("one", signing[cloud] as never)] })
      : Response.json({ issuer: iss, jwks_uri: jwks });
  };
  const forward = (to: () => string) => async (request: Request) => {
    const { pathname, search } = new URL(request.url);
    const body = request.method === "POST" ? await request.text() : undefined;
    const { method, headers } = request;
    return fetch(`${to()}${pathname}${search}`, { method, headers, ...(body !== undefined && { body }) });
  };
  /** The blocks of a page that are run here. */
  const blocks = (cloud: Cloud) =>
    blocksOf(clouds[cloud].page)
      .filter(({ comment }) => comment === "run by test/blackbox/clouds.test.ts")
      .map(({ text }) => text);
  const paste = (text: string, env: Readonly<Record<string, string>>) =>
    run([bash ?? "", "-eu", "-o", "pipefail", "-c", text], {
      cwd: folder,
      env: { PATH: bin, ...internet.env, ...env },
    });

  beforeAll(async () => {
    mkdirSync(bin);
    symlinkSync(binary, join(bin, "keyhole"));
    symlinkSync(node ?? "", join(bin, "node"));
    symlinkSync(findProgram("printf") ?? "", join(bin, "printf"));
    writeFileSync(join(folder, "server.js"), "console.log(process.env.DATABASE_URL);\n");
    writeFileSync(join(folder, "web"), secrets.web);
    const hostOf = (url: string) => new URL(url).hostname;
    internet = await startInternet(openssl ?? "", folder, {
      ...Object.fromEntries(names.map((cloud) => [hostOf(clouds[cloud].claims.iss), issuerOf(cloud)])),
      "keyhole.example.com": forward(() => server.origin),
      "sts.eu-central-1.amazonaws.com": forward(() => sts?.origin ?? ""),
    });
    site = await makeSite("sqlite");
    await furnish(site, { production: { DATABASE_URL: value } });
    server = await site.serve({ env: internet.env });
    for (const cloud of names) {
      const added = await paste(blocks(cloud)[0] ?? "", site.env);
      expect(added).toMatchObject({ exitCode: 0 });
      trusts[cloud] = added.stdout.trim();
      // The server's list of trusts may be a tenth of a second old.
      await eventually(async () => (await server.get("/organization", tokenOf(cloud))).status === 200);
    }
  }, 60_000);
  afterAll(async () => {
    await site?.remove();
    await internet?.[Symbol.asyncDispose]();
  });

  test.each(machines)("%s reads a value by the lines of its page", async (_, cloud, kind) => {
    const audiences: string[] = [];
    await using endpoints = startClouds((aud) => {
      audiences.push(aud);
      return tokenOf(cloud, { aud });
    });
    sts = endpoints;
    const { AWS_ENDPOINT_URL_STS: _unset, ...env } = { ...endpoints.env[kind] } as Record<string, string>;
    const file = { AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "web") };
    const ran = await paste(blocks(cloud)[1] ?? "", { ...env, ...file, HTTP_PROXY: internet.env.HTTPS_PROXY });
    expect(ran).toMatchObject({ exitCode: 0, stdout: `${value}\n` });
    expect(audiences).toEqual([clouds[cloud].claims.aud]);
    expect(internet.asked.filter((line) => !line.startsWith("CONNECT "))).toEqual([]);
  });

  test("a function of Lambda reads a value by the script of its layer", async () => {
    await using endpoints = startClouds((aud) => tokenOf("AWS", { aud }));
    sts = endpoints;
    const opt = join(folder, "opt");
    mkdirSync(opt);
    symlinkSync(binary, join(opt, "keyhole"));
    const script = (blocks("AWS")[2] ?? "").replaceAll("/opt/", `${opt}/`);
    writeFileSync(join(opt, "start"), script, { mode: 0o755 });
    const settings = { KEYHOLE_OIDC: "aws", KEYHOLE_URL: "https://keyhole.example.com" };
    const { AWS_ENDPOINT_URL_STS: _unset, ...env } = endpoints.env["aws in Lambda"];
    const all = { PATH: bin, ...internet.env, ...env, ...settings };
    const ran = await run([join(opt, "start"), "node", "server.js"], { cwd: folder, env: all });
    expect(ran).toMatchObject({ exitCode: 0, stdout: `${value}\n` });
  });

  test.each(names)("trust test explains a token of %s", async (cloud) => {
    const { claims, pin, ageS } = clouds[cloud];
    const tested = async (token: string) => {
      const env = { ...site.env, ...internet.env };
      const { exitCode, stderr } = await runBinary(["trust", "test", trusts[cloud]], {
        cwd: site.folder,
        env,
        stdin: token,
      });
      return `${exitCode} ${stderr}`;
    };
    expect(await tested(tokenOf(cloud, {}, ageS - 60))).toBe(`0 Trust ${trusts[cloud]} (web) accepts this token.\n`);
    expect(await tested(tokenOf(cloud, {}, ageS + 60))).toContain(`: it was issued more than ${ageS / 60} minutes ago`);
    expect(await tested(tokenOf(cloud, { [pin]: "another" }))).toContain(`its claim ${pin} is "another"`);
    expect(await tested(tokenOf(cloud, { aud: "https://another.example" }))).toContain(
      `its audience is "https://another.example", not "${claims.aud}"`,
    );
    expect(await tested(tokenOf(cloud, { iss: "https://another.example" }))).toContain("its issuer is");
    const [head, body] = tokenOf(cloud).split(".");
    expect(await tested(`${head}.${body}.${tokenOf(cloud, { jti: "x" }).split(".")[2]}`)).toContain(
      "its signature is not by the issuer's key",
    );
  });

  describe("a source of tokens prints no credential and asks no proxy, whatever the environment says:", () => {
    const sources = [...machines.map(([, cloud, kind]) => [kind, cloud] as const), ["aws in Lambda", "AWS"] as const];
    /** A machine's whole environment, at a proxy that hears nothing if all goes well. */
    const surroundings = (
      kind: (typeof sources)[number][0],
      endpoints: ReturnType<typeof startClouds>,
      proxy: string,
    ) => {
      const setting = kind.split(" ")[0] ?? "";
      const audience = kind === "azure" ? `:${clouds.Azure.claims.aud}` : ":https://keyhole.example.com";
      return {
        ...{
          PATH: bin,
          ...loud,
          HTTP_PROXY: proxy,
          http_proxy: proxy,
          HTTPS_PROXY: proxy,
          ALL_PROXY: proxy,
          all_proxy: proxy,
        },
        ...{ KEYHOLE_URL: server.origin, KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "production" },
        ...{
          ...endpoints.env[kind],
          KEYHOLE_OIDC: `${setting}${audience}`,
          AWS_WEB_IDENTITY_TOKEN_FILE: join(folder, "web"),
        },
      };
    };
    const listen = () => {
      const heard: string[] = [];
      const data = (_: unknown, bytes: Buffer) => void heard.push(bytes.toString());
      const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data } });
      return { heard, at: `http://127.0.0.1:${listener.port}`, [Symbol.dispose]: () => listener.stop(true) };
    };

    test.each(sources)("%s", async (kind, cloud) => {
      using proxy = listen();
      const given: string[] = [];
      await using endpoints = startClouds((aud) => {
        given.push(tokenOf(cloud, { aud }));
        return given.at(-1) ?? "";
      });
      const env = surroundings(kind, endpoints, proxy.at);
      const ran = await run([binary, "pull"], { cwd: folder, env });
      expect(ran).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(value) });
      // A cloud that says no, and shows what it was sent.
      const secret = Object.values(secrets).join(" ");
      for (const path of [
        "/",
        "/latest/meta-data/placement/region",
        "/v2/credentials/1",
        "/metadata/identity/oauth2/token",
        "/computeMetadata/v1/instance/service-accounts/default/identity",
      ]) {
        endpoints.answers.set(
          path,
          ({ headers }) => new Response(`<Error>${secret} ${JSON.stringify(headers)}</Error>`, { status: 400 }),
        );
      }
      const failed = await run([binary, "pull"], { cwd: folder, env });
      expect(failed).toMatchObject({ exitCode: 6, stdout: "" });
      expect(failed.stderr).toMatch(/^keyhole: .* gave no token: it answered 400\.[^\n]*\n$/);
      const said = ran.stderr + failed.stderr;
      for (const one of [...given, ...Object.values(secrets)]) expect(said).not.toContain(one);
      expect([given.length, proxy.heard]).toEqual([1, []]);
    });

    test("command", async () => {
      using proxy = listen();
      const token = tokenOf("AWS");
      const [first, ...rest] = token.split(".");
      await using endpoints = startClouds();
      const env = {
        ...surroundings("aws", endpoints, proxy.at),
        KEYHOLE_OIDC: `command:${JSON.stringify(["printf", "%s.%s", first, rest.join(".")])}`,
      };
      const ran = await run([binary, "pull"], { cwd: folder, env });
      expect(ran).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(value) });
      expect(ran.stdout + ran.stderr).not.toContain(token);
      expect([endpoints.asked, proxy.heard]).toEqual([[], []]);
    });
  });

  test.each(["gcp", "aws"] as const)("--watch asks %s for another token near the end of the first", async (kind) => {
    const cloud = kind === "gcp" ? "Google" : "AWS";
    const given: string[] = [];
    await using endpoints = startClouds((aud) => {
      // It ends now, which the server takes for half a minute more: clocks differ.
      const exp = Math.floor(Date.now() / 1000);
      given.push(tokenOf(cloud, { aud, exp, jti: String(given.length) }));
      return given.at(-1) ?? "";
    });
    const env = {
      ...{ PATH: `${bin}:/usr/bin:/bin`, ...endpoints.env[kind] },
      ...{ KEYHOLE_URL: server.origin, KEYHOLE_OIDC: `${kind}:https://keyhole.example.com` },
    };
    const words = ["-p", "web", "-e", "production", "--watch", "1s"];
    const script = 'echo "runs $WATCHED"; exec sleep 600';
    const program = startProgram([binary, "run", ...words, "--", "sh", "-c", script], { cwd: folder, env });
    try {
      await eventually(() => program.said().stdout.endsWith("runs \n"));
      await site.json(["var", "set", "acme/web", "production", "WATCHED", "--value", kind]);
      await eventually(() => program.said().stdout.endsWith(`runs ${kind}\n`) && given.length > 1);
    } finally {
      await program.stop();
      await site.json(["var", "delete", "acme/web", "production", "WATCHED"]);
    }
    expect(new Set(given).size).toBe(given.length);
  });
});
