import { expect, test } from "bun:test";
import { chmodSync, copyFileSync, lstatSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary, runBinary } from "../support/keyhole.ts";
import type { Ran } from "../support/program.ts";
import { keyOf, makeSite, siteOf } from "../support/server.ts";

/* `HOST=unix:/path`: the API on a socket, and clients that ask there. */

const site = siteOf("sqlite", { staging: { TOKEN: "value-on-a-socket" } });
const key = keyOf(site, "--name", "socket");

/** A socket in a folder of its own, since its path may have 107 bytes. */
function place(): { readonly path: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), "kh-"));
  return { path: join(folder, "api.sock"), [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
}

/** A server on a socket. */
function serve(path: string, settings: Readonly<Record<string, string>> = {}) {
  return site.serve({ env: { HOST: `unix:${path}`, ...settings } });
}

const asked = { KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "staging" };

/** `keyhole pull` as a machine that knows the socket alone. */
function pull(path: string): Promise<Ran> {
  const env = { KEYHOLE_URL: `unix:${path}`, KEYHOLE_API_KEY: key.key, ...asked };
  return runBinary(["pull"], { cwd: site.folder, env });
}

test("clients read over the socket, which only its owner may use, and which goes with the server", async () => {
  using socket = place();
  const server = await serve(socket.path, { KEYHOLE_TRUSTED_PROXIES: "unix" });
  expect(server.said().stderr).toContain(`Keyhole listens on unix:${socket.path}\n`);
  expect(server.said().stderr).not.toContain("WARNING");
  expect(lstatSync(socket.path).mode & 0o777).toBe(0o600);
  expect(await pull(socket.path)).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("value-on-a-socket") });
  const ran = await runBinary(["run", "--", "sh", "-c", "echo $TOKEN"], {
    cwd: site.folder,
    env: { PATH: "/usr/bin:/bin", KEYHOLE_URL: `unix:${socket.path}`, KEYHOLE_API_KEY: key.key, ...asked },
  });
  expect(ran).toMatchObject({ exitCode: 0, stdout: "value-on-a-socket\n" });
  const health = await runBinary(["health"], { env: { ...site.env, HOST: `unix:${socket.path}` } });
  expect(health).toMatchObject({ exitCode: 0, stderr: "Ready.\n" });
  const [read] = (await site.json(["audit", "list", "--action", "variables.read"])) as { clientAddress: string }[];
  expect(read?.clientAddress).toBe("");
  const behind = { Authorization: `Bearer ${key.key}`, "X-Forwarded-For": "198.51.100.1, 203.0.113.9" };
  const url = "http://localhost/api/v1/projects/web/variables?environment=staging";
  expect(await fetch(url, { unix: socket.path, headers: behind })).toMatchObject({ status: 200 });
  const [last] = (await site.json(["audit", "list", "--limit", "1"])) as { clientAddress: string }[];
  expect(last?.clientAddress).toBe("203.0.113.9 via unix");
  await server.stop();
  expect(lstatSync(socket.path, { throwIfNoEntry: false })).toBeUndefined();
  expect(await pull(socket.path)).toMatchObject({
    exitCode: 6,
    stdout: "",
    stderr: expect.stringContaining(`${socket.path} cannot be reached: there is no such socket.`),
  });
  const unhealthy = await runBinary(["health"], { env: { ...site.env, HOST: `unix:${socket.path}` } });
  expect(unhealthy).toMatchObject({ exitCode: 6, stderr: `keyhole: The server at ${socket.path} did not answer.\n` });
});

test("a server that stops leaves the socket of the server that came after it", async () => {
  using socket = place();
  const first = await serve(socket.path);
  rmSync(socket.path);
  const other = await makeSite("sqlite");
  await other.json(["org", "create", "acme"]);
  const second = await other.serve({ env: { HOST: `unix:${socket.path}` } });
  await first.stop();
  expect(await runBinary(["health"], { env: { HOST: `unix:${socket.path}` } })).toMatchObject({ exitCode: 0 });
  await second.stop();
  expect(readdirSync(join(socket.path, ".."))).toEqual([]);
  await other.remove();
});

test("its mode and its group are as they are set", async () => {
  using socket = place();
  const group = process.getuid?.() === 0 ? "daemon" : String(process.getgid?.());
  const server = await serve(socket.path, { KEYHOLE_SOCKET_MODE: "0660", KEYHOLE_SOCKET_GROUP: group });
  const { mode, gid } = lstatSync(socket.path);
  expect([mode & 0o777, gid]).toEqual([0o660, process.getuid?.() === 0 ? 1 : (process.getgid?.() ?? 0)]);
  await server.stop();
});

