import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { readConfig } from "../../src/core/settings/settings.ts";
import { redisBuckets } from "../../src/serve/process/redis-buckets.ts";
import { eventually } from "../support/eventually.ts";
import { runBinary } from "../support/keyhole.ts";
import { startNotary } from "../support/notary.ts";
import { freePort } from "../support/port.ts";
import { withPrograms } from "../support/programs.ts";
import { makeSite, onPostgres, type Server, type Site } from "../support/server.ts";

/* docs/deploy/compose.yaml against the rest of the documentation and the program. Docker itself is not needed. */

type Service = {
  readonly image?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly networks: readonly string[];
  readonly secrets?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
};

const root = join(import.meta.dir, "../..");
const folder = join(root, "docs/deploy");
const read = (path: string) => readFileSync(join(root, path), "utf8");
const text = read("docs/deploy/compose.yaml");
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean } | null>>;
  readonly configs: { readonly roles: { readonly content: string } };
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
  readonly volumes: Readonly<Record<string, null>>;
};
const { services } = compose;
const ofKeyhole = Object.entries(services).filter(([, { image }]) => image === "keyhole");
const dockerfile = read("Dockerfile");
const imageEnv = Object.fromEntries(
  (/^ENV (.*)$/m.exec(dockerfile)?.[1] ?? "").split(" ").map((pair) => pair.split("=") as [string, string]),
);
/** What `.env` has. */
const dotenv = {
  OWNER_PASSWORD: "of-the-owner",
  SERVE_PASSWORD: "of-the-server",
  NOTARY_PASSWORD: "of-the-notary",
  DOMAIN: "keyhole.example.com",
};

function service(name: string): Service {
  const found = services[name];
  if (found === undefined) throw new Error(`there is no service ${name}`);
  return found;
}

/** A service's environment with its variables filled in. */
function environmentOf(name: string): Record<string, string> {
  const fill = (value: string) =>
    value.replace(/\$\{(\w+)(?::([?-])(\w*))?\}/g, (_, variable: string, kind: string, standby: string) => {
      const given = (dotenv as Record<string, string>)[variable];
      if (given === undefined && kind !== "-") throw new Error(`${variable} is not in .env`);
      return given ?? standby;
    });
  return Object.fromEntries(Object.entries(service(name).environment ?? {}).map(([key, value]) => [key, fill(value)]));
}

