/** PostgreSQL that answers as primary on two servers, or whose commits and locks keep a command waiting. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { runBinary } from "../support/keyhole.ts";
import { connectTo, type Replica } from "../support/postgres.ts";
import { withReplicas } from "../support/replicas.ts";
import { furnish, type Key, makeSite, type Site } from "../support/server.ts";

await withReplicas("two servers that answer as primary", (a, { urlOf, run }) => {
  let b: Replica;
  let site: Site;
  let keys: Key[];
  const keyhole = (args: readonly string[], ...replicas: readonly Replica[]) =>
    runBinary([...args], { cwd: site.folder, env: { ...site.env, DATABASE_URL: urlOf(...replicas) } });
  const isRevoked = async (replica: Replica, { id }: Key) =>
    (await run(replica, `select 1 from api_keys where id = '${id}' and revoked_at is not null`)).length === 1;
  const standbysOf = async (replica: Replica, names: string) => {
    await run(replica, `alter system set synchronous_standby_names = '${names}'`);
    await run(replica, "select pg_reload_conf()");
  };
  const nameOf = (replica: Replica) => new URL(replica.url).host;

  beforeAll(async () => {
    b = await a.startStandby();
    site = await makeSite("postgres", urlOf(a));
    await furnish(site, { staging: { TOKEN: "of-the-old" } });
    keys = [];
    while (keys.length < 4) keys.push(await site.key("--org", "acme"));
    await standbysOf(a, "*");
    await run(a, "insert into key_uses select id, 1 from api_keys limit 1 on conflict do nothing"); // reaches the standby
    await run(b, "select pg_promote(true, 60)");
  });
  afterAll(async () => {
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("are told apart: a command goes to the one whose commits pass, in whichever order they are named", async () => {
    for (const [order, key] of [
      [[a, b], keys[0]],
      [[b, a], keys[1]],
    ] as const) {
      const ran = await keyhole(["key", "revoke", (key as Key).id], ...order);
      expect(ran).toMatchObject({ exitCode: 0 });
      expect([await isRevoked(b, key as Key), await isRevoked(a, key as Key)]).toEqual([true, false]);
    }
  });

  test("of which none or both commit are refused, by their names", async () => {
    const both = `DATABASE_URL: ${nameOf(a)} and ${nameOf(b)} answer as primary, and commits of`;
    await standbysOf(b, "*");
    const none = await keyhole(["org", "list"], a, b);
    expect(none).toMatchObject({
      exitCode: 6,
      stdout: "",
      stderr: expect.stringContaining(`${both} none of them pass`),
    });
    for (const one of [a, b]) await standbysOf(one, "");
    const more = await keyhole(["org", "list"], a, b);
    expect(more).toMatchObject({
      exitCode: 6,
      stdout: "",
      stderr: expect.stringContaining(`${both} more than one pass`),
    });
    // One server by two names is one.
    const twice = urlOf(b, b);
    const env = { ...site.env, DATABASE_URL: twice };
    expect(await runBinary(["org", "list"], { cwd: site.folder, env })).toMatchObject({ exitCode: 0 });
  });

  test("and one alone whose standby is away keeps a command for 30 s, which says so at once and ends with 6", async () => {
    await standbysOf(a, "*");
    const ran = await keyhole(["key", "revoke", (keys[2] as Key).id], a);
    expect([ran.exitCode, ran.stdout]).toEqual([6, ""]);
    expect(ran.stderr.split("\n")).toEqual([
      `Waits for the commit on ${nameOf(a)}: a synchronous standby may be away.`,
      `keyhole: ${nameOf(a)} did not confirm the commit within 30 s: a synchronous standby may be away. What you asked for may be done all the same, at once or later: look before you run it again.`,
      "",
    ]);
    await standbysOf(a, "");
  });

  test("or somebody's lock keeps it: the command says whose, and ends with 6 and nothing done", async () => {
    const holder = connectTo(urlOf(b));
    const done = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<number>();
    const holding = holder.begin(async (sql) => {
      await sql`lock table api_keys in access exclusive mode`;
      locked.resolve((await sql`select pg_backend_pid() as pid`)[0]?.["pid"]);
      await done.promise;
    });
    const pid = await locked.promise;
    const key = keys[3] as Key;
    const ran = await keyhole(["key", "revoke", key.id], b);
    done.resolve();
    await holding;
    await holder.end({ timeout: 5 });
    expect([ran.exitCode, ran.stdout]).toEqual([6, ""]);
    expect(ran.stderr).toContain(`Waits for a lock on ${nameOf(b)}, held by process ${pid} (keyhole, `);
    expect(ran.stderr).toContain("has a lock that somebody else holds");
    expect(await isRevoked(b, key)).toBe(false);
  });
});