test("one that a killed server left is taken over, and no other file and no server that answers is", async () => {
  using socket = place();
  const first = await serve(socket.path);
  const second = await runBinary(["serve"], { env: { ...site.env, HOST: `unix:${socket.path}` } });
  expect(second).toMatchObject({ exitCode: 6, stderr: `keyhole: A server listens on ${socket.path} already.\n` });
  await first.stop("SIGKILL");
  expect(lstatSync(socket.path).isSocket()).toBe(true);
  const next = await serve(socket.path);
  expect((await pull(socket.path)).exitCode).toBe(0);
  await next.stop();
  writeFileSync(socket.path, "mine");
  const refused = await runBinary(["serve"], { env: { ...site.env, HOST: `unix:${socket.path}` } });
  expect(refused.stderr).toBe(`keyhole: ${socket.path} is there and no socket: name another path.\n`);
  expect(lstatSync(socket.path).isFile()).toBe(true);
});

test.if(process.getuid?.() === 0)(
  "the socket of another account is no leftover, since it cannot be asked",
  async () => {
    using socket = place();
    const server = await serve(socket.path);
    chmodSync(join(socket.path, ".."), 0o777);
    const program = join(socket.path, "../keyhole");
    copyFileSync(binary, program);
    chmodSync(program, 0o755);
    const other = { HOST: `unix:${socket.path}`, KEYHOLE_DATA: join(socket.path, "../data") };
    const ran = await runBinary(["serve"], { env: other, as: ["setpriv", "--reuid=65534", "--clear-groups"], program });
    expect(ran.stderr).toBe(`keyhole: ${socket.path} is there, and cannot be asked (EACCES): name another path.\n`);
    expect([ran.exitCode, (await pull(socket.path)).exitCode]).toEqual([6, 0]);
    await server.stop();
  },
);

test("a socket that cannot be made is refused in one sentence", async () => {
  using socket = place();
  const failed = async (env: Readonly<Record<string, string>>, ...args: string[]) => {
    const { exitCode, stderr } = await runBinary(["serve", ...args], { env: { ...site.env, ...env } });
    return [exitCode, stderr.replaceAll(socket.path, "PATH")];
  };
  expect(await failed({ HOST: "unix:api.sock" })).toEqual([
    2,
    "keyhole: HOST must be unix: and an absolute path of at most 107 bytes, such as unix:/run/keyhole/api.sock.\n",
  ]);
  expect(await failed({ HOST: `unix:/${"x".repeat(107)}` })).toEqual([2, expect.stringContaining("107 bytes")]);
  expect(await failed({ HOST: `unix:${socket.path}/none/x.sock` })).toEqual([
    6,
    "keyhole: Cannot listen on PATH/none/x.sock: its folder does not exist.\n",
  ]);
  expect(await failed({ HOST: `unix:${socket.path}`, KEYHOLE_SOCKET_MODE: "777" })).toEqual([
    2,
    "keyhole: KEYHOLE_SOCKET_MODE must be a mode in octal such as 0600, 0660 or 0666.\n",
  ]);
  expect(await failed({ HOST: `unix:${socket.path}`, KEYHOLE_SOCKET_GROUP: "no-such-group" })).toEqual([
    6,
    "keyhole: There is no group no-such-group in /etc/group: KEYHOLE_SOCKET_GROUP may be its number.\n",
  ]);
  expect(await failed({ KEYHOLE_SOCKET_MODE: "0660" })).toEqual([
    2,
    "keyhole: KEYHOLE_SOCKET_MODE is set without HOST=unix:/path, which makes a socket.\n",
  ]);
  if (process.getuid?.() !== 0) {
    chmodSync(join(socket.path, ".."), 0o500);
    expect((await failed({ HOST: `unix:${socket.path}` }))[1]).toContain("its folder does not allow it");
    chmodSync(join(socket.path, ".."), 0o700);
  }
});

test("a server listens on IPv6, and clients reach it there", async () => {
  const server = await site.serve({ env: { HOST: "::1" } });
  expect(server.origin).toMatch(/^http:\/\/\[::1\]:\d+$/);
  const env = { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key, ...asked };
  const { exitCode, stdout } = await runBinary(["pull"], { cwd: site.folder, env });
  expect([exitCode, stdout.includes("value-on-a-socket")]).toEqual([0, true]);
  await server.stop();
});
