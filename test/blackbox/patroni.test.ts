/** docs/failover.md, with Patroni's own programs: nothing that was acknowledged is lost, and nobody restarts a server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { parse } from "yaml";
import { type Outcome, startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { blockOf } from "../support/markdown.ts";
import { type Member, type Patroni, startPatroni } from "../support/patroni.ts";
import { runOn } from "../support/postgres.ts";
import { withPrograms } from "../support/programs.ts";
import { furnish, type Key, makeKeys, makeSite, type Server, type Site } from "../support/server.ts";

setDefaultTimeout(240_000);

const values = "/projects/web/variables?environment=staging";

withPrograms(["patroni", "patronictl", "etcd", "pg_basebackup"], "a cluster that Patroni keeps", (...programs) => {
  let patroni: Patroni;
  let site: Site;
  let servers: Server[];
  let keys: readonly Key[];

  beforeAll(async () => {
    const { dcs } = parse(blockOf("docs/failover.md", "yaml", "synchronous_mode"));
    patroni = await startPatroni(dcs, programs);
    await patroni.leader();
    await runOnLeader("create database keyhole encoding 'UTF8' template template0", "postgres");
    site = await makeSite("postgres", patroni.urlOf("keyhole"));
    await furnish(site, { staging: { TOKEN: "kept" } });
    keys = await makeKeys(site, 60, "variables");
    const serve = () => site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    servers = [await serve(), await serve()];
  }, 240_000);
  afterAll(async () => {
    await site?.remove();
    await patroni?.stop();
  }, 120_000);

  const runOnLeader = async (statement: string, database = "keyhole") => {
    const { host } = await patroni.leader();
    const url = new URL(patroni.urlOf(database).replace(/@[^/]*/, `@${host}`));
    return runOn(url.href, statement);
  };

  test.each<[string, (leader: Member) => Promise<() => void>]>([
    [
      "a switchover",
      async ({ name }) => {
        const { exitCode, stdout } = await patroni.ctl("switchover", "--leader", name, "--force");
        expect([exitCode, stdout]).toEqual([0, expect.stringContaining("Successfully switched over")]);
        return () => {};
      },
    ],
    ["a node of the leader that is lost", async ({ kill }) => kill()],
  ])("%s under load loses nothing that was acknowledged, a revocation included", async (_, act) => {
    const before = await patroni.leader();
    const revoked = await site.key("--org", "acme");
    const load = servers.map((server, at) =>
      startReaders(
        2,
        () => server.origin,
        (client, request) => ({ path: values, key: (keys[(at + 2 * client + 7 * request) % keys.length] as Key).key }),
        100,
      ),
    );
    const served = (since: number) => (one: Outcome) => one.status === 200 && one.beganAt > since;
    await Promise.all(load.map((one) => one.more(20, served(0))));
    await site.json(["key", "revoke", revoked.id]);
    const again = await act(before);
    const after = await eventually(async () => {
      const leader = await patroni.leader();
      return leader.name !== before.name && leader;
    });
    const since = Math.max(...load.flatMap(({ outcomes }) => outcomes.map(({ endedAt }) => endedAt)));
    await Promise.all(load.map((one) => one.more(20, served(since))));
    const outcomes = (await Promise.all(load.map((one) => one.stop()))).flat();
    expect(outcomes.map(({ status }) => status).filter((one) => ![200, 429, 503].includes(one as number))).toEqual([]);

    const audited = new Set(
      (await runOnLeader("select request_id from audit_entries")).map((row) => row["request_id"]),
    );
    const answered = outcomes.filter(({ status }) => status === 200);
    expect(answered.length).toBeGreaterThan(80);
    expect(answered.filter(({ requestId }) => !audited.has(requestId))).toEqual([]);
    for (const server of servers) {
      expect((await server.get(values, revoked.key)).status).toBe(401);
      await eventually(async () => (await fetch(`${server.ops()}/readyz`)).status === 200);
    }
    expect(await site.keyhole(["audit", "verify"])).toMatchObject({ exitCode: 0 });
    expect(after.name).not.toBe(before.name);
    again();
  });
});
