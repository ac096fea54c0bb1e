import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { attempt } from "../../src/core/attempt.ts";
import { makeCertificates } from "../support/certificates.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { runBinary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { type Ran, type Running, startProgram } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";
import { type Key, type Server, siteOf, waitsOf } from "../support/server.ts";

const docs = join(import.meta.dir, "../../docs");
const secret = "sent-through-a-proxy";
const bytesMax = 8 * 1024 * 1024;

/** How a configuration of docs/ is started here. The texts that are replaced must stand in it. */
type Recipe = {
  readonly file: string;
  readonly program: string;
  readonly local: (at: { folder: string; port: number; upstream: string }) => Readonly<Record<string, string>>;
  readonly command: (config: string, folder: string) => readonly string[];
};

const nginxCommand = (config: string, folder: string) => [
  ...["-c", config, "-p", folder, "-e", "stderr"],
  ...["-g", `daemon off; pid ${folder}/nginx.pid;`],
];
const recipes: readonly Recipe[] = [
  {
    file: "deploy/Caddyfile",
    program: "caddy",
    local: ({ folder, port, upstream }) => ({
      "{$DOMAIN:keyhole.example.com}": `https://localhost:${port}`,
      "{$UPSTREAM:127.0.0.1:4100}": upstream,
      "admin off": "admin off\n\tdefault_bind 127.0.0.1",
      "tls {": `tls ${folder}/keyhole.crt ${folder}/keyhole.key {`,
    }),
    command: (config) => ["run", "--adapter", "caddyfile", "--config", config],
  },
  {
    file: "deploy/nginx.conf",
    program: "nginx",
    local: ({ folder, port, upstream }) => ({
      "listen 443 ssl": `listen 127.0.0.1:${port} ssl`,
      "127.0.0.1:4100": upstream,
      "/etc/ssl/": `${folder}/`,
      "/var/log/nginx/": `${folder}/`,
    }),
    command: nginxCommand,
  },
  {
    file: "scale-out/nginx.conf",
    program: "nginx",
    local: ({ folder, port, upstream }) => ({
      "listen 443 ssl": `listen 127.0.0.1:${port} ssl`,
      "10.0.0.11:4100": upstream,
      "server 10.0.0.12:4100 max_fails=1 fail_timeout=5s;": "",
      "server 10.0.0.13:4100 max_fails=1 fail_timeout=5s;": "",
      "/etc/ssl/": `${folder}/`,
      "/var/log/nginx/": `${folder}/`,
    }),
    command: nginxCommand,
  },
  {
    file: "scale-out/haproxy.cfg",
    program: "haproxy",
    local: ({ folder, port, upstream }) => ({
      "bind :443": `bind 127.0.0.1:${port}`,
      "10.0.0.11:4100": upstream,
      "server two 10.0.0.12:4100": "",
      "server three 10.0.0.13:4100": "",
      "/etc/ssl/": `${folder}/`,
    }),
    command: (config) => ["-db", "-f", config],
  },
];

/** How long an answer may take to begin. */
const lasting = /(?:proxy_read_timeout|response_header_timeout|timeout (?:client|server)) (\d+)s/g;

const site = siteOf("sqlite", { production: { TOKEN: secret } });
beforeAll(async () => {
  const file = join(site.folder, "large.bin");
  writeFileSync(file, content);
  await site.json(["file", "put", "web", file, "--path", "large.bin", "--env", "production"]);
});