describe("the compose file", () => {
  test("gives Keyhole settings that it knows and takes", () => {
    expect(ofKeyhole.map(([name]) => name)).toEqual("keyhole notary owner upgrade grants notary-grants".split(" "));
    const known = read("src/core/settings/setting-names.ts");
    for (const [name] of ofKeyhole) {
      const env = environmentOf(name);
      for (const setting of Object.keys(env)) expect(known).toContain(`"${setting}"`);
      expect(() => readConfig({ ...imageEnv, ...env })).not.toThrow();
      const file = compose.secrets["root_key"]?.file ?? "";
      expect(env["KEYHOLE_ROOT_KEY_FILE"]).toBe("/run/secrets/root_key");
      expect(text).toContain(`install -D -o 65532 -m 0400 /dev/stdin ${file.slice(2)} `);
      expect(dockerfile).toContain("USER 65532:65532");
    }
  });

  test("runs the server under the role that docs/least-privilege.md names, and commands under the owner", () => {
    const role = (name: string) => new URL(environmentOf(name)["DATABASE_URL"] ?? "").username;
    expect(["keyhole", "owner", "upgrade", "grants"].map(role)).toEqual(["keyhole_serve", ...Array(3).fill("keyhole")]);
    expect(["notary", "notary-grants"].map(role)).toEqual(["keyhole_notary", "keyhole"]);
    expect(service("postgres").environment?.["POSTGRES_USER"]).toBe("keyhole");
    for (const name of ["keyhole_serve", "keyhole_notary"])
      expect(read("docs/least-privilege.md")).toContain(`CREATE ROLE ${name} LOGIN`);
    expect(service("grants").depends_on?.["upgrade"]?.condition).toBe("service_completed_successfully");
    expect(service("keyhole").depends_on?.["grants"]?.condition).toBe("service_completed_successfully");
  });

  test("lets the store for limits evict nothing, as docs/scale-out.md demands", () => {
    expect(read("docs/scale-out.md")).toContain("Set `maxmemory` and `noeviction`");
    const words = (service("valkey").command ?? []).join(" ");
    expect(words).toMatch(/--maxmemory \d+mb --maxmemory-policy noeviction/);
  });

  test("publishes TLS alone, and Prometheus to this host", () => {
    const published = Object.values(services).flatMap(({ ports = [] }) => ports);
    expect(published.sort()).toEqual(["127.0.0.1:9090:9090", "443:443"]);
    expect(environmentOf("caddy")["UPSTREAM"]).toBe(`keyhole:${imageEnv["PORT"]}`);
    for (const name of ["DOMAIN", "UPSTREAM"]) expect(read("docs/deploy/Caddyfile")).toContain(`{$${name}:`);
  });

  test("has metrics on a port of their own, where its Prometheus looks for them", () => {
    const { ops, port } = readConfig({ ...imageEnv, ...environmentOf("keyhole") });
    expect(ops).toEqual({ host: "0.0.0.0", port: 4101 });
    expect(ops?.port).not.toBe(port);
    const { scrape_configs: jobs } = parse(read("docs/prometheus/prometheus.yml")) as {
      scrape_configs: { job_name: string; static_configs: { targets: string[] }[] }[];
    };
    const targets = [`keyhole:${ops?.port}`, `notary:${ops?.port}`];
    expect(jobs).toEqual([{ job_name: "keyhole", static_configs: [{ targets }] }]);
    expect(service("prometheus").volumes).toContain("../prometheus:/etc/prometheus:ro");
  });

  test("joins what has to meet, and nothing else reaches the database", () => {
    expect(compose.networks["back"]?.internal).toBe(true);
    const on = (network: string) => Object.keys(services).filter((name) => service(name).networks.includes(network));
    expect(on("front")).toEqual(["caddy", "keyhole", "notary", "prometheus"]);
    expect(on("back")).toEqual("keyhole notary owner upgrade grants notary-grants postgres valkey".split(" "));
  });

  test("names only folders, files, secrets, volumes and services that are there", () => {
    for (const { volumes = [], secrets = [], networks, depends_on = {} } of Object.values(services)) {
      for (const from of volumes.map((volume) => volume.split(":")[0] ?? "")) {
        if (from.startsWith(".")) expect(existsSync(join(folder, from))).toBe(true);
        else expect(Object.keys(compose.volumes)).toContain(from);
      }
      for (const secret of secrets) expect(Object.keys(compose.secrets)).toContain(secret);
      for (const network of networks) expect(Object.keys(compose.networks)).toContain(network);
      for (const other of Object.keys(depends_on)) expect(Object.keys(services)).toContain(other);
    }
  });
});

