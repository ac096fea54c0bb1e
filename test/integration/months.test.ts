/** Months that are over: sealed once, looked at by samples and by `audit verify --month`, and kept by retention. */

import { afterEach, beforeEach, expect, test } from "bun:test";
import { acceptFlaws, verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { auditKeys, proveAudit } from "../../src/people/audit/audit-proof.ts";
import { verifyPublic } from "../../src/people/audit/audit-public.ts";
import { encodeMonth } from "../../src/record/month.ts";
import { findVerifiers, openSigners } from "../../src/record/notary/signers.ts";
import { parseVerifier } from "../../src/record/note.ts";
import { appendLeaves, monthsInOrder, readTree } from "../../src/record/store/tree.ts";
import { treeEnd } from "../../src/record/store/tree-end.ts";
import { leafHash } from "../../src/record/tree.ts";
import { signTreeHead } from "../../src/record/tree-note.ts";
import { checkProof } from "../support/check-proof.ts";
import { endingAt } from "../support/ending.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notaryOf } from "../support/notarize.ts";
import { pruneAudit } from "../support/prune.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth } from "../support/world.ts";

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Noon of a day of 2026. */
const noon = (month: number, day: number) => Date.UTC(2026, month - 1, day, 12);
const tables = ["segments", "checkpoints", "heads", "leaves", "checkpoints_signed", "cosignatures", "signers"].map(
  (table) => `audit_${table}`,
);

describeBoth("a month that is over", (w, _, once) => {
  let now = noon(10, 15);
  /** Writes one lane, with two entries in each segment, a minute apart. @returns its name */
  const lane = async (count: number, at = now) => {
    const batches = Array.from({ length: count }, (_, done) => [entry, { ...entry, requestId: `${done}` }]);
    return (await writeLane(w, batches, (batch) => at + batch * minuteMs)).lane;
  };
  const notary = async (options: Parameters<typeof notaryOf>[1] = {}) => {
    const made = await notaryOf(w, { database: w.admin.database, now: () => now, ...options });
    return { made, round: async () => void (await made.round()) };
  };
  /** What a new notary finds in its first rounds, which look at all. */
  const flaws = async (rounds = 1) => {
    const { made, round } = await notary();
    for (let done = 0; done < rounds; done++) await round();
    return made.flaws;
  };
  const months = async () => {
    const { size } = await treeEnd(w.admin.database);
    return (await monthsInOrder(w.admin.database, size)).map(({ root: _, text: __, ...month }) => month);
  };
  const verified = async (month?: string) => {
    const { flaws, entries } = await verifyAudit(w.admin, [], () => {}, month);
    return { entries, named: flaws.length > 0 };
  };
  /** October with a lane of six entries and one of four, sealed in November, which has a lane of two. */
  const sealOctober = async () => {
    const lanes = [await lane(3), await lane(2)] as const;
    await flaws();
    now = noon(11, 1);
    expect(await flaws(2)).toBe(0);
    const november = await lane(1);
    expect(await flaws()).toBe(0);
    return { lanes, november };
  };

  beforeEach(async () => {
    for (const table of tables) await w.run(`delete from ${table}`);
    now = noon(10, 15);
    w.clock.nowMs = now;
  });
  afterEach(() => {
    w.clock.nowMs = undefined;
  });

  test("is sealed once, after a look at all of it that began when it was over and found nothing", async () => {
    const { made, round } = await notary();
    await lane(3);
    await round();
    now = noon(10, 31);
    await lane(1);
    await round();
    expect(await months()).toEqual([]);
    now = noon(11, 1);
    await lane(1);
    // The look that ends now began in October.
    await round();
    await round();
    const october = { month: "2026-10", size: 3, segments: 5, entries: 10, leaf: 3 };
    expect(await months()).toEqual([october]);
    await lane(1);
    await round();
    await round();
    expect(await months()).toEqual([october]);
    expect(made.flaws).toBe(0);
    expect(await verified()).toEqual({ entries: 12, named: false });
    expect(await verified("2026-10")).toEqual({ entries: 10, named: false });
  });

  test("takes no entry any more: one that comes late is outside, looked at, and of the next month", async () => {
    await sealOctober();
    const late = await lane(2, noon(10, 20));
    now = noon(11, 20);
    const { made, round } = await notary();
    await round();
    expect((await months()).map(({ month }) => month)).toEqual(["2026-10"]);
    await w.run(`update audit_segments set texts = texts || ' ' where lane = '${late}' and first_seq = 3`);
    now = noon(11, 21);
    await round();
    expect(made.flaws).toBe(1);
    expect(await verified()).toMatchObject({ named: true });
    expect(await verified("2026-10")).toMatchObject({ named: false });
    await w.run(`update audit_segments set texts = rtrim(texts) where lane = '${late}' and first_seq = 3`);
    now = noon(12, 1);
    await round();
    await round();
    // The leaf of October itself is one of those that November has.
    expect((await months()).at(-1)).toMatchObject({ month: "2026-11", segments: 3, entries: 6, size: 5, leaf: 5 });
    expect([made.flaws, made.samples]).toEqual([0, { of: 2, looked: 2 }]);
    await round();
    expect(made.samples).toEqual({ of: 5, looked: 5 });
  });

  test("has what a notary finds of several months that are over, and `--month` of each of them says so", async () => {
    await lane(2, noon(7, 1));
    await lane(3, noon(9, 1));
    expect(await flaws(2)).toBe(0);
    expect(await months()).toEqual([{ month: "2026-09", size: 2, segments: 5, entries: 10, leaf: 2 }]);
    const { sealed } = await verifyAudit(w.admin, [], () => {}, "2026-07");
    expect(sealed?.month).toBe("2026-09");
    const refused = verifyAudit(w.admin, [], () => {}, "2026-10").catch((error: Error) => error.message);
    expect(await refused).toStartWith("2026-10 is not sealed.");
  });

  test("is not sealed while there is a flaw, and is once that is accepted", async () => {
    const one = await lane(3);
    await flaws();
    await w.run(`delete from audit_segments where lane = '${one}' and first_seq = 3`);
    now = noon(11, 1);
    w.clock.nowMs = now;
    expect(await flaws(2)).toBe(1);
    expect(await months()).toEqual([]);
    const found = await verifyAudit(w.admin);
    await acceptFlaws(
      w.admin,
      found,
      found.flaws.map(({ name }) => name),
    );
    expect(await flaws(2)).toBe(0);
    expect((await months()).map(({ month, segments }) => [month, segments])).toEqual([["2026-10", 3]]);
  });

  test("is held against its leaf: whatever SQL does there is named by the notary, by verify and by its --month", async () => {
    const { lanes } = await sealOctober();
    const [one, other] = lanes;
    const back = await savedTables(w, tables);
    const month = "lane like 'keyhole audit month%'";
    const called = encodeMonth({ month: "2026-08", size: 1, segments: 1, entries: 1, root: Buffer.alloc(32) });
    const edits: Readonly<Record<string, string>> = {
      "an entry changed": `update audit_segments set texts = replace(texts, 'key-1', 'key-2') where lane = '${one}' and first_seq = 3`,
      "another time": `update audit_segments set at = at + 1 where lane = '${one}' and first_seq = 1`,
      "another mac": `update audit_segments set mac = (select mac from audit_segments where lane = '${one}' and first_seq = 1)
        where lane = '${one}' and first_seq = 3`,
      "a segment less": `delete from audit_segments where lane = '${other}' and first_seq = 3`,
      "a lane less": `delete from audit_segments where lane = '${other}'`,
      "all less": `delete from audit_segments where lane in ('${one}', '${other}')`,
      "a segment more": `insert into audit_segments (lane, first_seq, last_seq, at, mac, texts, entries)
        select lane, first_seq, last_seq, at + 1, mac, texts, entries from audit_segments where lane = '${one}' and first_seq = 3`,
      "a segment in the other lane": `update audit_segments set lane = '${other}', first_seq = 5, last_seq = 6
        where lane = '${one}' and first_seq = 5`,
      "a leaf of another lane": `update audit_leaves set lane = 'x' where lane = '${one}'`,
      "a lane less, and its leaf called a month": `update audit_leaves set lane = '${called}' where lane = '${other}';
        delete from audit_segments where lane = '${other}'`,
      "the month's leaf less": `delete from audit_leaves where ${month}`,
      "another hash": `update audit_leaves set hashes = (select hashes from audit_leaves where leaf = 0) where ${month}`,
      "another month": `update audit_leaves set lane = replace(lane, '2026-10', '2026-09') where ${month}`,
    };
    for (const [what, edit] of Object.entries(edits)) {
      const { made, round } = await notary();
      await round();
      expect({ what, flaws: made.flaws }).toEqual({ what, flaws: 0 });
      for (const statement of edit.split(";")) await w.run(statement);
      now += minuteMs;
      await round();
      await round();
      const byMonth = await verified("2026-10").then(
        ({ named }) => named,
        ({ message }) => /is not sealed/.test(message),
      );
      const named = [made.flaws > 0, (await verified()).named, byMonth];
      expect({ what, named }).toEqual({ what, named: [true, true, true] });
      await back();
    }
  });

  test("is sealed by nobody but a notary: what SQL calls a month is none, and all is looked at", async () => {
    await lane(3);
    await flaws();
    const text = encodeMonth({ month: "2027-01", size: 1, segments: 3, entries: 6, root: Buffer.alloc(32) });
    await lane(1);
    await flaws();
    const [row] = await w.run("select hashes from audit_leaves where leaf = 1");
    const hashes = Buffer.concat([leafHash(text), Buffer.from(row?.["hashes"] as Buffer).subarray(32)]);
    await w.sql`update audit_leaves set lane = ${text}, first_seq = 0, last_seq = 0, hashes = ${hashes} where leaf = 1`;
    const { made, round } = await notary();
    await round();
    expect([made.samples.of, made.flaws > 0]).toEqual([0, true]);
    expect(await verified()).toMatchObject({ named: true });
    await expect(verified("2026-10")).rejects.toThrow("2026-10 is not sealed.");
  });

  test("keeps its leaf when retention drops its entries, and samples are drawn from what is kept", async () => {
    await sealOctober();
    now = noon(12, 2);
    w.clock.nowMs = now;
    await lane(1);
    expect(await flaws(2)).toBe(0);
    const before = await months();
    expect(before.map(({ month }) => month)).toEqual(["2026-10", "2026-11"]);
    expect(await pruneAudit(w.admin, 20 * dayMs)).toMatchObject({ entries: 10 });
    const { made, round } = await notary();
    await round();
    // November's, with the first of December, and the leaf of October.
    expect([made.flaws, made.samples]).toEqual([0, { of: 3, looked: 3 }]);
    expect(await months()).toEqual(before);
    expect(await verified()).toMatchObject({ named: false });
    expect(await verified("2026-10")).toEqual({ entries: 0, named: false });
    // Nobody passes a removal off as that.
    await w.run(`delete from audit_segments where at < ${noon(11, 30)} and lane <> 'commands'`);
    await round();
    expect(made.flaws).toBe(1);
  });

  test("is looked at for a third of a round at most, and the rest goes on", async () => {
    for (let day = 1; day <= 25; day++) await lane(1, noon(9, day));
    now = noon(10, 1);
    const rest = async (share: number) => {
      if (share < 0.5) now += 1000;
    };
    const { made, round } = await notary({ rest });
    for (let minute = 0; minute < 4; minute++) await round();
    expect((await months()).map(({ segments }) => segments)).toEqual([25]);
    await lane(30, now);
    await round();
    expect(made.samples).toEqual({ of: 25, looked: 19 });
    const lookedAt = made.lookedAt;
    for (let minute = 0; minute < 3; minute++) await round();
    expect(made.lookedAt).toBeGreaterThan(lookedAt);
  });

  once("is not looked at whole any more, and a flaw that a sample found is looked at until it is mended", async () => {
    // A leaf ends with its month.
    const batches = Array.from({ length: 25 }, () => [entry]);
    await writeLane(w, batches, (batch) => Date.UTC(2024, batch, 15));
    expect(await flaws(2)).toBe(0);
    let [steps, stepMs] = [0, 0];
    const rest = async (share: number) => {
      if (share < 0.5) [steps, now] = [steps + 1, now + stepMs];
    };
    const { made, round } = await notary({ rest });
    await round();
    await round();
    // In each round: the samples, two pages of leaves, and the segment that the lane goes on after.
    expect([steps, made.samples.looked]).toEqual([2 * (25 + 2 + 1), 25]);
    // One sample a round.
    stepMs = 10_000;
    await w.run("update audit_segments set texts = texts || ' ' where first_seq = 5");
    for (let rounds = 0; made.flaws === 0 && rounds < 2000; rounds++) await round();
    expect([made.samples.looked, made.flaws]).toEqual([1, 1]);
    await w.run("update audit_segments set texts = rtrim(texts) where first_seq = 5");
    await round();
    expect(made.flaws).toBe(0);
  });

  test("is no place to hide behind: whatever its leaves say in SQL, new entries are looked at within the hour", async () => {
    await w.organization();
    await flaws();
    now = noon(11, 1);
    expect(await flaws(2)).toBe(0);
    const back = await savedTables(w, ["audit_leaves"]);
    // As if the lane ended there.
    for (const columns of ["last_seq = 1000000", "first_seq = 999999, last_seq = 1000000"]) {
      await w.run(`update audit_leaves set ${columns} where lane = 'commands'`);
      w.clock.nowMs = now;
      await w.organization();
      const { made, round } = await notary({
        rest: async (share) => {
          // No time for samples.
          if (share < 0.5) now += 20_000;
        },
      });
      for (let minute = 0; minute < 6 && made.flaws === 0; minute++) await round();
      expect([made.flaws, made.samples.looked]).toEqual([1, 0]);
      await back();
    }
  });

  test("is sealed once by two notaries, and by one that ends at any of its statements", async () => {
    await lane(3);
    await flaws();
    const back = await savedTables(w, tables);
    now = noon(11, 1);
    const second = w.installation.open("notary");
    const both = [await notary(), await notary({ database: second })];
    for (let rounds = 0; rounds < 3; rounds++) await Promise.all(both.map(({ round }) => round()));
    expect((await months()).map(({ month }) => month)).toEqual(["2026-10"]);
    await second.close();
    await back();
    const { signers } = await openSigners(w.admin.database, w.installation.keyring, w.admin.systemKeys.audit);
    for (let statements = 1, isOver = false; !isOver; statements++) {
      const { round } = await notary({ database: endingAt(w.admin.database, statements), signers });
      isOver = await round().then(
        () => true,
        () => false,
      );
      const found = [await flaws(2), (await months()).map(({ segments }) => segments)];
      expect({ statements, found }).toEqual({ statements, found: [0, [3]] });
      await back();
      expect(statements).toBeLessThan(60);
    }
  });

  test("is sealed again if the database was put back to before that, and the loss accepted", async () => {
    await lane(3);
    await flaws();
    const back = await savedTables(w, ["audit_leaves", "audit_checkpoints_signed", "audit_heads"]);
    now = noon(11, 1);
    const { made, round } = await notary();
    await round();
    await round();
    expect(await months()).toHaveLength(1);
    await back();
    await round();
    expect([made.flaws, await months()]).toEqual([1, []]);
    await (await notary({ accepts: true })).round();
    expect(await months()).toEqual([]);
    expect(await flaws(2)).toBe(0);
    expect((await months()).map(({ month, segments }) => [month, segments])).toEqual([["2026-10", 3]]);
  });

  once(
    "is of the tree that its leaf says, for whoever has only the public key; and its leaf proves no entry",
    async () => {
      const { lanes, november } = await sealOctober();
      const { database, keyring, systemKeys } = { ...w.installation, database: w.admin.database };
      const { signers: log } = await findVerifiers(database, keyring, systemKeys.audit);
      expect((await verifyPublic(database, log)).flaws).toEqual([]);
      const keys = (await auditKeys(w.admin)).map((key) => parseVerifier(key) as never);
      for (const name of [`${lanes[0]}:5`, `${lanes[1]}:1`, `${november}:2`]) {
        const [proof] = await proveAudit(w.admin, name);
        expect(checkProof(proof, keys)).toMatchObject({ receipt: name });
        const { text: segment } = (await monthsInOrder(database, 9))[0] as { text: string };
        expect(checkProof({ ...proof, segment }, keys)).toEqual({
          wrong: "its member `segment` is malformed or missing",
        });
      }
      // A notary that lies.
      const { signers } = await openSigners(database, keyring, systemKeys.audit);
      const tree = await readTree(database, (await treeEnd(database)).size);
      const before = { size: tree.size, root: tree.root };
      const text = encodeMonth({ month: "2026-11", size: 4, segments: 1, entries: 2, root: Buffer.alloc(32) });
      const row = { lane: text, firstSeq: 0, lastSeq: 0, hashes: tree.append(leafHash(text)) };
      const noted = { size: tree.size, root: tree.root, acceptedAt: 0 };
      const head = { size: tree.size, root: tree.root, at: now, note: signTreeHead(noted, signers[0]) };
      expect(await appendLeaves(database, before, [row], head, async () => {})).toBe(true);
      const found = (await verifyPublic(database, log)).flaws.map(({ sentence }) => sentence);
      expect(found).toEqual(["The sealed month 2026-11 is of another tree."]);
    },
  );
});