for (const recipe of recipes) {
  withPrograms([recipe.program, "openssl"], `TLS by docs/${recipe.file}`, (program, openssl) => {
    let folder: string;
    let server: Server;
    let key: Key;
    let proxy: Running;
    let origin: string;
    let port: number;

    beforeAll(async () => {
      folder = newFolder();
      makeCertificates(openssl ?? "", folder, "DNS:localhost,IP:127.0.0.1");
      const [certificate, itsKey] = ["keyhole.crt", "keyhole.key"].map((name) => readFileSync(join(folder, name)));
      writeFileSync(join(folder, "keyhole.pem"), `${certificate}${itsKey}`);
      key = await site.key("--org", "acme", "--resource", "variables,files");
      server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0", KEYHOLE_TRUSTED_PROXIES: "127.0.0.1" } });
      port = freePort();
      origin = `https://localhost:${port}`;
      let text = readFileSync(join(docs, recipe.file), "utf8");
      const upstream = new URL(server.origin).host;
      const local = { ...recipe.local({ folder, port, upstream }), ...opsPort(text, server) };
      for (const [from, to] of Object.entries(local)) {
        expect(text).toContain(from);
        text = text.replaceAll(from, to);
      }
      const config = join(folder, "config");
      writeFileSync(config, text);
      const env = { PATH: process.env["PATH"], HOME: folder };
      proxy = startProgram([program ?? "", ...recipe.command(config, folder)], { cwd: folder, env });
      const isServed = () => get("/api/v1/organization").then(({ status }) => status === 200);
      // HAProxy sends nothing to a server before it has passed two checks.
      const ended = proxy.ended.then(() => Promise.reject(new Error(`${program} ended: ${said()}`)));
      await Promise.race([ended, eventually(() => isServed().catch(() => false))]);
    });
    afterAll(async () => {
      await proxy?.stop();
      await server?.stop(); // a test stops it, too, and may not run
    });

    const said = () => Object.values(proxy.said()).join("");
    const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
      fetch(origin + path, {
        headers: { Authorization: `Bearer ${key.key}`, ...headers },
        redirect: "manual",
        keepalive: false,
        tls: { ca: readFileSync(join(folder, "ca.crt"), "utf8") },
      });
    const logs = () => said() + (recipe.program === "nginx" ? readFileSync(join(folder, "keyhole.log"), "utf8") : "");
    const client = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> => {
      const trusting = { NODE_EXTRA_CA_CERTS: join(folder, "ca.crt"), KEYHOLE_URL: origin };
      const where = { KEYHOLE_API_KEY: key.key, KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "production" };
      return runBinary(args, { cwd: folder, env: { ...trusting, ...where, ...env } });
    };

    test("keyhole pull reads a secret, if it trusts the authority, whatever else its environment turns off", async () => {
      expect(await client(["pull"])).toEqual({ exitCode: 0, stdout: `TOKEN=${secret}\n`, stderr: "" });
      for (const trusting of [{}, { NODE_TLS_REJECT_UNAUTHORIZED: "0" }]) {
        const doubtful = await client(["pull"], { NODE_EXTRA_CA_CERTS: "", ...trusting });
        expect(doubtful).toMatchObject({ exitCode: 6, stdout: "" });
        expect(doubtful.stderr).toMatch(/its certificate comes .*from an unknown authority/);
      }
    });

    test("a read waits for a change, and may do so for a minute", async () => {
      const path = "/api/v1/projects/web/variables?environment=staging";
      const tag = (await get(path)).headers.get("etag") ?? "";
      const asked = get(path, { "If-None-Match": tag, Prefer: "wait=60" });
      await eventually(async () => (await waitsOf(server)) === 1);
      await site.json(["var", "set", "acme/web", "staging", "TOKEN", "--value", `new-${port}`]);
      const answer = await asked;
      expect([answer.status, answer.headers.get("preference-applied")]).toEqual([200, "wait=60"]);
      expect(await answer.text()).toContain(`new-${port}`);
      const seconds = [...readFileSync(join(docs, recipe.file), "utf8").matchAll(lasting)].map(([, count]) => count);
      expect(seconds.length).toBeGreaterThan(0);
      for (const count of seconds) expect(Number(count)).toBeGreaterThan(62);
    });

    test("a file of 8 MiB passes whole", async () => {
      expect(await client(["files", "pull", "--root", folder])).toMatchObject({ exitCode: 0 });
      expect(readFileSync(join(folder, "large.bin")).equals(content)).toBe(true);
    });

    test("TLS 1.2 and 1.3 are spoken, 1.0 and 1.1 are not", () => {
      const speaks = (version: string) =>
        Bun.spawnSync([
          openssl ?? "",
          "s_client",
          version,
          "-cipher",
          "ALL:@SECLEVEL=0",
          "-connect",
          `127.0.0.1:${port}`,
        ]).exitCode === 0;
      expect(["-tls1", "-tls1_1", "-tls1_2", "-tls1_3"].map(speaks)).toEqual([false, false, true, true]);
    });

    test("every answer has Keyhole's headers and HSTS, and is not compressed", async () => {
      for (const [headers, status] of [
        [{}, 200],
        [{ Authorization: "Bearer kh_no" }, 401],
      ] as const) {
        const encodings = { "Accept-Encoding": "gzip, br, zstd", ...headers };
        const answer = await get("/api/v1/projects/web/variables?environment=production", encodings);
        expect(answer.status).toBe(status);
        expect(Object.fromEntries(answer.headers)).toMatchObject({
          "strict-transport-security": "max-age=31536000",
          "cache-control": "no-store",
          "x-request-id": expect.any(String),
        });
        expect(answer.headers.get("content-encoding")).toBeNull();
      }
    });

    test("plain HTTP is neither served nor redirected", async () => {
      const asked = fetch(`http://localhost:${port}/api/v1/organization`, { redirect: "manual" });
      const plain = await asked.then(({ status }) => status).catch(() => "cut");
      expect(plain).toBeOneOf([400, "cut"]);
      // Port 80 is not in the configuration, and Caddy opens it only for redirects.
      expect(listeningPorts(proxy.pid)).toEqual([port]);
      expect(await client(["pull"], { KEYHOLE_URL: `http://localhost:${port}` })).toMatchObject({ stdout: "" });
    });

    test("the audit has the caller's address, whatever the caller says", async () => {
      const id = `forwarded-${port}`;
      const claims = ["X-Forwarded-For: 203.0.113.9", "X-Forwarded-For: 127.0.0.1", "Forwarded: for=203.0.113.9"];
      const headers = [`Authorization: Bearer ${key.key}`, `x-request-id: ${id}`, ...claims];
      const options = ["--ipv4", "--interface", "127.0.0.2", "--cacert", join(folder, "ca.crt"), "--silent", "--fail"];
      const url = `${origin}/api/v1/projects/web/variables?environment=production`;
      const asked = Bun.spawn(["curl", ...options, ...headers.flatMap((one) => ["--header", one]), url]);
      expect(await asked.exited).toBe(0);
      const entries = (await site.json(["audit", "list"])) as { requestId: string; clientAddress: string }[];
      const address = entries.find(({ requestId }) => requestId === id)?.clientAddress;
      expect(address).toBe("127.0.0.2 via 127.0.0.1");
      // HAProxy's configuration has no log.
      if (recipe.program === "haproxy") return;
      const line = await eventually(() =>
        logs()
          .split("\n")
          .find((one) => one.includes(id)),
      );
      expect(line).toContain("127.0.0.2");
      expect(line).toContain("/api/v1/projects/web/variables");
      expect(line).not.toMatch(/environment|203\.0\.113\.9/);
    });

    test("without Keyhole it answers 502 or 503, and it never writes a key to a log", async () => {
      expect(await server.stop()).toBe(0);
      const answer = await get("/api/v1/organization");
      expect(answer.status).toBeOneOf([502, 503]);
      expect(logs()).not.toContain(key.key.slice(3));
    });
  });
}

const content = Buffer.alloc(bytesMax, "large and secret ");

/** HAProxy asks the second listener whether a server is ready. */
function opsPort(text: string, server: Server): Readonly<Record<string, string>> {
  return text.includes("check port 4101") ? { "check port 4101": `check port ${new URL(server.ops()).port}` } : {};
}

/** The TCP ports that a process listens on. Linux only. */
function listeningPorts(pid: number): number[] {
  // A connection may be closed between the two calls; what listens stays open.
  const targetOf = (fd: string) => attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`));
  const sockets = new Set(readdirSync(`/proc/${pid}/fd`).map(targetOf));
  const lines = ["tcp", "tcp6"].flatMap((kind) =>
    readFileSync(`/proc/${pid}/net/${kind}`, "utf8").split("\n").slice(1),
  );
  const listening = "0A";
  const ports = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === listening && sockets.has(`socket:[${inode}]`))
    .map(([, local = ""]) => Number.parseInt(local.split(":")[1] ?? "", 16));
  return [...new Set(ports)];
}
