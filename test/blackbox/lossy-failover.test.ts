/** A primary that fails with what its standby has not received: what the audit says of it. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createDatabase, type Replica, runOn, startPrimary, urlOn } from "../support/postgres.ts";
import { skipWithout } from "../support/programs.ts";
import { eventually, furnish, type Key, makeSite, type Server, type Site } from "../support/server.ts";

setDefaultTimeout(120_000);

const values = "/projects/web/variables?environment=staging";

const first = await startPrimary();
if (first) describe("a failover that loses the newest entries", () => lossyFailover(first));
else skipWithout(["pg_basebackup"], "a failover that loses the newest entries");

function lossyFailover(a: Replica): void {
  let b: Replica;
  let database: string;
  let site: Site;
  let server: Server;
  let key: Key;
  /** What the servers logged. */
  let log: Buffer;
  const urlOf = (...replicas: readonly Replica[]) => urlOn(database, replicas);
  const run = (replica: Replica, statement: string) => runOn(urlOf(replica), statement);
  const read = async () => (await server.get(values, key.key)).status;
  const isStreaming = async () => (await run(a, "select 1 from pg_stat_replication where state = 'streaming'")).length;
  const verify = async (...args: readonly string[]) => {
    const ran = await site.keyhole(["audit", "verify", "--json", "--checkpoint", "-", ...args], log);
    const { flaws = [], accepted } = JSON.parse(ran.stdout || "{}");
    return { exitCode: ran.exitCode, flaws, accepted };
  };

  beforeAll(async () => {
    database = (await createDatabase(a.url)).url;
    b = await a.startStandby();
    site = await makeSite("postgres", urlOf(a, b));
    await furnish(site, { staging: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
    server = await site.serve();
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("is one closed gap at the end of a lane, and one in the commands' lane", async () => {
    for (let count = 0; count < 3; count++) expect(await read()).toBe(200);
    const received = "select 1 from pg_stat_replication where flush_lsn >= pg_current_wal_flush_lsn()";
    await eventually(async () => (await run(a, received)).length > 0);
    const [lane] = await run(
      b,
      "select lane, max(last_seq)::int as seq from audit_segments where lane <> 'commands' group by 1",
    );
    const [people] = await run(b, "select seq::int from audit_heads");
    expect(lane?.["seq"]).toBe(3);

    await run(b, "alter system set primary_conninfo = ''");
    await run(b, "select pg_reload_conf()");
    await eventually(async () => (await isStreaming()) === 0);
    for (let count = 0; count < 10; count++) expect(await read()).toBe(200);
    await site.json(["var", "set", "web", "staging", "TOKEN"], "lost");
    const witness = await site.serve(); // its log has the end of the commands' lane
    await eventually(async () => witness.said().stdout.includes('"lane":"commands"'));
    await witness.kill();
    process.kill(a.pid as number, "SIGKILL");
    await run(b, "select pg_promote(true, 60)");
    await eventually(async () => (await read()) === 200);
    for (let count = 0; count < 3; count++) expect(await read()).toBe(200);
    expect(await server.stop()).toBe(0);
    log = Buffer.from(witness.said().stdout + server.said().stdout);

    expect((await site.keyhole(["audit", "verify"])).exitCode).toBe(0);
    const seq = people?.["seq"] as number;
    expect(await verify()).toEqual({
      exitCode: 1,
      flaws: [
        { lane: "commands", seq: seq + 1, lastSeq: seq + 1, what: "lost" },
        { lane: lane?.["lane"], seq: 4, lastSeq: 13, what: "lost" },
      ],
      accepted: [],
    });
    const gaps = [`${lane?.["lane"]}:4-13`, `commands:${seq + 1}-${seq + 1}`];
    expect(await verify("--accept", gaps.join())).toMatchObject({ exitCode: 0, flaws: [] });
    expect((await verify()).accepted).toHaveLength(2);
  });

  test("hides nothing that comes after it", async () => {
    await site.json(["var", "set", "web", "staging", "TOKEN"], "written again");
    expect(await verify()).toMatchObject({ exitCode: 0, flaws: [] });
    await run(b, "delete from audit_segments where lane = 'commands' and first_seq = 2");
    await run(b, "update audit_segments set entries = '' where first_seq = 2 and lane <> 'commands'");
    const { exitCode, flaws, accepted } = await verify();
    expect([exitCode, accepted.length]).toEqual([1, 2]);
    const lanes = await run(b, "select distinct lane from audit_segments where first_seq = 2 order by 1");
    expect(flaws).toEqual([
      ...lanes.map(({ lane }) => ({ lane, seq: 2, lastSeq: 2, what: "broken" })),
      { lane: "commands", seq: 2, lastSeq: 2, what: "broken" },
    ]);
  });
}
