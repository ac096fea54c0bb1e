/** What people read if a proxy of the environment is in the way: which proxy, which setting, what to do. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type AddressInfo, createServer, type Server } from "node:net";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { binary, makePlace, runBinary } from "../support/keyhole.ts";

const servers: Server[] = [];
afterAll(() => {
  for (const server of servers) server.close();
});

/** A proxy that answers each CONNECT with this. Returns its address. */
async function startProxy(status: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {}).once("data", () => socket.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const url = "https://keyhole.test:4983";
const through = (setting: string, address: string) =>
  `cannot be reached through the proxy of ${setting} (${address}): `;
let at407 = "";
beforeAll(async () => {
  at407 = await startProxy("407 Proxy Authentication Required");
});

const settings = () => ({
  ...{ KEYHOLE_URL: url, KEYHOLE_API_KEY: mintKey() },
  ...{ KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "staging" },
});
const ask = (args: readonly string[], proxy: Readonly<Record<string, string>>) =>
  runBinary(args, { env: { PATH: process.env["PATH"] ?? "", ...settings(), ...proxy } });

describe("a proxy is named with its setting, and without its password", () => {
  for (const [command, exitCode] of [
    [["run", "--", "true"], 125],
    [["pull"], 6],
    [["files", "pull"], 6],
  ] as const) {
    test(`by ${command[0]}`, async () => {
      const ran = await ask(command, { HTTPS_PROXY: `http://user:geheim@${at407}` });
      const why = "the proxy answered 407, so it wants a user and a password, as in http://USER:PASSWORD@HOST:PORT.";
      const stderr = `keyhole: ${url} ${through("HTTPS_PROXY", at407)}${why}\n`;
      expect(ran).toEqual({ exitCode, stdout: "", stderr });
    });
  }

  test("by mcp", async () => {
    const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } };
    const lines = [
      { jsonrpc: "2.0", id: 1, method: "initialize", params },
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_projects", arguments: {} } },
    ];
    const child = Bun.spawn([binary, "mcp"], {
      env: { PATH: process.env["PATH"] ?? "", ...settings(), HTTPS_PROXY: `http://user:geheim@${at407}` },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    for (const line of lines) child.stdin.write(`${JSON.stringify(line)}\n`);
    child.stdin.flush();
    let stdout = "";
    for await (const bytes of child.stdout) {
      stdout += new TextDecoder().decode(bytes);
      if (stdout.includes('"id":2')) break;
    }
    child.stdin.end();
    expect(stdout).toContain(`${through("HTTPS_PROXY", at407)}the proxy answered 407`);
    expect(stdout).not.toContain("geheim");
    await child.exited;
  });

  test("by whoever asks for an issuer's keys", async () => {
    const place = makePlace({ KEYHOLE_ACTOR: "ann", HTTPS_PROXY: `http://user:geheim@${at407}` });
    try {
      await place.keyhole(["org", "create", "acme"]);
      await place.keyhole(["project", "create", "acme/web"]);
      const terms = ["--issuer", "https://issuer.test", "--audience", "keyhole", "--claim", "sub=job"];
      const reach = ["--project", "web", "--env", "staging"];
      const { id } = (await place.json(["trust", "add", "--org", "acme", "--name", "job", ...terms, ...reach])) as {
        id: string;
      };
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
      const now = Math.floor(Date.now() / 1000);
      const claims = { iss: "https://issuer.test", aud: "keyhole", sub: "job", iat: now, exp: now + 300 };
      const token = `${part({ alg: "RS256", kid: "k" })}.${part(claims)}.${"a".repeat(342)}`;
      const ran = await place.keyhole(["trust", "test", id], token);
      expect(ran.stderr).toContain(`it ${through("HTTPS_PROXY", at407)}the proxy answered 407`);
      expect(ran.stderr).not.toContain("geheim");
    } finally {
      place.remove();
    }
  });
});

const socks = "only proxies of http:// and https:// can be used, not of SOCKS.";
test.each<[what: string, setting: string, scheme: string, proxy: string, says: string]>([
  ["refuses", "https_proxy", "http", "403 Forbidden", "the proxy answered 403, so it does not allow this host."],
  ["fails", "ALL_PROXY", "http", "502 Bad Gateway", "the proxy answered 502."],
  ["is away", "HTTPS_PROXY", "http", "127.0.0.1:1", "the connection was refused."],
  ["does not exist", "HTTPS_PROXY", "http", "proxy.invalid:3128", "there is no such host."],
  ["speaks SOCKS", "HTTPS_PROXY", "socks5", "127.0.0.1:1080", socks],
])("a proxy that %s is named", async (_, setting, scheme, proxy, says) => {
  const address = proxy.includes(":") ? proxy : await startProxy(proxy);
  const { stderr } = await ask(["pull"], { [setting]: `${scheme}://user:geheim@${address}` });
  expect(stderr).toContain(through(setting, address) + says);
  expect(stderr).not.toContain("geheim");
});

test("a proxy that is not asked is not named", async () => {
  const { stderr } = await ask(["pull"], { HTTPS_PROXY: `http://${at407}`, NO_PROXY: "example.com, .test" });
  expect(stderr).toBe(`keyhole: ${url} cannot be reached: there is no such host.\n`);
});
