import { expect, test } from "bun:test";
import { endlessName, startProxy } from "../support/proxy.ts";
import { keyOf, onPostgres, siteOf } from "../support/server.ts";

const path = "/projects/web/variables?environment=staging&metadata_only=true";

onPostgres("a malformed answer of the database that makes the driver spin for ever", () => {
  const site = siteOf("postgres", { staging: { TOKEN: "not-a-secret" } });
  const key = keyOf(site, "--org", "acme");

  // Workers start their watchdog in the same line of serve, and workers.test.ts has one that dies.
  test("ends the process, which hears no SIGTERM, within seconds and with one line in the log", async () => {
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    const proxy = await startProxy(new URL(url));
    url.host = `127.0.0.1:${proxy.port}`;
    const server = await site.serve({ env: { DATABASE_URL: url.href } });
    expect((await server.get(path, key.key)).status).toBe(200);
    proxy.alter(() => endlessName);
    const asked = server.get(path, key.key).catch(() => "cut");
    server.signal("SIGTERM");
    expect(await server.ended).not.toBe(0);
    expect(await asked).toBe("cut");
    const lines = server.said().stdout.match(/"event":"event_loop_stuck"[^\n]*/g);
    expect(lines).toEqual([`"event":"event_loop_stuck","pid":${server.pid},"seconds":10}`]);
    await proxy.stop();
  });
});
