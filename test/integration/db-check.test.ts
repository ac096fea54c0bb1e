/** `keyhole db check`: what it says of the servers of DATABASE_URL, and when a failover could lose something. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { judgeHosts } from "../../src/cli/check-database.ts";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import type { Host, PrimaryFacts } from "../../src/installation/check-database.ts";
import type { Database } from "../../src/store/database.ts";
import { openPostgres, Servers } from "../../src/store/postgres.ts";
import { eventually } from "../support/eventually.ts";
import { runHere } from "../support/here.ts";
import { freePort } from "../support/port.ts";
import { type Replica, urlOn } from "../support/postgres.ts";
import { withReplicas } from "../support/replicas.ts";
import { makeSite, type Site } from "../support/server.ts";

await withReplicas("db check", (a, { urlOf, run, received }) => {
  let b: Replica;
  let site: Site;
  const opened: Database[] = [];
  const nameOf = (replica: Replica) => new URL(replica.url).host;
  const check = (url: string, ...args: readonly string[]) =>
    runHere(["db", "check", ...args], { cwd: site.folder, env: { ...site.env, DATABASE_URL: url }, stdin: "" });
  const standbysOf = async (replica: Replica, names: string) => {
    await run(replica, `alter system set synchronous_standby_names = '${names}'`);
    await run(replica, "select pg_reload_conf()");
    const isSet = `select 1 where current_setting('synchronous_standby_names') = '${names}'`;
    await eventually(async () => (await run(replica, isSet)).length === 1);
  };
  /** Connects as a process of Keyhole does. */
  const connectAs = async (use: "notary" | "journal") => {
    const database = openPostgres(new Servers(parsePostgresUrl(urlOf(a), {}).servers), use);
    opened.push(database);
    await database.query(sql`select 1 as one`)({});
  };

  beforeAll(async () => {
    site = await makeSite("postgres", urlOf(a));
    expect((await site.here(["org", "create", "acme"])).exitCode).toBe(0);
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    await site?.remove();
    await b?.stop();
    await a.stop();
  });

  test("ends with 1 for a server alone, and says all that is missing", async () => {
    const { exitCode, stdout, stderr } = await check(urlOf(a));
    expect(exitCode).toBe(1);
    expect(stdout).toContain(`${nameOf(a)} is primary: PostgreSQL 1`);
    expect(stdout).toContain("commits pass; no commit waits for a standby.\n");
    expect(stdout).toContain(`No serve is connected to ${nameOf(a)}.\nNo notary is connected to ${nameOf(a)}.\n`);
    expect(stderr).toBe(
      `keyhole: A failover could lose reads that were acknowledged, or hide it. No commit on ${nameOf(a)} waits for a standby: set synchronous_standby_names there. No notary is connected: nobody would notice a loss.\n`,
    );
  });

  test("ends with 0 if commits wait for a standby and a notary is connected", async () => {
    b = await a.startStandby();
    await standbysOf(a, "*");
    await connectAs("notary");
    await connectAs("journal");
    await received(a);
    const { exitCode, stdout, stderr } = await check(urlOf(b, a));
    expect([exitCode, stderr]).toEqual([
      0,
      "A failover to a synchronous standby loses no read that was acknowledged.\n",
    ]);
    expect(stdout).toStartWith(`${nameOf(b)} is a standby.\n${nameOf(a)} is primary: `);
    expect(stdout).toContain("; commits pass; synchronous_standby_names = *.\n");
    expect(stdout).toContain(`${nameOf(a)} has 1 synchronous standby of 1.\n`);
    expect(stdout).toContain(" at 127.0.0.1: synchronous, streaming, ");
    expect(stdout).toEndWith(`${nameOf(a)} has serve from 127.0.0.1.\n${nameOf(a)} has notary from 127.0.0.1.\n`);
    const { hosts, losses } = JSON.parse((await check(urlOf(b, a), "--json")).stdout);
    expect([hosts.map(({ role }: Host) => role), losses]).toEqual([["standby", "primary"], []]);
  });

  test("shows a role without rights on statistics what it may see, and says so", async () => {
    await run(a, "create role poor login password 'poor'");
    const url = new URL(urlOf(a));
    Object.assign(url, { username: "poor", password: "poor" });
    const { exitCode, stdout, stderr } = await check(url.href);
    expect([exitCode, stderr]).toEqual([
      0,
      `WARNING: This role cannot see all of ${nameOf(a)}'s standbys and addresses: a member of pg_read_all_stats can.\nA failover to a synchronous standby loses no read that was acknowledged.\n`,
    ]);
    expect(stdout).toContain(`${nameOf(a)} has 1 standby.\n`);
    expect(stdout).toContain(`${nameOf(a)} has notary from an address that is not shown.\n`);
  });

  test("ends with 1 if a host does not answer, which may be a second primary", async () => {
    const away = urlOn(urlOf(a), [a, { url: `postgres://127.0.0.1:${freePort()}` } as Replica]);
    const { exitCode, stderr } = await check(away);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("It may be a second primary.")]);
  });

  test("ends with 6 if no primary answers", async () => {
    const { exitCode, stdout, stderr } = await check(urlOf(b));
    expect([exitCode, stdout, stderr]).toEqual([6, "", `keyhole: DATABASE_URL: ${nameOf(b)} is a standby.\n`]);
  });

  test("ends with 1 if two answer as primary, and says whose commits pass", async () => {
    await run(b, "select pg_promote(true, 60)");
    await standbysOf(b, "");
    const { exitCode, stdout, stderr } = await check(urlOf(a, b));
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining(`${nameOf(a)} and ${nameOf(b)} answer as primary: shut down the old one.`),
    ]);
    expect(stderr).toContain(`Commits on ${nameOf(a)} do not pass: a synchronous standby may be away.`);
    expect(stdout).toContain("; commits do not pass; synchronous_standby_names = *.\n");
    expect(stdout).toContain("; commits pass; no commit waits for a standby.\n");
    // Two names of one server are one.
    expect((await check(urlOf(b, b))).stderr).not.toContain("answer as primary");
  });
});

