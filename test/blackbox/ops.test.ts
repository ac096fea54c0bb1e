import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runBinary } from "./keyhole.ts";
import { startProxy } from "./proxy.ts";
import {
  eventually,
  furnish,
  type Key,
  makeSite,
  onBoth,
  onPostgres,
  postgresUrl,
  type Site,
  standStill,
} from "./server.ts";

setDefaultTimeout(60_000);

const docs = join(import.meta.dir, "../../docs");
const path = "/projects/web/variables?environment=staging";

async function stocked(site: Site): Promise<Key> {
  await furnish(site, { staging: { TOKEN: "not-a-secret" } });
  return site.key("--org", "acme", "--project", "web", "--env", "staging");
}

onBoth("the second listener of the program", (dialect) => {
  let site: Site;
  let key: Key;
  beforeAll(async () => {
    site = await makeSite(dialect);
    key = await stocked(site);
  });
  afterAll(() => site.remove());

  test("is off by default, and has a port of its own", async () => {
    const plain = await site.serve();
    expect(plain.said().stderr).not.toContain("metrics");
    expect((await fetch(`${plain.origin}/metrics`)).status).toBe(404);
    expect(await plain.stop()).toBe(0);
    const server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    const ops = server.ops();
    expect((await fetch(`${server.origin}/readyz`)).status).toBe(404);
    expect((await fetch(`${ops}/api/v1/organization`)).status).toBe(404);
    expect((await fetch(`${ops}/livez`)).status).toBe(200);
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    expect((await server.get(path, key.key)).status).toBe(200);
    const text = await (await fetch(`${ops}/metrics`)).text();
    expect(text).toContain('route="/projects/{slug}/variables",status="200",code="ok"} 1\n');
    expect(text).toMatch(/^keyhole_build_info\{version="[\d.]+",bun="[\d.]+",database="\w+"\} 1$/m);
    for (const file of ["prometheus/alerts.yml", "grafana/keyhole.json"]) {
      for (const name of namesIn(readFileSync(join(docs, file), "utf8"))) expect(text).toContain(name);
    }
    const promtool = found("promtool", "the scrape is not checked by it");
    if (promtool !== undefined) {
      expectAccepted([promtool, "check", "metrics"], text);
    }
    expect(await server.stop()).toBe(0);
  });

  test("says 503 while the server drains, until it is gone", async () => {
    const server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    const ops = server.ops();
    // The server drains until this client has read a large file, so a slow machine sees it too.
    const file = join(site.folder, "large.bin");
    writeFileSync(file, Buffer.alloc(8 * 1024 * 1024, "large "));
    await site.json(["file", "put", "web", file, "--path", "large.bin", "--env", "staging"]);
    const reader = await site.key("--org", "acme", "--resource", "files");
    const files = "/api/v1/files?project=web&environment=staging";
    const goOn = await standStill(server.origin, files, { Authorization: `Bearer ${reader.key}` });
    server.signal("SIGTERM");
    const answer = await eventually(async () => {
      const response = await fetch(`${ops}/readyz`);
      return response.status === 200 ? undefined : response;
    });
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ status: "draining", failed: [] });
    expect((await goOn()).toString("latin1", 0, 12)).toBe("HTTP/1.1 200");
    expect(await server.ended).toBe(0);
  });

  test("an address that is taken is refused with a sentence that names the setting", async () => {
    const holder = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const env = { ...site.env, KEYHOLE_OPS_PORT: String(holder.port) };
    const ran = await runBinary(["serve", "--port", "0"], { cwd: site.folder, env });
    expect(ran.exitCode).toBe(6);
    expect(ran.stderr).toContain("choose another with KEYHOLE_OPS_PORT");
    await holder.stop(true);
  });

  test("traces are sent if an endpoint is set", async () => {
    const bodies: string[] = [];
    const collector = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: async (request) => {
        bodies.push(`${new URL(request.url).pathname} ${await request.text()}`);
        return Response.json({});
      },
    });
    const server = await site.serve({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`, OTEL_SERVICE_NAME: "kh-test" },
    });
    expect((await server.get(path, key.key)).status).toBe(200);
    expect(await server.stop()).toBe(0);
    const all = bodies.join("\n");
    expect(all).toStartWith("/v1/traces ");
    for (const name of ["GET /projects/{slug}/variables", "look-up", "read", "open", "audit", "kh-test"]) {
      expect(all).toContain(`"${name}"`);
    }
    for (const secret of ["TOKEN", "not-a-secret", key.key, key.id, "acme", "staging"])
      expect(all).not.toContain(secret);
    const id = /"traceId":"([0-9a-f]{32})"/.exec(server.said().stdout)?.[1] ?? "none";
    expect(all).toContain(id);
    await collector.stop(true);
  });

  test("a collector that is away costs requests nothing", async () => {
    const server = await site.serve({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" } });
    for (let asked = 0; asked < 5; asked++) expect((await server.get(path, key.key)).status).toBe(200);
    expect(await server.stop()).toBe(0);
  });
});

onPostgres("readiness", () => {
  test("without its database the server is alive but not ready, and ready again when the database is back", async () => {
    const way = await startProxy(new URL(postgresUrl ?? ""));
    const direct = await makeSite("postgres");
    const databaseUrl = new URL(direct.env["DATABASE_URL"] ?? "");
    databaseUrl.host = `127.0.0.1:${way.port}`;
    const server = await direct.serve({ env: { DATABASE_URL: databaseUrl.href, KEYHOLE_OPS_PORT: "0" } });
    const ops = server.ops();
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    way.cut();
    const away = await eventually(async () => {
      const response = await fetch(`${ops}/readyz`);
      return response.status === 200 ? undefined : response;
    });
    expect(await away.json()).toMatchObject({
      status: "not_ready",
      failed: ["database", "primary", "migrations", "root_key", "audit"],
    });
    expect((await fetch(`${ops}/livez`)).status).toBe(200);
    way.mend();
    await eventually(async () => (await fetch(`${ops}/readyz`)).status === 200);
    expect(await server.stop()).toBe(0);
    await way.stop();
    await direct.remove();
  });
});

describe("what docs/ gives operators", () => {
  test("the alert rules are what Prometheus takes", () => {
    const promtool = found("promtool", "docs/prometheus/alerts.yml is not checked");
    if (promtool === undefined) return;
    expectAccepted([promtool, "check", "rules", join(docs, "prometheus/alerts.yml")]);
  });

  test("every query of the dashboard is what Prometheus takes", () => {
    const { panels } = JSON.parse(readFileSync(join(docs, "grafana/keyhole.json"), "utf8")) as {
      panels: { targets: { expr: string }[] }[];
    };
    const queries = panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(15);
    const promtool = found("promtool", "the dashboard's queries are not checked");
    if (promtool === undefined) return;
    const rules = queries.map((expr, at) => ({
      record: `keyhole:panel:${at}`,
      expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$instance", ".*"),
    }));
    const folder = mkdtempSync(join(tmpdir(), "keyhole-rules-"));
    const file = join(folder, "rules.yml");
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    expectAccepted([promtool, "check", "rules", file]);
    rmSync(folder, { recursive: true });
  });

  test("nginx and HAProxy take the configurations of docs/scale-out", () => {
    const nginx = found("nginx", "docs/scale-out/nginx.conf is not checked");
    const haproxy = found("haproxy", "docs/scale-out/haproxy.cfg is not checked");
    const openssl = found("openssl", "the proxies' configurations are not checked");
    if (openssl === undefined) return;
    const folder = mkdtempSync(join(tmpdir(), "keyhole-proxy-"));
    const at = (name: string) => join(folder, name);
    const request = "req -x509 -newkey rsa:2048 -nodes -subj /CN=keyhole.example.com".split(" ");
    const command = [openssl, ...request, "-keyout", at("keyhole.key"), "-out", at("keyhole.crt")];
    Bun.spawnSync(command, { stderr: "ignore" });
    writeFileSync(at("keyhole.pem"), readFileSync(at("keyhole.crt"), "utf8") + readFileSync(at("keyhole.key"), "utf8"));
    // Only the certificate and the log have to exist on this machine.
    const local = (name: string) => {
      const text = readFileSync(join(docs, "scale-out", name), "utf8");
      writeFileSync(at(name), text.replaceAll("/etc/ssl/", `${folder}/`).replaceAll("/var/log/nginx/", `${folder}/`));
      return at(name);
    };
    const checks = [
      nginx && [nginx, "-t", "-c", local("nginx.conf"), "-g", `pid ${at("pid")}; error_log stderr;`],
      haproxy && [haproxy, "-c", "-f", local("haproxy.cfg")],
    ];
    for (const command of checks) {
      if (!command) continue;
      const ran = Bun.spawnSync(command, { stdout: "pipe", stderr: "pipe" });
      expect({ code: ran.exitCode, said: ran.exitCode === 0 ? "" : `${ran.stdout}${ran.stderr}` }).toEqual({
        code: 0,
        said: "",
      });
    }
    rmSync(folder, { recursive: true });
  });
});

function expectAccepted(command: string[], stdin = ""): void {
  const ran = Bun.spawnSync(command, { stdin: Buffer.from(stdin) });
  expect({ code: ran.exitCode, said: ran.stderr.toString() }).toEqual({ code: 0, said: "" });
}

/** The metrics of a process without workers and without shared buckets. */
function namesIn(text: string): Set<string> {
  const names = text.match(/\b(?:keyhole|process)_[a-z_]+/g) ?? [];
  return new Set(names.filter((name) => !/_worker|_fallback/.test(name)));
}

/** Finds an installed program; says what stays unchecked without it. */
function found(name: string, loss: string): string | undefined {
  const at = Bun.which(name, { PATH: `${process.env["PATH"]}:/usr/sbin` });
  if (at === null) process.stderr.write(`${name} IS NOT INSTALLED: ${loss}.\n`);
  return at ?? undefined;
}
