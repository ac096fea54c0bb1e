import { describe, expect, test } from "bun:test";
import { stoodStillMs } from "../support/clock.ts";
import { Cut, connect } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { childrenOf, isRunning } from "../support/freeze.ts";
import { expectOneBucket, type Key, onPostgres, type Server, siteOf } from "../support/server.ts";

const path = "/projects/web/variables?environment=staging";
const names = "/projects/web/variables?environment=staging&metadata_only=true";

onPostgres("workers", () => {
  const site = siteOf("postgres", { staging: { TOKEN: "not-a-secret" } });

  const newKey = (rate = 1): Promise<Key> =>
    site.key("--org", "acme", "--project", "web", "--env", "staging", "--rate", String(rate));
  const serve = (count: number) => site.serve({ args: ["--workers", String(count)], env: { KEYHOLE_OPS_PORT: "0" } });

  test("without a store all workers together enforce one limit per key, whatever its rate", async () => {
    const server = await serve(4);
    for (const rate of [1, 2]) await expectOneBucket(() => newKey(rate), path, [server], rate);
    expect(await server.stop()).toBe(0);
  });

  test("health and metrics are those of all workers, and one that dies is restarted while the port keeps answering", async () => {
    const { key } = await newKey();
    const server = await serve(2);
    const ops = server.ops();
    for (let asked = 0; asked < 20; asked++) expect((await server.get(names, key)).status).toBe(200);
    const text = await (await fetch(`${ops}/metrics`)).text();
    const asked = /^keyhole_requests_total\{route="\/projects\/\{slug\}\/variables",status="200",code="ok"\} 20$/m;
    expect(text).toMatch(asked);
    expect(text).toMatch(/^keyhole_workers 2$/m);
    expect(text).toMatch(/^keyhole_build_info\{.*\} 1$/m);
    const ready = await fetch(`${ops}/readyz`);
    expect(ready.status).toBe(200);
    const audit = { audit: true, history: true, comparison: true, notary: true };
    const others = { primary: true, migrations: true, root_key: true, ...audit };
    const checks = { workers: true, database: true, ...others };
    expect(await ready.json()).toEqual({ status: "ready", failed: [], checks });

    const before = workersOf(server);
    expect(before.length).toBe(2);
    process.kill(before[0] as number, "SIGKILL");
    await restarts(server, 1);
    const now = await eventually(() => (workersOf(server).length === 2 ? workersOf(server) : undefined));
    expect(now).toContain(before[1] as number);
    expect(now).not.toContain(before[0] as number);
    for (let asked = 0; asked < 10; asked++) expect((await server.get(names, key)).status).toBe(200);
    const after = await (await fetch(`${ops}/metrics`)).text();
    expect(after).toMatch(/^keyhole_ready 1$/m);
    expect(after).toMatch(/^keyhole_check_passes\{check="workers"\} 1$/m);
    expect(await server.stop()).toBe(0);
    expect(server.said().stdout).toMatch(/"event":"worker_died","pid":\d+,"exitCode":null,"signal":"SIGKILL"/);
  });

  test.each([false, true])(
    "a signal to parent and workers at once cuts nothing off, one ended before: %p",
    async (before) => {
      const keys = await Promise.all(Array.from({ length: 4 }, () => newKey()));
      const server = await serve(2);
      if (before) {
        process.kill(workersOf(server)[0] as number, "SIGTERM");
        await restarts(server, 1);
      }
      const workers = workersOf(server);
      let signalled = false;
      // Each sends one request per connection until connections are refused.
      const caller = async ({ key }: Key) => {
        for (let answered = 0; ; answered++) {
          const connection = await connect(server.origin).catch((error: { code?: string }) => error.code);
          if (typeof connection !== "object") {
            expect({ connection, signalled }).toEqual({ connection: "ECONNREFUSED", signalled: true });
            return answered;
          }
          const stood = stoodStillMs();
          try {
            const { status } = await connection.get(`/api/v1${names}`, { Authorization: `Bearer ${key}` });
            expect(status).toBeOneOf([200, 429]);
          } catch (error) {
            // A connection that sends nothing is closed after 0.1 s, so this is right if this process stood still.
            if (!(error instanceof Cut) || error.received.length > 0 || stoodStillMs() === stood) throw error;
          }
          connection.close();
        }
      };
      const callers = keys.map(caller);
      await server.get(names, keys[0]?.key ?? "");
      signalled = true;
      for (const pid of [server.pid, ...workers]) process.kill(pid, "SIGTERM");
      expect(await server.ended).toBe(0);
      for (const answered of await Promise.all(callers)) expect(answered).toBeGreaterThan(0);
      for (const pid of workers) expect(isRunning(pid)).toBe(false);
    },
  );

  test("workers stop by themselves if their parent is gone", async () => {
    const server = await serve(2);
    const workers = workersOf(server);
    await server.stop("SIGKILL");
    await eventually(() => !workers.some(isRunning));
    await expect(connect(server.origin)).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("a port that is in use is refused, also if another server's workers share it", async () => {
    const first = await serve(2);
    const { port } = new URL(first.origin);
    const second = await site.keyhole(["serve", "--port", port, "--workers", "2"]);
    expect(second).toMatchObject({ exitCode: 6 });
    expect(second.stderr).toContain(`The address 127.0.0.1:${port} is in use`);
    expect(await first.stop()).toBe(0);
  });
});

describe("workers without PostgreSQL", () => {
  const site = siteOf("sqlite");

  test("--workers 1 is an ordinary server", async () => {
    const server = await site.serve({ args: ["--workers", "1"] });
    expect(await server.stop()).toBe(0);
  });
});

/** Waits until this many workers were restarted and two listen. */
async function restarts(server: Server, count: number): Promise<void> {
  await eventually(async () => {
    const text = await (await fetch(`${server.ops()}/metrics`)).text();
    const restarted = new RegExp(`^keyhole_worker_restarts_total ${count}$`, "m").test(text);
    return restarted && /^keyhole_workers 2$/m.test(text);
  });
}

function workersOf({ pid }: Server): number[] {
  return childrenOf(pid);
}