test("db check says what the embedded database is, and ends with 4 if there is none", async () => {
  const site = await makeSite("sqlite");
  expect((await site.here(["db", "check"])).exitCode).toBe(4);
  await site.here(["org", "create", "acme"]);
  const { exitCode, stdout, stderr } = await site.here(["db", "check"]);
  expect([exitCode, stdout]).toEqual([0, ""]);
  expect(stderr).toContain("one file, written with synchronous = FULL. It has no standby");
  await site.remove();
});

describe("what db check says of a primary", () => {
  const good: PrimaryFacts = {
    startedAt: "1",
    version: "15.18 (Debian 15.18-0+deb12u1)",
    commits: true,
    synchronousStandbyNames: "*",
    fsync: "on",
    isPooled: false,
    clockAheadMs: 5000,
    seesAll: true,
    standbys: [],
    processes: [{ name: "notary", address: null }],
  };
  const judge = (...all: Partial<PrimaryFacts>[]) =>
    judgeHosts(all.map((one, at) => ({ host: `db${at}`, role: "primary", ...good, ...one })));

  test("is nothing if all is well", () => {
    expect(judge({})).toEqual({ losses: [], warnings: [] });
    expect(judge({ clockAheadMs: -5000, version: "19beta1" })).toEqual({ losses: [], warnings: [] });
  });

  test.each<[string, Partial<PrimaryFacts>]>([
    ["No commit on db0 waits for a standby", { synchronousStandbyNames: "" }],
    ["Commits on db0 do not pass", { commits: false }],
    ["db0 has fsync = off", { fsync: "off" }],
    ["No notary is connected", { processes: [{ name: "serve", address: null }] }],
  ])("is a loss: %s", (words, facts) => {
    const { losses, warnings } = judge(facts);
    expect([losses, warnings]).toEqual([[expect.stringContaining(words)], []]);
  });

  test.each<[string, Partial<PrimaryFacts>]>([
    ["The clock of db0 is 6 s ahead of this host's.", { clockAheadMs: 6000 }],
    ["The clock of db0 is 6 s behind this host's.", { clockAheadMs: -6000 }],
    ["A pooler is between", { isPooled: true }],
    ["PostgreSQL 15.14, which has holes that 15.15 of November 2025 closed", { version: "15.14" }],
    ["PostgreSQL 18.0, which has holes that 18.1", { version: "18.0" }],
  ])("is a warning: %s", (words, facts) => {
    const { losses, warnings } = judge(facts);
    expect([losses, warnings]).toEqual([[], [expect.stringContaining(words)]]);
  });
});
