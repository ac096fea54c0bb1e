import { beforeAll, expect, test } from "bun:test";
import { endlessName, startProxy } from "../support/proxy.ts";
import { eventually, type Key, onPostgres, siteOf } from "../support/server.ts";

const path = "/projects/web/variables?environment=staging&metadata_only=true";

onPostgres("a malformed answer of the database that makes the driver spin for ever", () => {
  const site = siteOf("postgres", { staging: { TOKEN: "not-a-secret" } });
  let key: Key;
  beforeAll(async () => {
    key = await site.key("--org", "acme");
  });

  const throughProxy = async (...args: string[]) => {
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    const proxy = await startProxy(new URL(url));
    url.host = `127.0.0.1:${proxy.port}`;
    const server = await site.serve({ args, env: { DATABASE_URL: url.href } });
    expect((await server.get(path, key.key)).status).toBe(200);
    return { proxy, server };
  };

  test("ends a lone process, which hears no SIGTERM, within seconds and with one line in the log", async () => {
    const { proxy, server } = await throughProxy();
    proxy.alter(() => endlessName);
    const asked = server.get(path, key.key).catch(() => "cut");
    server.signal("SIGTERM");
    expect(await server.ended).not.toBe(0);
    expect(await asked).toBe("cut");
    const lines = server.said().stdout.match(/"event":"event_loop_stuck"[^\n]*/g);
    expect(lines).toEqual([`"event":"event_loop_stuck","pid":${server.pid},"seconds":10}`]);
    await proxy.stop();
  });

  test("ends a worker, and another takes its place", async () => {
    const { proxy, server } = await throughProxy("--workers", "2");
    proxy.alter(() => endlessName);
    void server.get(path, key.key).catch(() => {});
    await eventually(() => server.said().stdout.includes('"event":"worker_died"'), 30_000);
    expect(server.said().stdout).toMatch(/"event":"event_loop_stuck","pid":\d+,"seconds":10}/);
    await eventually(async () => {
      const answer = await server.get(path, key.key).catch(() => undefined);
      return answer?.status === 200;
    }, 30_000);
    await server.kill();
    await proxy.stop();
  });
});