onPostgres("what the compose file starts", () => {
  withPrograms(["psql", "valkey-server|redis-server"], "by its own commands", (psql = "", storeProgram = "") => {
    const role = `keyhole_serve_${randomBytes(6).toString("hex")}`;
    const notaryRole = role.replace("serve", "notary");
    let site: Site;
    let limits: Bun.Subprocess;
    let server: Server;
    let local: (name: string) => Record<string, string>;
    let storeUrl: string;

    beforeAll(async () => {
      site = await makeSite("postgres");
      const port = freePort();
      storeUrl = `redis://127.0.0.1:${port}`;
      const [, ...args] = service("valkey").command ?? [];
      const words = [storeProgram, ...args, "--bind", "127.0.0.1", "--port", String(port)];
      limits = Bun.spawn(words, { cwd: site.folder, stdout: "ignore" });
      const rootKey = join(site.folder, "root.key");
      writeFileSync(rootKey, site.env["KEYHOLE_ROOT_KEY"] ?? "", { mode: 0o400 });
      local = (name) => {
        const url = new URL(site.env["DATABASE_URL"] ?? "");
        if (name === "keyhole") Object.assign(url, { username: role, password: dotenv.SERVE_PASSWORD });
        if (name === "notary") Object.assign(url, { username: notaryRole, password: dotenv.NOTARY_PASSWORD });
        const { DATABASE_URL, KEYHOLE_ROOT_KEY_FILE, KEYHOLE_LIMITER_URL, KEYHOLE_CHECKPOINT_FILE, ...rest } =
          environmentOf(name);
        const limiter = KEYHOLE_LIMITER_URL?.replace("redis://valkey:6379", storeUrl);
        return {
          ...rest,
          DATABASE_URL: url.href,
          KEYHOLE_ROOT_KEY_FILE: rootKey,
          ...(KEYHOLE_CHECKPOINT_FILE !== undefined && { KEYHOLE_CHECKPOINT_FILE: join(site.folder, name) }),
          ...(limiter !== undefined && { KEYHOLE_LIMITER_URL: limiter }),
        };
      };
      const buckets = redisBuckets(storeUrl);
      await eventually(() =>
        buckets.connect().then(
          () => true,
          () => false,
        ),
      );
      buckets.close();
    });
    afterAll(async () => {
      await server?.stop("SIGKILL");
      for (const one of [role, notaryRole]) {
        await site?.sql(`drop owned by ${one}`);
        await site?.sql(`drop role ${one}`);
      }
      limits?.kill("SIGKILL");
      await limits?.exited;
      await site?.remove();
    });
    const run = (name: string, args: readonly string[]) =>
      runBinary(args, { cwd: site.folder, env: { ...local(name), KEYHOLE_DATA: join(site.folder, "data") } });
    const grant = () => run("grants", [...(service("grants").command ?? []), "--role", role]);

    test("is a server that its own role lets read and record, and that counts in the store", async () => {
      const script = compose.configs.roles.content
        .replaceAll("keyhole_serve", role)
        .replaceAll("keyhole_notary", notaryRole);
      const made = Bun.spawnSync([psql, "--no-psqlrc", "-v", "ON_ERROR_STOP=1", site.env["DATABASE_URL"] ?? ""], {
        stdin: Buffer.from(script),
        env: { SERVE_PASSWORD: dotenv.SERVE_PASSWORD, NOTARY_PASSWORD: dotenv.NOTARY_PASSWORD },
      });
      expect({ code: made.exitCode, said: `${made.stderr}` }).toEqual({ code: 0, said: "" });
      // In this order: nothing begins by accident.
      const upgrade = () => run("upgrade", service("upgrade").command ?? []);
      expect(await upgrade()).toMatchObject({ exitCode: 4 });
      const commands = [...text.matchAll(/docker compose run --rm owner (.*?) +#/g)].map(([, words = ""]) => words);
      expect(commands).toEqual(["org create acme", "key list"]);
      for (const words of commands) expect(await run("owner", words.split(" "))).toMatchObject({ exitCode: 0 });
      expect(await upgrade()).toMatchObject({ exitCode: 0 });
      expect(await grant()).toMatchObject({ exitCode: 0 });

      // The site brings the same root key by itself, and everything listens on loopback.
      const { DATABASE_URL = "", KEYHOLE_LIMITER_URL = "" } = local("keyhole");
      for (const args of [
        ["project", "create", "web"],
        ["var", "set", "web", "staging", "TOKEN", "--value", "v"],
      ]) {
        expect(await run("owner", args)).toMatchObject({ exitCode: 0 });
      }
      const key = await site.key("--org", "acme");
      server = await site.serve({ env: { DATABASE_URL, KEYHOLE_LIMITER_URL, KEYHOLE_OPS_PORT: "0" } });
      expect(server.said().stderr).not.toContain("WARNING");
      expect((await server.get("/projects/web/variables?environment=staging", key.key)).status).toBe(200);
      // On a slow machine the store may miss a deadline of 75 ms, and is used again a moment later.
      const metrics = await eventually(async () => {
        const text = await (await fetch(`${server.ops()}/metrics`)).text();
        return /^keyhole_limiter_fallback 0$/m.test(text) && text;
      });
      expect(metrics).toMatch(/^keyhole_ready 1$/m);
    });

    test("is a notary that its own role lets sign what there is", async () => {
      const words = [...(service("notary-grants").command ?? []), "--role", notaryRole];
      expect(await run("notary-grants", words)).toMatchObject({ exitCode: 0 });
      // The site brings the same root key by itself.
      const { DATABASE_URL = "", KEYHOLE_CHECKPOINT_FILE = "" } = local("notary");
      const notary = await startNotary(site, { DATABASE_URL, KEYHOLE_CHECKPOINT_FILE });
      await notary.says('"event":"signed_checkpoint"');
      expect(await notary.stop()).toBe(0);
      expect(existsSync(join(site.folder, "notary"))).toBe(true);
    });

    test("is well by the image's health check", async () => {
      const words = JSON.parse(/^HEALTHCHECK .* CMD (.*)$/m.exec(dockerfile)?.[1] ?? "") as string[];
      expect(words[0]).toBe((JSON.parse(/^ENTRYPOINT (.*)$/m.exec(dockerfile)?.[1] ?? "") as string[])[0] as string);
      const env = { ...environmentOf("keyhole"), KEYHOLE_OPS_PORT: new URL(server.ops()).port };
      expect(await runBinary(words.slice(1), { env })).toMatchObject({ exitCode: 0 });
    });
  });
});
