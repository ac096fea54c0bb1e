/** A standby that is promoted without the newest write: its next write looks like the lost one. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createDatabase, type Replica, runOn, startPrimary, urlOn } from "../support/postgres.ts";
import { eventually, furnish, type Key, makeSite, type Row, type Server, type Site } from "../support/server.ts";

setDefaultTimeout(120_000);

const values = "/projects/web/variables?environment=staging";
const first = await startPrimary();
if (first) describe("a write that a failover lost", () => lostWrite(first));
else process.stderr.write("There is no pg_basebackup on this machine: a lost write is not tested.\n");

function lostWrite(a: Replica): void {
  let b: Replica;
  let database: string;
  let site: Site;
  let server: Server;
  let key: Key;
  const run = (replica: Replica, statement: string) => runOn(urlOn(database, [replica]), statement);
  const isTrue = async (replica: Replica, condition: string) =>
    (await run(replica, `select 1 where ${condition}`)).length > 0;
  const rowVersion = async (replica: Replica) =>
    (
      await run(
        replica,
        "select version::int, xmin::text::int, ctid::text from sets where kind = 'variables' and environment = 'staging'",
      )
    )[0] as Row;
  const read = async () => {
    const { status, headers, json } = await server.get(values, key.key);
    return { status, etag: headers.get("etag"), values: status === 200 ? valuesIn(json()) : [] };
  };

  beforeAll(async () => {
    database = (await createDatabase(a.url)).url;
    b = await a.startStandby();
    site = await makeSite("postgres", urlOn(database, [a, b]));
    await furnish(site, { staging: { TOKEN: "first" } });
    key = await site.key("--org", "acme");
    server = await site.serve();
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("is not served any more, although the next write has the same version, xmin and ctid", async () => {
    await eventually(() => isTrue(a, "exists (select from pg_stat_replication where state = 'streaming')"));
    await eventually(() =>
      isTrue(a, "exists (select from pg_stat_replication where flush_lsn >= pg_current_wal_flush_lsn())"),
    );
    await run(b, "alter system set primary_conninfo = ''");
    await run(b, "select pg_reload_conf()");
    await eventually(() => isTrue(a, "not exists (select from pg_stat_replication where state = 'streaming')"));
    // Room for what the promotion itself writes.
    for (let count = 0; count < 100; count++) await run(a, "select pg_current_xact_id()");
    await site.json(["var", "set", "web", "staging", "TOKEN"], "lost");
    const lost = await rowVersion(a);
    const before = await read();
    expect(before).toMatchObject({ status: 200, values: ["lost"] });

    process.kill(a.pid as number, "SIGKILL");
    await run(b, "select pg_promote(true, 60)");
    const isNext = `pg_snapshot_xmax(pg_current_snapshot())::text::int = ${lost["xmin"]}`;
    const burnt = "select pg_current_xact_id()::text::int as xid";
    while (!(await isTrue(b, isNext))) expect((await run(b, burnt))[0]?.["xid"]).toBeLessThan(lost["xmin"] as number);
    await site.json(["var", "set", "web", "staging", "TOKEN"], "written");
    expect(await rowVersion(b)).toEqual(lost);

    await eventually(async () => (await read()).status === 200);
    const after = await read();
    expect(after.values).toEqual(["written"]);
    expect(after.etag).not.toBe(before.etag);
    const { status } = await server.get(values, key.key, { "If-None-Match": before.etag ?? "" });
    expect(status).toBe(200);
  });
}

function valuesIn(body: unknown): string[] {
  return (body as { variables: { value: string }[] }).variables.map(({ value }) => value);
}
