import { beforeEach, describe, expect, test } from "bun:test";
import postgres from "postgres";
import { type AuditRecord, AuditTail } from "../../src/people/audit/audit.ts";
import { acceptFlaws, planPruning, verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { gapName } from "../../src/record/flaw.ts";
import type { LaneCheckpoint } from "../../src/record/journal.ts";
import { segmentMac } from "../../src/record/segment.ts";
import { defaultPartition, makeAuditMonths, monthOf, monthsAhead } from "../../src/record/store/audit-months.ts";
import { auditPages, listAudit } from "../support/audit.ts";
import { putHeadBack, savedHead } from "../support/heads.ts";
import { entry, writeLane } from "../support/journal.ts";
import { pruneAudit } from "../support/prune.ts";
import { describeBoth, type Row, type World } from "../support/world.ts";

const dayMs = 86_400_000;
/** Writes one lane through the journal itself, in segments of `size` entries. */
function lane(
  w: World,
  moments: readonly number[],
  { size = 1, ...change }: Partial<AuditEntry> & { readonly size?: number } = {},
): Promise<LaneCheckpoint> {
  const batches = Array.from({ length: moments.length / size }, () => Array(size).fill({ ...entry, ...change }));
  return writeLane(w, batches, (batch) => moments[batch * size] as number);
}

/** The flaws that are found, without what proves an acceptance. */
async function flawsIn(w: World, checkpoints?: readonly LaneCheckpoint[]): Promise<unknown[]> {
  return (await verifyAudit(w.admin, checkpoints)).flaws.map(
    ({ seals: _, name: _name, sentence: _sentence, ...flaw }) => flaw,
  );
}

const from = Date.UTC(2026, 4, 7);
/** Neighbours have one date. */
const perMoment = 5;
const minutes = (count: number, first = from) =>
  Array.from({ length: count }, (_, at) => first + Math.floor(at / perMoment) * 60_000);

describeBoth("audit verify", (w, dialect) => {
  beforeEach(async () => {
    await w.run("delete from audit_segments");
    await w.run("delete from audit_checkpoints");
    await w.run("delete from audit_heads");
  });

  describe("with checkpoints", () => {
    test("notices a lane that was cut off at its end", async () => {
      const checkpoint = await lane(w, minutes(20));
      await lane(w, minutes(3));
      await w.sql`delete from audit_segments where lane = ${checkpoint.lane} and first_seq > 17`;
      expect(await verifyAudit(w.admin)).toMatchObject({ entries: 20, flaws: [] });
      expect(await flawsIn(w, [checkpoint])).toEqual([{ lane: checkpoint.lane, seq: 18, lastSeq: 20, what: "lost" }]);
    });

    test("notices a lane that is missing altogether", async () => {
      const checkpoint = await lane(w, minutes(20));
      await w.sql`delete from audit_segments where lane = ${checkpoint.lane}`;
      const flaw = { lane: checkpoint.lane, seq: 1, lastSeq: 20, what: "lost" as const };
      expect(await verifyAudit(w.admin, [checkpoint])).toMatchObject({ flaws: [flaw] });
      // Someone who writes to the database could blame retention, but not seal the checkpoint.
      await w.sql`insert into audit_checkpoints (lane, seq, mac, seal)
        values (${checkpoint.lane}, 20, ${Buffer.from(checkpoint.mac, "hex")}, ${Buffer.alloc(32)})`;
      expect(await verifyAudit(w.admin, [checkpoint])).toMatchObject({ flaws: [flaw] });
    });

    test("notices a chain that somebody with the audit key wrote again", async () => {
      const checkpoint = await lane(w, minutes(20));
      await w.sql`delete from audit_segments`;
      const forged = await lane(w, minutes(20), { actor: { type: "key", id: "another" } });
      let mac: Buffer = Buffer.alloc(0);
      for (const row of await w.sql`select * from audit_segments where lane = ${forged.lane} order by first_seq`) {
        type Stored = { first_seq: number; last_seq: number; at: number; texts: string; entries: string };
        const { first_seq: firstSeq, last_seq: lastSeq, at, texts, entries } = row as Stored;
        const segment = { lane: checkpoint.lane, firstSeq, lastSeq, at, texts, entries };
        mac = segmentMac(w.admin.systemKeys.audit, mac, segment);
        await w.sql`update audit_segments set lane = ${checkpoint.lane}, mac = ${mac} where first_seq = ${firstSeq}`;
      }
      expect(await verifyAudit(w.admin)).toMatchObject({ entries: 20, flaws: [] });
      const flaw = { lane: checkpoint.lane, seq: 20, lastSeq: 20, what: "lost" as const };
      expect(await verifyAudit(w.admin, [checkpoint])).toMatchObject({ flaws: [flaw] });
    });
  });

  test("goes on after a flaw and names those of every lane", async () => {
    const lanes = [await lane(w, minutes(20)), await lane(w, minutes(20)), await lane(w, minutes(20))];
    const [one, two, three] = lanes.map((checkpoint) => checkpoint.lane).sort() as [string, string, string];
    await w.organization();
    await w.sql`delete from audit_segments where lane = ${one} and first_seq = 4`;
    await w.sql`update audit_segments set entries = '' where lane = ${one} and first_seq = 9`;
    await w.sql`delete from audit_segments where lane = ${two} and first_seq > 18`;
    await w.sql`update audit_segments set at = at + 1 where lane = ${three} and first_seq = 20`;
    await w.sql`update audit_segments set entries = '' where lane = 'commands'`;
    expect(await flawsIn(w, lanes)).toEqual([
      { lane: one, seq: 4, lastSeq: 4, what: "broken" },
      { lane: one, seq: 9, lastSeq: 9, what: "broken" },
      { lane: three, seq: 20, lastSeq: 20, what: "broken" },
      { lane: "commands", seq: 1, lastSeq: 1, what: "broken" },
      { lane: two, seq: 19, lastSeq: 20, what: "lost" },
    ]);
  });

  describe("a loss that was accepted", () => {
    const found = async (w: World, checkpoints?: readonly LaneCheckpoint[]) => {
      const { flaws, accepted } = await verifyAudit(w.admin, checkpoints);
      return { flaws: flaws.map(({ what, name }) => `${what} ${name}`), accepted: accepted.map(gapName) };
    };
    const accept = async (w: World, gap: string, checkpoints?: readonly LaneCheckpoint[]) =>
      acceptFlaws(w.admin, await verifyAudit(w.admin, checkpoints), [gap]);

    test("in the middle of a lane is on record and no flaw, and every later flaw is one", async () => {
      const [{ lane: one }, { lane: other }] = [await lane(w, minutes(20)), await lane(w, minutes(20))];
      await w.sql`delete from audit_segments where lane = ${one} and first_seq between 7 and 8`;
      const gap = `${one}:7-8`;
      expect(await found(w)).toEqual({ flaws: [`broken ${gap}`], accepted: [] });
      expect(await accept(w, gap)).toMatchObject({ flaws: [], accepted: [{ lane: one, seq: 7, lastSeq: 8 }] });
      expect(await found(w)).toEqual({ flaws: [], accepted: [gap] });
      const [entry] = await listAudit(w.admin, { actions: ["audit.accept"] });
      expect(entry).toMatchObject({ lane: "commands", organization: null, names: [gap, expect.any(String)] });
      // Whoever accepts it again changes nothing.
      await accept(w, gap);
      expect(await listAudit(w.admin, { actions: ["audit.accept"] })).toHaveLength(1);

      await w.sql`update audit_segments set entries = '' where lane = ${one} and first_seq = 12`;
      await w.sql`delete from audit_segments where lane = ${other} and first_seq = 7`;
      const flaws = [`broken ${one}:12-12`, `broken ${other}:7-7`];
      expect(await found(w)).toEqual({ flaws, accepted: [gap] });
      await w.sql`update audit_segments set entries = entries || ' ' where lane = ${one} and first_seq = 9`;
      expect(await found(w)).toEqual({ flaws: [`broken ${gap}`, ...flaws], accepted: [] });
      await w.sql`delete from audit_segments where lane = ${one} and first_seq = 9`;
      expect((await found(w)).flaws).toEqual([`broken ${one}:7-9`, ...flaws]);
    });

    test("at the end of a lane is no flaw, and one more entry that goes is one", async () => {
      const checkpoint = await lane(w, minutes(20));
      const cutAt = (seq: number) =>
        w.sql`delete from audit_segments where lane = ${checkpoint.lane} and first_seq > ${seq}`;
      await cutAt(17);
      await accept(w, `${checkpoint.lane}:18-20`, [checkpoint]);
      const accepted = [`${checkpoint.lane}:18-20`];
      expect(await found(w, [checkpoint])).toEqual({ flaws: [], accepted });
      expect(await found(w)).toEqual({ flaws: [], accepted: [] });
      const another = { ...checkpoint, mac: "00".repeat(32) };
      expect(await found(w, [another])).toEqual({ flaws: [`lost ${accepted[0]}`], accepted: [] });
      await cutAt(15);
      expect((await found(w, [checkpoint])).flaws).toEqual([`lost ${checkpoint.lane}:16-17`]);
      await accept(w, `${checkpoint.lane}:16-17`, [checkpoint]);
      expect((await found(w, [checkpoint])).flaws).toEqual([]);
    });

    test("of people's changes stays accepted when the lane goes on, and hides no loss after it", async () => {
      const head = async (): Promise<LaneCheckpoint> => {
        const { seq, mac } = await savedHead(w);
        return { lane: "commands", seq: Number(seq), mac: Buffer.from(mac as Uint8Array).toString("hex") };
      };
      const cutTo = async (saved: Row) => {
        await w.sql`delete from audit_segments where lane = 'commands' and first_seq > ${saved["seq"]}`;
        await putHeadBack(w, saved);
      };
      await w.organization();
      const before = await savedHead(w);
      const log: LaneCheckpoint[] = [];
      for (let count = 0; count < 2; count++) {
        await w.organization();
        log.push(await head());
      }
      await cutTo(before);
      expect(await found(w, log)).toEqual({ flaws: ["lost commands:2-3"], accepted: [] });
      await accept(w, "commands:2-3", log);
      for (let count = 0; count < 3; count++) {
        expect(await found(w, log)).toEqual({ flaws: [], accepted: ["commands:2-3"] });
        await w.organization();
      }
      // The same range is lost again, with other entries in it. The acceptance went with them.
      log.push(await head());
      await cutTo(before);
      for (let count = 0; count < 5; count++) await w.organization();
      expect(await found(w, log)).toEqual({ flaws: ["lost commands:2-5"], accepted: [] });
    });

    test("is what a person named, and only a loss", async () => {
      const { lane: one } = await lane(w, minutes(20));
      await w.sql`delete from audit_segments where first_seq = 4`;
      await w.sql`update audit_segments set entries = '' where first_seq = 7`;
      const wrong = { [`${one}:7-7`]: "conflict", [`${one}:4-5`]: "not_found", nothing: "not_found" };
      for (const [gap, kind] of Object.entries(wrong)) {
        expect(await accept(w, gap).catch((error: unknown) => error)).toMatchObject({ kind });
      }
      expect(await listAudit(w.admin, { actions: ["audit.accept"] })).toEqual([]);
    });

    test("cannot be made up or moved in SQL", async () => {
      const [{ lane: one }, { lane: other }] = [await lane(w, minutes(20)), await lane(w, minutes(20))];
      await w.sql`delete from audit_segments where first_seq = 4`;
      await accept(w, `${one}:4-4`);
      await w.run("update audit_segments set entries = replace(entries, ?, ?) where lane = 'commands'", [one, other]);
      const flaws = [`broken ${one}:4-4`, `broken ${other}:4-4`, "broken commands:1-1"];
      expect(await found(w)).toEqual({ flaws, accepted: [] });
    });

    test("is dropped by retention with the rest of its month", async () => {
      w.clock.nowMs = Date.UTC(2026, 8, 20);
      const months = [5, 6].flatMap((month) => minutes(20, Date.UTC(2026, month, 3)));
      const { lane: one } = await lane(w, months);
      await w.sql`delete from audit_segments where first_seq between 19 and 22`;
      expect(await pruneAudit(w.admin, 30 * dayMs)).toMatchObject({ flaws: [{ seq: 19, lastSeq: 22 }] });
      await accept(w, `${one}:19-22`);
      // The gap is at the beginning of what is kept.
      expect(await pruneAudit(w.admin, 60 * dayMs)).toMatchObject({ entries: 18 });
      expect(await found(w)).toEqual({ flaws: [], accepted: [`${one}:19-22`] });
      expect(await pruneAudit(w.admin, 30 * dayMs)).toMatchObject({ entries: 18 });
      expect(await found(w)).toEqual({ flaws: [], accepted: [] });
      w.clock.nowMs = undefined;
    });
  });

  describe("retention", () => {
    const now = Date.UTC(2026, 10, 20);
    const atMonth = (month: number, count: number) => minutes(count, Date.UTC(2026, month, 3));
    const counted = async (w: World): Promise<number> =>
      Number(((await w.run("select sum(last_seq - first_seq + 1) as n from audit_segments"))[0] as Row)["n"]);

    test("drops whole months, and the rest verifies from the last checkpoint that is kept", async () => {
      w.clock.nowMs = now;
      const across = await lane(w, [...atMonth(6, 300), ...atMonth(7, 10), ...atMonth(8, 10)]);
      const old = await lane(w, atMonth(6, 5));
      const young = await lane(w, atMonth(9, 5));
      const all = [across, old, young];
      // 80 days back is just after 1 September: July and August are over by then.
      const pruned = await pruneAudit(w.admin, 80 * dayMs);
      expect(pruned).toEqual({ keptFromAt: Date.UTC(2026, 8, 1), entries: 315, lanes: 2 });
      // The pruning itself is on record, in the commands' lane.
      expect(await counted(w)).toBe(15 + 1);
      expect(await verifyAudit(w.admin, all)).toMatchObject({ entries: 15 + 1, lanes: 3, flaws: [] });
      expect(await pruneAudit(w.admin, 80 * dayMs)).toMatchObject({ entries: 0, lanes: 0 });
      // A month later the same lane loses its next month.
      w.clock.nowMs = now + 31 * dayMs;
      expect(await pruneAudit(w.admin, 80 * dayMs)).toMatchObject({ entries: 10, lanes: 1 });
      expect(await verifyAudit(w.admin, all)).toMatchObject({ entries: 5 + 2, lanes: 2, flaws: [] });
      // What retention did not drop is still found missing.
      await w.sql`delete from audit_segments where lane = ${young.lane} and first_seq = 1`;
      expect(await flawsIn(w, all)).toEqual([{ lane: young.lane, seq: 1, lastSeq: 1, what: "broken" }]);
    });

    test("counts 400 days from the newest entry, and never drops the current month", async () => {
      w.clock.nowMs = now;
      await lane(w, atMonth(10, 5));
      expect(await pruneAudit(w.admin, 1000)).toMatchObject({ keptFromAt: Date.UTC(2026, 10, 1), entries: 0 });
      expect(await pruneAudit(w.admin, 400 * dayMs)).toMatchObject({ keptFromAt: Date.UTC(2025, 9, 1), entries: 0 });
    });

    test("does not drop a month that was tampered with, unless told to", async () => {
      w.clock.nowMs = now;
      const { lane: name } = await lane(w, atMonth(5, 20));
      await w.sql`update audit_segments set entries = '{}' where first_seq = 7`;
      // Nobody is asked before it is refused.
      const flaws = [{ lane: name, seq: 7, lastSeq: 7, what: "broken" }];
      expect(await pruneAudit(w.admin, 30 * dayMs)).toMatchObject({ flaws });
      expect(await planPruning(w.admin, 30 * dayMs, true)).toMatchObject({ pruned: { entries: 20 } });
      expect(await counted(w)).toBe(20);
      expect(await pruneAudit(w.admin, 30 * dayMs, true)).toMatchObject({ entries: 20, lanes: 1 });
      expect(await verifyAudit(w.admin)).toMatchObject({ entries: 0 + 1, lanes: 1, flaws: [] });
    });

    if (dialect === "postgres")
      test("makes months ahead, and a missing month stops nothing", async () => {
        const names = async () =>
          (
            await w.run(
              "select relname from pg_inherits join pg_class c on c.oid = inhrelid where inhparent = 'audit_segments'::regclass order by 1",
            )
          ).map((row) => row["relname"]);
        const today = Date.now();
        for (let later = 0; later <= monthsAhead; later++) expect(await names()).toContain(monthOf(today, later).name);
        // No month was made two years ahead: its entries are in DEFAULT, and stay there when months are made.
        const then = Date.UTC(2031, 0, 15);
        await lane(w, minutes(5, then));
        expect(await w.run("select count(*)::int as n from audit_segments_default")).toEqual([{ n: 5 }]);
        const made = await makeAuditMonths(w.admin.database, then);
        expect(made).toEqual(Array.from({ length: monthsAhead }, (_, at) => monthOf(then, at + 1).name));
        expect(await makeAuditMonths(w.admin.database, then)).toEqual([]);
        // One server runs over the ends of months: of one in DEFAULT, of two that are made, and of the last.
        const moments = [0, 1, 2, 7].flatMap((later) => minutes(1, Date.UTC(2031, later, 20)));
        await lane(w, moments);
        expect(await w.run("select tableoid::regclass::text as month from audit_segments order by at")).toEqual(
          [...Array(6).fill(defaultPartition), monthOf(then, 1).name, monthOf(then, 2).name, defaultPartition].map(
            (month) => ({ month }),
          ),
        );
        expect(await verifyAudit(w.admin)).toMatchObject({ entries: 9, flaws: [] });
        w.clock.nowMs = Date.UTC(2031, 10, 15);
        // Retention gives up behind a long query: else the journal would wait behind retention.
        const reader = postgres(w.databaseUrl as string, { max: 1, fetch_types: false });
        await reader.begin(async (held) => {
          await held`lock table audit_segments_2031_02 in access share mode`;
          await expect(pruneAudit(w.admin, 60 * dayMs)).rejects.toThrow("The audit entries are in use by a long query");
        });
        await reader.end();
        expect(await verifyAudit(w.admin)).toMatchObject({ entries: 9, flaws: [] });
        expect(await pruneAudit(w.admin, 60 * dayMs)).toMatchObject({ entries: 9 });
        const left = await names();
        expect(left).not.toContain("audit_segments_2031_02");
        expect(left).toContain("audit_segments_2031_11");
        expect(left).toContain("audit_segments_default");
        w.clock.nowMs = undefined;
      });
  });

  describe("pages", () => {
    test("hold every matching entry once and in order, for any page size", async () => {
      await lane(w, minutes(300));
      await lane(w, [...minutes(300), ...minutes(300, from + dayMs)]);
      const records: AuditRecord[] = [];
      for await (const page of auditPages(w.admin, {})) records.push(...page);
      expect(records).toHaveLength(900);
      expect(new Set(records.map(({ lane, seq }) => `${lane} ${seq}`)).size).toBe(900);
      expect(records.every(({ time }, at) => at === 0 || time >= (records[at - 1] as AuditRecord).time)).toBe(true);
      let since = 0;
      for await (const page of auditPages(w.admin, { sinceAt: from + dayMs, keyId: "key-1" })) since += page.length;
      expect(since).toBe(300);
    });

    test("hold every segment once, whatever sizes follow each other", async () => {
      const long = { names: Array.from({ length: 1000 }, (_, at) => `${at}`.padStart(64, "N")) };
      const [short, wide] = [await lane(w, minutes(300)), await lane(w, minutes(40), long)];
      const lanes = [short, wide, await lane(w, minutes(300), { size: 5 })];
      expect(await verifyAudit(w.admin, lanes)).toMatchObject({ entries: 640, lanes: 3, flaws: [] });
      expect(await listAudit(w.admin, { limit: 1000 })).toHaveLength(640);
    });

    test("let a tail show each new entry once, even one that another server dated a little earlier", async () => {
      await lane(w, [from, from + 1000]);
      w.clock.nowMs = from + 1000;
      const tail = new AuditTail(w.admin, {}, () => {});
      // One is shown, and the other, of another lane, is no news either.
      await lane(w, [from + 900]);
      expect((await tail.newest(1)).with("")[0].map(({ time }) => time - from)).toEqual([1000]);
      const news = async () => {
        const times: number[] = [];
        for await (const page of tail.news()) times.push(...page.map(({ time }) => time - from));
        return times;
      };
      expect(await news()).toEqual([]);
      await lane(w, [from + 500, from + 2000]);
      expect(await news()).toEqual([500, 2000]);
      expect(await news()).toEqual([]);
      await lane(w, [from + 3000]);
      expect(await news()).toEqual([3000]);
      w.clock.nowMs = undefined;
    });
  });

  test("leaves a damaged segment in the list, as one entry that is called unreadable", async () => {
    const { lane: name } = await lane(w, minutes(6), { size: 2 });
    await w.sql`update audit_segments set entries = '{}' where first_seq = 3`;
    const records = await listAudit(w.admin, {});
    expect(records.map(({ seq, action }) => [seq, action])).toEqual([
      [1, "variables.read"],
      [2, "variables.read"],
      [3, "unreadable"],
      [5, "variables.read"],
      [6, "variables.read"],
    ]);
    expect(records[2]).toMatchObject({ lane: name, time: from, names: [], count: 0, actor: { name: "" } });
    expect(await listAudit(w.admin, { keyId: "key-1" })).toHaveLength(4);
    const exported: AuditRecord[] = [];
    for await (const page of auditPages(w.admin, {})) exported.push(...page);
    expect(exported).toEqual(records);
  });

  test("begins a new lane if the clock steps back, so that a dropped month is always a lane's beginning", async () => {
    await lane(w, [from, from + 1000, from - dayMs, from + 1]);
    expect(await verifyAudit(w.admin)).toMatchObject({ entries: 4, lanes: 2, flaws: [] });
  });

  test("finds nothing wrong if one command was dated too late or too early, and drops what comes before both", async () => {
    for (const wrongMs of [2 * 3_600_000, -300 * dayMs]) {
      const organization = await w.organization();
      const first = Date.UTC(2025, 5, 30, 22, 50);
      for (const at of [first, first + 600_000, first + 600_000 + wrongMs, first + 700_000, Date.UTC(2025, 6, 2)]) {
        w.clock.nowMs = at;
        await setPlan(w.admin, organization.slug, "pro");
      }
      w.clock.nowMs = Date.UTC(2025, 6, 1) + 410 * dayMs;
      expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
      expect(await pruneAudit(w.admin, 400 * dayMs)).not.toHaveProperty("flaws");
      expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
      w.clock.nowMs = undefined;
    }
  });
});
