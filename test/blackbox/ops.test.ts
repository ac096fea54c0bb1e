import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { standStill } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { startNotary } from "../support/notary.ts";
import { postgresUrl } from "../support/postgres.ts";
import { findProgram, noteMissing } from "../support/programs.ts";
import { startProxy } from "../support/proxy.ts";
import { keyOf, onPostgres, siteOf } from "../support/server.ts";

const docs = join(import.meta.dir, "../../docs");
const promtool = findProgram("promtool");
if (promtool === undefined) noteMissing(["promtool"], "whether Prometheus takes a scrape");
const path = "/projects/web/variables?environment=staging";

describe("the second listener of the program", () => {
  const site = siteOf("sqlite", { staging: { TOKEN: "not-a-secret" } });
  const key = keyOf(site, "--org", "acme", "--project", "web", "--env", "staging");

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
    expect(text).toMatch(/^keyhole_build_info\{version="[\w.+-]+",bun="[\d.]+",database="\w+"\} 1$/m);
    for (const file of ["prometheus/alerts.yml", "grafana/keyhole.json"]) {
      for (const name of namesIn(readFileSync(join(docs, file), "utf8"))) expect(text).toContain(name);
    }
    for (const [, code] of readFileSync(join(docs, "prometheus/alerts.yml"), "utf8").matchAll(/code="(\w+)"/g)) {
      expect(text).toMatch(new RegExp(`^keyhole_requests_total\\{.*code="${code}"\\} 0$`, "m"));
    }
    if (promtool !== undefined) {
      const checked = Bun.spawnSync([promtool, "check", "metrics"], { stdin: Buffer.from(text) });
      expect({ code: checked.exitCode, said: `${checked.stderr}` }).toEqual({ code: 0, said: "" });
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

  const onLinux = test.skipIf(process.platform !== "linux");
  onLinux("GHSA-9h8m-3fm2-qjrq: with traces, too, a server starts no other program, whatever PATH has", async () => {
    // What resource detection looks for: ids of the host, of the cloud, of the container, and the version of the system.
    const names =
      "sh bash env hostname hostnamectl uname id whoami cat git ps ioreg reg REG.exe kenv sysctl sw_vers lsb_release";
    const traps = join(site.folder, "traps");
    const sprung = join(site.folder, "sprung");
    mkdirSync(traps);
    for (const name of [...names.split(" "), "dmidecode", "docker", "systemd-detect-virt"])
      writeFileSync(join(traps, name), `#!/bin/sh\necho ${name} >> ${sprung}\n`, { mode: 0o755 });
    const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9", OTEL_NODE_RESOURCE_DETECTORS: "all" };
    const server = await site.serve({ env: { ...endpoint, PATH: traps, KEYHOLE_OPS_PORT: "0" } });
    expect((await server.get(path, key.key)).status).toBe(200);
    expect((await fetch(`${server.ops()}/metrics`)).status).toBe(200);
    for (const task of readdirSync(`/proc/${server.pid}/task`))
      expect(readFileSync(`/proc/${server.pid}/task/${task}/children`, "utf8")).toBe("");
    expect(await server.stop()).toBe(0);
    expect(existsSync(sprung)).toBe(false);
  });
});

onPostgres("readiness", () => {
  const site = siteOf("postgres");

  test("a password that was replaced is read again, and until then one line and /readyz name its file", async () => {
    const role = `keyhole_password_${randomBytes(4).toString("hex")}`;
    const file = join(site.folder, "password");
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    const [database, user] = [url.pathname.slice(1), url.username];
    const change = (password: string) => site.sql(`alter role ${role} password '${password}'`);
    const cut = () => site.sql(`select pg_terminate_backend(pid) from pg_stat_activity where usename = '${role}'`);
    await site.sql(`create role ${role} login in role ${user} password 'first'`);
    await site.sql(`alter role ${role} in database ${database} set role = ${user}`);
    writeFileSync(file, "first\n", { mode: 0o600 });
    [url.username, url.password] = [role, ""];
    const env = { DATABASE_URL: url.href, DATABASE_PASSWORD_FILE: file };
    await site.json(["org", "create", "acme"]);
    const key = await site.key("--org", "acme");
    const server = await site.serve({ env: { ...env, KEYHOLE_OPS_PORT: "0" } });
    const notary = await startNotary(site, env);
    const status = async () => (await server.get("/projects", key.key)).status;
    const readyz = async (ops: string) => {
      const answer = await fetch(`${ops}/readyz`);
      const { reason } = (await answer.json()) as { reason?: string };
      return { status: answer.status, reason };
    };
    const count = (text: string, what: string) => text.split(what).length - 1;
    // The file comes first, as it may: nothing is refused.
    await change("second");
    writeFileSync(file, "second");
    await cut();
    await eventually(async () => (await status()) === 200);
    expect(server.said().stdout).not.toContain("database_refused");
    expect(server.said().stdout).toContain('"event":"connection_lost","pool":');
    // The file comes later.
    await change("third");
    await cut();
    for (const { ops } of [{ ops: server.ops() }, notary]) {
      const { reason } = await eventually(async () => {
        const said = await readyz(ops);
        // Of what is cut, the first word may be that it cannot be reached.
        return said.reason?.includes("refuses") && said;
      });
      expect(reason).toContain(`refuses the user or the password (28P01): correct ${file}, which is read again`);
    }
    expect(await Promise.all(Array.from({ length: 40 }, status))).toEqual(Array(40).fill(503));
    for (const said of [() => server.said().stdout, notary.said]) {
      await eventually(() => said().includes("database_refused"));
      expect(count(said(), "database_refused")).toBe(1);
    }
    writeFileSync(file, "third");
    await eventually(async () => (await status()) === 200);
    for (const { ops } of [{ ops: server.ops() }, notary])
      await eventually(async () => (await readyz(ops)).status === 200);
    expect([await server.stop(), await notary.stop()]).toEqual([0, 0]);
    await site.sql(`drop role ${role}`);
  });

  test("without its database the server is alive but not ready, and ready again when the database is back", async () => {
    const way = await startProxy(new URL(postgresUrl ?? ""));
    const databaseUrl = new URL(site.env["DATABASE_URL"] ?? "");
    databaseUrl.host = `127.0.0.1:${way.port}`;
    const server = await site.serve({ env: { DATABASE_URL: databaseUrl.href, KEYHOLE_OPS_PORT: "0" } });
    const ops = server.ops();
    expect((await fetch(`${ops}/readyz`)).status).toBe(200);
    way.cut();
    const away = await eventually(async () => {
      const response = await fetch(`${ops}/readyz`);
      return response.status === 200 ? undefined : response;
    });
    const failed = ["database", "primary", "migrations", "root_key", "audit"];
    expect(await away.json()).toMatchObject({ status: "not_ready", failed });
    expect((await fetch(`${ops}/livez`)).status).toBe(200);
    way.mend();
    await eventually(async () => (await fetch(`${ops}/readyz`)).status === 200);
    expect(await server.stop()).toBe(0);
    await way.stop();
  });
});

/** The metrics of a process without workers, without shared buckets and with nothing that expires. */
function namesIn(text: string): Set<string> {
  const names = text.match(/\b(?:keyhole|process)_[a-z_]+/g) ?? [];
  return new Set(names.filter((name) => !/_worker|_fallback|_next_expiry/.test(name)));
}
