/** What a failover lost is stored again by a server that lives, or given up in time, and named. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { makeAuditMonths } from "../../src/record/store/audit-months.ts";
import { type JournalStore, postgresJournal } from "../../src/record/store/journal.ts";
import { migrate } from "../../src/store/migrate.ts";
import { openPostgres, Servers } from "../../src/store/postgres.ts";
import { eventually } from "../support/eventually.ts";
import { whileLocked } from "../support/locks.ts";
import { connectTo, type Replica, urlOn } from "../support/postgres.ts";
import { startProxy } from "../support/proxy.ts";
import { withReplicas } from "../support/replicas.ts";
import type { LogEvent } from "../support/world.ts";

const segmentsLost = 400;
/** Far fewer than the segments. A statement of 256 KiB comes in several pieces. */
const piecesMax = 150;
const job = "ab".repeat(32);

await withReplicas("what a failover lost", (a, { urlOf, run, received, cutOff, failOver }) => {
  let b: Replica;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let pieces = 0;
  const clock = { ms: 0 };
  const journals: (JournalStore & { readonly lane: string; readonly log: LogEvent[] })[] = [];
  const open = (lane: string) => {
    const url = new URL(b.url);
    url.port = String(proxy.port);
    const servers = new Servers(parsePostgresUrl(urlOn(urlOf(a), [a, { ...b, url: url.href }]), {}).servers);
    const log: LogEvent[] = [];
    servers.tell = (event) => log.push(event);
    const opened = { ...postgresJournal(servers, () => clock.ms), lane, log };
    journals.push(opened);
    return opened;
  };
  const append = ({ append, lane }: (typeof journals)[number], seq: number, inLane = lane) => {
    const texts = { texts: '["\\u0000"]', entries: "{}" };
    const segment = { lane: inLane, firstSeq: seq, lastSeq: seq, at: Date.now(), mac: Buffer.alloc(32, seq), ...texts };
    const reads = { trustId: "t", job, readsMax: 10_000, keptMs: 3_600_000, reads: 1 };
    return append(segment, false, inLane === lane ? [reads] : []);
  };
  const storedOf = async (lane: string) =>
    (await run(b, `select count(*)::int as n from audit_segments where lane = '${lane}'`))[0]?.["n"];

  beforeAll(async () => {
    const database = openPostgres(new Servers(parsePostgresUrl(urlOf(a), {}).servers), "admin");
    await migrate(database);
    await makeAuditMonths(database, Date.now());
    await database.close();
    b = await a.startStandby();
    await received(a);
    proxy = await startProxy(new URL(b.url), () => () => {
      pieces += 1;
    });
  });
  afterAll(async () => {
    for (const one of journals) await one.close();
    await proxy?.stop();
    await b?.stop();
    await a.stop();
  });

  test("comes back in few statements; and if it cannot within a minute, it is named and reads go on", async () => {
    const [one, other, third] = [open("one"), open("other"), open("third")];
    await cutOff(b, a);
    for (let seq = 1; seq <= segmentsLost; seq++) {
      expect(await append(one, seq)).toEqual({ outcome: "durable" });
    }
    for (let seq = 1; seq <= 3; seq++) expect(await append(other, seq)).toEqual({ outcome: "durable" });
    for (let seq = 1; seq <= 2; seq++) expect(await append(third, seq, "third of all")).toEqual({ outcome: "durable" });
    await failOver(a, b);

    const holder = connectTo(urlOf(b));
    await whileLocked(holder, "only audit_segments", "share", async () => {
      const keptOut = expect.stringContaining("what a failover lost could not be stored: ");
      await eventually(async () => (await append(other, 1, "new")).reason?.includes("could not be stored: 57014"));
      expect(await append(other, 1, "new")).toEqual({ outcome: "unknown", reason: keptOut });
      expect(other.log.some(({ event }) => event === "lane_moved")).toBe(false);
      clock.ms += 60_000;
      await eventually(async () => (await append(other, 1, "new")).outcome === "durable");
    });
    await holder.end({ timeout: 5 });
    const told = { event: "lane_moved", broughtBack: 0, reason: "57014", notStored: ["other:1-3"], mayLackMore: true };
    expect(other.log).toContainEqual(told);
    expect([other.lost, await storedOf("other")]).toEqual([{ broughtBack: 0, unknown: 1 }, 0]);

    pieces = 0;
    await eventually(async () => (await append(one, segmentsLost + 1)).moved);
    expect(pieces).toBeLessThan(piecesMax);
    expect(await storedOf("one")).toBe(segmentsLost);
    expect(await run(b, "select reads::int from job_reads")).toEqual([{ reads: segmentsLost }]);
    expect(one.log).toContainEqual({ event: "lane_moved", broughtBack: segmentsLost, mayLackMore: false });
    expect(one.lost).toEqual({ broughtBack: segmentsLost, unknown: 0 });

    // A lane that begins finds the other server, too: here nothing else was sent to it since.
    const begun = async () => {
      const found = await append(third, 1, "begun");
      return found.outcome === "unknown" ? undefined : await storedOf("third of all");
    };
    expect(await eventually(begun)).toBe(2);
  });
});
