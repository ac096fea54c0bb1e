import { afterEach, beforeEach, expect, test } from "bun:test";
import { kindsByRead } from "../../src/kinds/kind.ts";
import { acceptFlaws, verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { auditKeys } from "../../src/people/audit/audit-proof.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { leafOf } from "../../src/record/leaf.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { Notary, shared } from "../../src/record/notary/notary.ts";
import { findVerifiers, type OpenedSigner, openSigners } from "../../src/record/notary/signers.ts";
import { encodeVerifier, openNote } from "../../src/record/note.ts";
import { type Segment, segmentMac } from "../../src/record/segment.ts";
import { readNodes, treeEnd } from "../../src/record/store/tree-end.ts";
import {
  leafHash,
  proveConsistency,
  proveInclusion,
  verifyConsistency,
  verifyInclusion,
} from "../../src/record/tree.ts";
import { openTreeHead } from "../../src/record/tree-note.ts";
import { sealDropped } from "../../src/record/verify.ts";
import { installationId, saltKeyOf } from "../../src/seal/keyring.ts";
import type { Database } from "../../src/store/database.ts";
import { endingAt } from "../support/ending.ts";
import { putHeadBack, savedHead } from "../support/heads.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notaryOf } from "../support/notarize.ts";
import { pruneAudit } from "../support/prune.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, type LogEvent, type Row, type World } from "../support/world.ts";

/** Writes one lane, with one entry in each segment. @returns its name */
async function lane(w: World, count: number, at?: number): Promise<string> {
  const batches = Array.from({ length: count }, (_, done) => [{ ...entry, requestId: `${done}` }]);
  return (await writeLane(w, batches, at)).lane;
}

describeBoth("the notary", (w, _, once) => {
  const clock = { now: Date.now };
  let log: LogEvent[] = [];
  let database: Database;
  let signers: readonly [OpenedSigner, ...OpenedSigner[]];
  const notaryOn = (
    on: Database = database,
    file?: string,
    rest: (share: number) => Promise<void> = async () => {},
    accepts = false,
  ) =>
    new Notary({
      rest,
      accepts,
      kindsByRead,
      database: on,
      auditKey: w.admin.systemKeys.audit,
      signers,
      checkpoint: new NewestCheckpoint({ auditKey: w.admin.systemKeys.audit, signers: async () => signers, file }),
      log: (event) => log.push(event),
      now: () => clock.now(),
    });
  const flaws = () => log.filter(({ event }) => event === "audit_flaw").map(({ flaw }) => flaw);
  /** Those of lanes: months that are over have a test of their own. */
  const leaves = async () =>
    (await w.run(`select leaf, lane, first_seq, last_seq from audit_leaves
      where lane not like 'keyhole audit month%' order by leaf`)) as never[];

  /** Proves every leaf from what is stored, and each signed head from the one before. @returns the segments proved */
  async function requireSound(): Promise<string[]> {
    const segments: Segment[] = [];
    for (const row of await w.run("select * from audit_segments order by first_seq")) {
      const { lane, first_seq: firstSeq, last_seq: lastSeq, at, mac, texts, entries } = row as never;
      segments.push({ lane, firstSeq, lastSeq, at, mac, texts, entries });
    }
    const { size, head } = await treeEnd(database);
    if (head === undefined) {
      expect(size).toBe(0);
      return [];
    }
    const opened = openTreeHead(head.note, signers);
    expect(opened).toMatchObject({ size, root: head.root, acceptedAt: 0 });
    const read = (nodes: Parameters<typeof readNodes>[1]) => readNodes(database, nodes);
    const proved: string[] = [];
    for (const { leaf, lane, first_seq: from, last_seq: to } of await leaves()) {
      const own = segments.filter((one) => one.lane === lane && one.firstSeq >= from && one.lastSeq <= to);
      const text = leafOf(saltKeyOf(w.admin.systemKeys.audit), own)?.text as string;
      const proof = await proveInclusion(leaf, size, read);
      expect(verifyInclusion(leafHash(text), leaf, head, proof)).toBe(true);
      proved.push(...own.map(({ lastSeq }) => `${lane}:${lastSeq}`));
    }
    for (const row of await w.run("select size, root, note from audit_checkpoints_signed order by size")) {
      const earlier = row as { size: number; root: Buffer; note: string };
      const shown = { size: earlier.size, root: earlier.root, acceptedAt: 0 };
      expect(openTreeHead(earlier.note, signers)).toMatchObject(shown);
      const proof = await proveConsistency(earlier.size, size, read);
      expect(verifyConsistency(earlier, head, proof)).toBe(true);
    }
    expect(new Set(proved).size).toBe(proved.length);
    return proved;
  }

  beforeEach(async () => {
    for (const table of ["segments", "checkpoints", "heads", "leaves", "checkpoints_signed", "signers"])
      await w.run(`delete from audit_${table}`);
    log = [];
    clock.now = Date.now;
    database = w.installation.open("notary");
    ({ signers } = await openSigners(database, w.installation.keyring, w.admin.systemKeys.audit));
  });
  afterEach(() => database.close());

  test("takes half a processor for what is new and a tenth to look again, and takes in all the same", async () => {
    await lane(w, 30);
    let [workedMs, restedMs] = [0, 0];
    const rest = shared(
      () => workedMs,
      async (ms) => {
        restedMs += ms;
      },
    );
    const shares = new Set<number>();
    const notary = notaryOn(database, undefined, async (share) => {
      shares.add(share);
      workedMs += 10;
      const before = restedMs;
      await rest(share);
      expect(restedMs - before).toBeCloseTo(10 / share - 10);
    });
    await notary.round();
    expect(await requireSound()).toHaveLength(30);
    expect([...shares]).toEqual([0.5, 0.1]);
  });

  test("signs what is new before it looks at anything old, and looks again only until the next round is due", async () => {
    const one = await lane(w, 2500);
    const notary = notaryOn(database, undefined, async (share) => {
      // Each step of looking again takes a second.
      order.push(share < 0.5 ? "old" : "new");
      const at = clock.now() + (share < 0.5 ? 1000 : 0);
      clock.now = () => at;
    });
    const order: string[] = [];
    const begun = Date.now();
    const newest = async () => Number((await w.run("select max(at) as at from audit_checkpoints_signed"))[0]?.["at"]);
    for (let minute = 0; minute < 4; minute++) {
      const startedAt = begun + minute * 60_000;
      clock.now = () => startedAt;
      await lane(w, 3, startedAt);
      order.length = 0;
      await notary.round();
      expect(await newest()).toBe(startedAt);
      expect([order[0], order.lastIndexOf("new") < order.indexOf("old")]).toEqual(["new", true]);
      expect(clock.now() - startedAt).toBeLessThanOrEqual(61_000);
    }
    // What was cut is gone on with, until all was looked at.
    await w.run(`delete from audit_segments where lane = '${one}' and first_seq = 1500`);
    for (let minute = 4; minute < 60; minute++) {
      const startedAt = begun + minute * 60_000;
      clock.now = () => startedAt;
      await notary.round();
    }
    expect(flaws()).toEqual([`Lane ${one}: the chain breaks at entry 1500.`]);
  });

  test("signs what is new in each round, also beside 2, 4 and 10 times the old segments that an hour is enough for", async () => {
    const count = 2000;
    await lane(w, count);
    const newest = async () => Number((await w.run("select max(at) as at from audit_checkpoints_signed"))[0]?.["at"]);
    let startedAt = Date.now();
    for (const times of [2, 4, 10]) {
      const notary = notaryOn(database, undefined, async (share) => {
        const at = clock.now() + (share < 0.5 ? (times * 3_600_000) / count : 0);
        clock.now = () => at;
      });
      for (let round = 0; round < 4; round++) {
        startedAt = Math.max(startedAt + 60_000, clock.now());
        const begun = startedAt;
        clock.now = () => begun;
        await lane(w, 3, begun);
        await notary.round();
        expect([times, await newest()]).toEqual([times, begun]);
        expect(clock.now() - begun).toBeLessThanOrEqual(120_000);
      }
    }
  });

  test("does what is left of a round if a part of it fails, says so, and counts it as not complete", async () => {
    const { key } = await w.place({ key: {} });
    const live = await savedTables(w, ["api_keys"]);
    await revokeKey(w.admin, key.id);
    const broken: Readonly<Record<string, (notary: Database) => Database>> = {
      "what is new": (on) => failingAt(on, (table) => table === on.tables.auditLeaves),
      "the state": (on) => failingAt(on, (table) => table === on.tables.apiKeys),
      "the exceptions": (on) => failingAt(on, (table) => table === on.tables.auditExceptions),
    };
    for (const [what, breaking] of Object.entries(broken)) {
      const before = await leaves();
      await lane(w, 2);
      log = [];
      const notary = notaryOn(breaking(database));
      const { completeAt } = notary;
      clock.now = () => Date.now() + 1000;
      const failed = await notary.round().then(() => "", String);
      expect({ what, failed, completeAt: notary.completeAt }).toEqual({ what, failed: "Error: broken", completeAt });
      const isTaken = (await leaves()).length > before.length;
      expect([what, isTaken]).toEqual([what, what !== "what is new"]);
      if (what !== "what is new") continue;
      await live();
      await notary.round().catch(String);
      expect(flaws()).toEqual([expect.stringContaining(`key:${key.id} was put back`)]);
      await revokeKey(w.admin, key.id);
      await w.run("delete from audit_exceptions");
    }
  });

  test("puts every segment into the tree once, in signed steps, and proves each of them", async () => {
    const notary = notaryOn();
    await notary.round();
    expect(await requireSound()).toEqual([]);
    const names = [await lane(w, 5), await lane(w, 3)];
    await w.organization();
    await notary.round();
    const proved = await requireSound();
    const expected = [1, 2, 3, 4, 5]
      .map((seq) => `${names[0]}:${seq}`)
      .concat([1, 2, 3].map((seq) => `${names[1]}:${seq}`));
    expect(proved.toSorted()).toEqual([...expected, "commands:1"].toSorted());
    await notary.round();
    expect(await requireSound()).toEqual(proved);
    await lane(w, 2);
    await w.organization();
    await notary.round();
    const later = await requireSound();
    expect(later.slice(0, proved.length)).toEqual(proved);
    expect(later).toHaveLength(proved.length + 3);
    expect(notary.flaws).toBe(0);
    const events = log.filter(({ event }) => event === "signed_checkpoint");
    expect(events.map(({ size }) => size)).toEqual([3, 5]);
    const stranger = { ...signers[0], seed: undefined, privateKey: undefined };
    expect(openNote(events[1]?.["note"] as string, [stranger])).toStartWith(
      `keyhole/${installationId(w.admin.systemKeys.audit)}\n5\n`,
    );
    // Another process goes on where this one ended.
    await lane(w, 1);
    await notaryOn().round();
    expect(await requireSound()).toHaveLength(13);
  });

  test("makes a leaf of what a lane wrote in a round: of one month, and of at most 4,096 entries", async () => {
    const month = Date.UTC(2026, 0, 1);
    const one = (await writeLane(w, [[entry], [entry], [entry]], (batch) => month - 2 + batch)).lane;
    const many = Array.from({ length: 9 }, () => Array.from({ length: 512 }, () => entry));
    const other = (await writeLane(w, many)).lane;
    await notaryOn().round();
    const made = async (of: string) =>
      (await leaves()).filter(({ lane }) => lane === of).map(({ first_seq: from, last_seq: to }) => `${from}-${to}`);
    expect(await made(one)).toEqual(["1-2", "3-3"]);
    expect(await made(other)).toEqual(["1-4096", "4097-4608"]);
    expect(await requireSound()).toHaveLength(3 + 9);
  });

  test("keeps what is not in order out of the tree, says so once, and goes on behind it", async () => {
    const name = await lane(w, 6);
    await w.sql`update audit_segments set entries = '{"names":[],"entries":[]}' where lane = ${name} and last_seq = 3`;
    const other = await lane(w, 1);
    const notary = notaryOn();
    await notary.round();
    await notary.round();
    const expected = [...[1, 2, 4, 5, 6].map((seq) => `${name}:${seq}`), `${other}:1`];
    expect((await requireSound()).toSorted()).toEqual(expected.toSorted());
    expect(flaws()).toEqual([`Lane ${name}: the chain breaks at entry 3.`]);
    expect(notary.flaws).toBe(1);
    // Also for a process that starts later, when the tree is far beyond it.
    log = [];
    const later = notaryOn();
    await later.round();
    expect(later.flaws).toBe(1);
    expect(flaws()).toEqual([`Lane ${name}: the chain breaks at entry 3.`]);
    // To take it away hides nothing, though no leaf is of it.
    await w.sql`delete from audit_segments where lane = ${name} and last_seq = 3`;
    clock.now = () => Date.now() + 3_600_000;
    await later.round();
    expect(later.flaws).toBe(1);
    expect((await verifyAudit(w.admin)).flaws).toMatchObject([{ lane: name, seq: 3, lastSeq: 3, what: "broken" }]);
  });

  test("keeps out a segment that nobody can read, though its mac is true, and names it for good", async () => {
    const name = await lane(w, 3);
    let mac: Buffer = Buffer.alloc(0);
    for (const row of await w.run("select * from audit_segments order by first_seq")) {
      const { first_seq: firstSeq, last_seq: lastSeq, at, texts, entries: written } = row as never;
      const entries = firstSeq === 2 ? "{}" : written;
      mac = segmentMac(w.admin.systemKeys.audit, mac, { lane: name, firstSeq, lastSeq, at, texts, entries });
      await w.sql`update audit_segments set entries = ${entries}, mac = ${mac} where first_seq = ${firstSeq}`;
    }
    const notary = notaryOn();
    for (let hour = 0; hour < 3; hour++) {
      clock.now = () => Date.now() + hour * 3_600_000;
      await notary.round();
      expect(notary.flaws).toBe(1);
    }
    expect(flaws()).toEqual([`Lane ${name}: the chain breaks at entry 2.`]);
    expect(await requireSound()).toEqual([`${name}:1`, `${name}:3`]);
    expect((await verifyAudit(w.admin)).flaws).toMatchObject([{ lane: name, seq: 2, lastSeq: 2, what: "broken" }]);
  });

  test("knows an accepted loss of the end of one leaf and the begin of the next", async () => {
    const month = Date.UTC(2026, 0, 1);
    const { lane: name } = await writeLane(
      w,
      Array.from({ length: 6 }, () => [entry]),
      (batch) => month - 3 + batch,
    );
    const notary = notaryOn();
    await notary.round();
    expect(await leaves()).toHaveLength(2);
    await w.sql`delete from audit_segments where lane = ${name} and first_seq in (3, 4)`;
    await acceptFlaws(w.admin, await verifyAudit(w.admin), [`${name}:3-4`]);
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [], accepted: [{ lane: name, seq: 3, lastSeq: 4 }] });
    for (let hour = 1; hour < 3; hour++) {
      clock.now = () => Date.now() + hour * 3_600_000;
      await notary.round();
    }
    expect(notary.flaws).toBe(0);
  });

  test("takes no segment that somebody added, or put into another place or lane", async () => {
    const name = await lane(w, 3);
    const notary = notaryOn();
    await notary.round();
    const columns = "at, mac, texts, entries";
    await w.run(`insert into audit_segments (lane, first_seq, last_seq, ${columns})
      select lane, 4, 4, ${columns} from audit_segments where last_seq = 3`);
    await w.run(`insert into audit_segments (lane, first_seq, last_seq, ${columns})
      select 'made-up', 1, 1, ${columns} from audit_segments where last_seq = 1`);
    await notary.round();
    expect(await leaves()).toHaveLength(1);
    expect(flaws()).toEqual(
      ["Lane made-up: the chain breaks at entry 1.", `Lane ${name}: the chain breaks at entry 4.`].toSorted(),
    );
  });

  test("takes in what an accepted loss binds, within the hour", async () => {
    const name = await lane(w, 5);
    await w.sql`delete from audit_segments where lane = ${name} and last_seq = 3`;
    const notary = notaryOn();
    await notary.round();
    expect((await requireSound()).toSorted()).toEqual([1, 2, 5].map((seq) => `${name}:${seq}`));
    expect(notary.flaws).toBe(1);
    await acceptFlaws(w.admin, await verifyAudit(w.admin), [`${name}:3-3`]);
    for (let minute = 0; minute < 2; minute++) await notary.round();
    expect(notary.flaws).toBe(0);
    const expected = ["commands:1", ...[1, 2, 4, 5].map((seq) => `${name}:${seq}`)];
    expect((await requireSound()).toSorted()).toEqual(expected.toSorted());
  });

  test("takes in what a wrong clock dated too early, too", async () => {
    const notary = notaryOn();
    await notary.round();
    await lane(w, 2, Date.now() - 7_200_000);
    await notary.round();
    expect(await requireSound()).toHaveLength(2);
    expect(notary.flaws).toBe(0);
  });

  test("goes on where retention cut, and keeps the leaves of what was dropped", async () => {
    const month = 31 * 86_400_000;
    await lane(w, 3, Date.now() - 4 * month);
    const notary = notaryOn();
    await notary.round();
    await pruneAudit(w.admin, month);
    await lane(w, 2);
    clock.now = () => Date.now() + 3_600_000;
    await notary.round();
    expect(await leaves()).toHaveLength(3);
    expect(notary.flaws).toBe(0);
    expect(await w.run("select * from audit_segments")).toHaveLength(3);
  });

  test("names what SQL did to anything in the tree, a lane and a leaf in the middle too, and so does `audit verify`", async () => {
    const one = await lane(w, 8);
    const two = await lane(w, 8);
    for (let count = 0; count < 3; count++) {
      await w.organization();
      await notaryOn().round();
    }
    const tables = ["audit_segments", "audit_heads", "audit_leaves", "audit_checkpoints_signed", "audit_checkpoints"];
    const back = await savedTables(w, tables);
    const of = `lane = '${one}'`;
    const renamed = async () => {
      // With the audit key, the macs behind a forged entry are made again.
      let mac: Buffer = Buffer.alloc(0);
      for (const row of await w.run(`select * from audit_segments where ${of} order by first_seq`)) {
        const { first_seq: firstSeq, last_seq: lastSeq, at, entries, texts } = row as never;
        const forged = String(texts).replace("key-1", "key-2");
        const segment = { lane: one, firstSeq, lastSeq, at, entries, texts: forged };
        mac = segmentMac(w.admin.systemKeys.audit, mac, segment);
        await w.sql`update audit_segments set texts = ${forged}, mac = ${mac} where lane = ${one} and first_seq = ${firstSeq}`;
      }
    };
    const edits: Readonly<Record<string, () => Promise<unknown>>> = {
      "a segment less": () => w.run(`delete from audit_segments where ${of} and first_seq = 4`),
      "the first five less": () => w.run(`delete from audit_segments where ${of} and first_seq < 6`),
      "other numbers of a leaf": () => w.run(`update audit_leaves set first_seq = 2 where ${of}`),
      "a later end of a leaf": () => w.run(`update audit_leaves set last_seq = last_seq + 1 where ${of}`),
      "a smaller leaf": async () => {
        await w.run(`delete from audit_segments where ${of} and first_seq > 5`);
        await w.run(`update audit_leaves set last_seq = 5 where ${of}`);
      },
      "another time": () => w.run(`update audit_segments set at = at + 1 where ${of} and first_seq = 4`),
      "one of people's less": () => w.run("delete from audit_segments where lane = 'commands' and first_seq = 2"),
      "other entries of people": async () => {
        await w.run("update audit_segments set entries = entries || ' ' where lane = 'commands' and first_seq = 2");
        await w.run("update audit_segments set texts = '[]' where lane = 'commands' and first_seq = 1");
        await w.organization();
      },
      "a second segment for a leaf": () =>
        w.run(`insert into audit_segments (lane, first_seq, last_seq, at, mac, texts, entries)
          select lane, 3, 4, at + 1, mac, texts, entries from audit_segments where ${of} and first_seq = 4`),
      "entries forged with the audit key": renamed,
      "the end less, and its leaves called otherwise": async () => {
        await w.run(`delete from audit_segments where ${of} and first_seq > 5`);
        await w.run(`update audit_leaves set lane = 'commands', last_seq = 5 - last_seq where ${of} and last_seq > 5`);
      },
      "the end less, and its leaves called what retention dropped once": async () => {
        const dropped = { lane: "dropped", seq: 9, mac: Buffer.alloc(32) };
        const seal = sealDropped(w.admin.systemKeys.audit, dropped);
        await w.sql`insert into audit_checkpoints (lane, seq, mac, seal) values ('dropped', 9, ${dropped.mac}, ${seal})`;
        await w.run(`delete from audit_segments where ${of} and first_seq > 5`);
        await w.run(`update audit_leaves set lane = 'dropped' where ${of} and last_seq > 5`);
      },
      "a leaf before the first": () =>
        w.sql`insert into audit_leaves (leaf, lane, first_seq, last_seq, hashes) values (-1, 'x', 1, 1, ${Buffer.alloc(32)})`,
      "a leaf that no memory could reach": () =>
        w.sql`insert into audit_leaves (leaf, lane, first_seq, last_seq, hashes) values (${2 ** 50}, 'x', 1, 1, ${Buffer.alloc(32)})`,
      "all that is gone called otherwise": async () => {
        await w.run("delete from audit_segments where lane = 'commands' and first_seq > 1");
        await w.run("update audit_heads set seq = 1");
        await w.run(`update audit_leaves set last_seq = -1 - leaf where not exists (select 1 from audit_segments s
          where s.lane = audit_leaves.lane and s.last_seq = audit_leaves.last_seq)`);
      },
      "two leaves exchanged": async () => {
        await w.run(`update audit_leaves set lane = 'x' where ${of}`);
        await w.run(`update audit_leaves set lane = '${one}' where lane = '${two}'`);
        await w.run(`update audit_leaves set lane = '${two}' where lane = 'x'`);
      },
      "a leaf that is a copy of another": async () => {
        const [row] = await w.run(`select * from audit_leaves where lane = 'commands' and last_seq = 2`);
        await w.sql`update audit_leaves set hashes = ${row?.["hashes"]} where lane = 'commands' and last_seq = 1`;
      },
    };
    for (const [what, edit] of Object.entries(edits)) {
      const notary = notaryOn();
      await notary.round();
      expect({ what, flaws: notary.flaws }).toEqual({ what, flaws: 0 });
      await edit();
      clock.now = () => Date.now() + 3_600_000;
      await notary.round();
      const { flaws } = await verifyAudit(w.admin);
      const named = [notary.flaws > 0, flaws.length > 0];
      expect({ what, named }).toEqual({ what, named: [true, true] });
      clock.now = Date.now;
      await back();
    }
  });

  test("holds all of a large tree against the audit within the hour, a part each minute, and after a pause at once", async () => {
    const one = await lane(w, 2300);
    const start = Date.now();
    const at = (minutes: number) => {
      clock.now = () => start + minutes * 60_000;
    };
    const notary = notaryOn();
    // The first pass of a notary takes as long as it takes; then it knows how much there is.
    at(-60);
    await notary.round();
    at(0);
    await notary.round();
    await w.run(`delete from audit_segments where lane = '${one}' and first_seq in (10, 2290)`);
    const [named, looked]: [number[], number[]] = [[], []];
    for (let minute = 1; minute <= 3; minute++) {
      at(minute);
      await notary.round();
      named.push(notary.flaws);
      looked.push((notary.lookedAt - start) / 60_000);
      if (minute === 2) await w.run(`delete from audit_segments where lane = '${one}' and first_seq = 1500`);
    }
    expect(named).toEqual([1, 1, 2]);
    // When the newest pass began that is over.
    expect(looked).toEqual([-60, -60, 0]);
    at(90);
    await notary.round();
    expect([notary.flaws, (notary.lookedAt - start) / 60_000]).toEqual([3, 3]);
  });

  once("goes over the tree again from its first leaf once a loss was accepted", async () => {
    await lane(w, 1200);
    await notaryOn().round();
    const lost = await lane(w, 900);
    // Each step of looking again takes a tenth of a second, so the pass is not done.
    const notary = notaryOn(database, undefined, async (share) => {
      const now = clock.now() + (share < 0.5 ? 100 : 0);
      clock.now = () => now;
    });
    await notary.round();
    clock.now = Date.now;
    await w.run(`delete from audit_segments where lane = '${lost}'`);
    await w.run("delete from audit_leaves where leaf >= 1");
    await w.run("delete from audit_checkpoints_signed where size > 1");
    await w.organization();
    await notaryOn(database, undefined, undefined, true).round();
    await lane(w, 1000);
    await notaryOn().round();
    await notary.round();
    expect([flaws(), notary.flaws]).toEqual([[], 0]);
  });

  test("catches up after rounds that failed, however long that took", async () => {
    const notary = notaryOn();
    await notary.round();
    await lane(w, 3, Date.now() + 60_000);
    clock.now = () => Date.now() + 31 * 60_000;
    await notary.round();
    expect(await requireSound()).toHaveLength(3);
    // Also in the middle of the leaves that it compares: what it has seen of them is not counted twice.
    await lane(w, 40);
    await notary.round();
    let [failed, statements] = [true, 0];
    while (failed) {
      statements += 1;
      const late = notaryOn(endingAt(database, statements));
      const first = late.round();
      failed = await first.then(
        () => false,
        () => true,
      );
      if (failed) await late.round();
      expect({ statements, flaws: late.flaws }).toEqual({ statements, flaws: 0 });
    }
    expect(statements).toBeGreaterThan(8);
  });

  test("names entries that are in the tree and gone, within the hour, until their loss is accepted", async () => {
    const one = await lane(w, 5);
    const other = await lane(w, 2);
    const notary = notaryOn();
    await notary.round();
    await w.sql`delete from audit_segments where lane = ${one} and first_seq > 3`;
    // Nobody can pass it off as retention.
    await w.sql`insert into audit_checkpoints values (${one}, 5, ${Buffer.alloc(32)}, ${Buffer.alloc(32)})`;
    clock.now = () => Date.now() + 3_600_000;
    await notary.round();
    expect(flaws()).toEqual([`Lane ${one}: entries 4 to 5 are in the signed tree and not in the audit any more.`]);
    const found = await verifyAudit(w.admin);
    expect(found.flaws).toMatchObject([{ lane: one, seq: 4, lastSeq: 5, what: "gone" }]);
    expect((await acceptFlaws(w.admin, found, [`${one}:4-5`])).flaws).toEqual([]);
    clock.now = () => Date.now() + 7_200_000;
    await notary.round();
    expect(notary.flaws).toBe(0);
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [], accepted: [{ lane: one, seq: 4, lastSeq: 5 }] });
    // With more of it, it is another loss, and so is a whole lane.
    await w.sql`delete from audit_segments where lane = ${one} and first_seq > 2`;
    await w.sql`delete from audit_segments where lane = ${other}`;
    const gone = new Map([
      [`${one}:3-5`, `Lane ${one}: entries 3 to 5 are in the signed tree and not in the audit any more.`],
      [`${other}:1-2`, `Lane ${other}: entries 1 to 2 are in the signed tree and not in the audit any more.`],
    ]);
    expect(new Map((await verifyAudit(w.admin)).flaws.map(({ name, sentence }) => [name, sentence]))).toEqual(gone);
    const next = notaryOn();
    await next.round();
    expect(new Set(flaws().slice(1))).toEqual(new Set(gone.values()));
    expect(next.flaws).toBe(2);
  });

  test("names the end of a lane that was cut off and grew again, with the same numbers or over them", async () => {
    const saved: Row[] = [];
    for (let count = 0; count < 3; count++) {
      await w.organization();
      saved.push(await savedHead(w));
    }
    await notaryOn().round();
    const [first, second] = saved as [Row, Row, Row];
    const before = await leaves();
    const cutTo = async (head: Row) => {
      await w.sql`delete from audit_segments where lane = 'commands' and first_seq > ${head["seq"]}`;
      await putHeadBack(w, head);
    };
    // The tree and the lane end with the same entry again; then the lane is longer.
    await cutTo(second);
    for (const more of [1, 2]) {
      await w.organization();
      const notary = notaryOn();
      await notary.round();
      expect({ more, flaws: notary.flaws, leaves: await leaves() }).toEqual({ more, flaws: 1, leaves: before });
    }
    // One segment holds what were two.
    await cutTo(first);
    await w.organization();
    await w.sql`update audit_segments set last_seq = ${Number(first["seq"]) + 3} where lane = 'commands' and first_seq > ${first["seq"]}`;
    const notary = notaryOn();
    await notary.round();
    expect([notary.flaws > 0, await leaves()]).toEqual([true, before]);
    expect(flaws().at(-1)).toContain("A part of the database was put back");
  });

  test("signs nothing over leaves that it did not sign, whatever was changed in them", async () => {
    for (let count = 0; count < 7; count++) await lane(w, 1);
    await notaryOn().round();
    const saved = await w.run("select * from audit_leaves order by leaf");
    const heads = await w.run("select * from audit_checkpoints_signed");
    const putBack = async () => {
      await w.run("delete from audit_leaves");
      await w.run("delete from audit_checkpoints_signed");
      for (const { leaf, lane, last_seq, hashes, first_seq } of saved)
        await w.sql`insert into audit_leaves values (${leaf}, ${lane}, ${last_seq}, ${hashes}, ${first_seq})`;
      for (const { size, root, at, note } of heads)
        await w.sql`insert into audit_checkpoints_signed values (${size}, ${root}, ${at}, ${note})`;
    };
    const changes: Readonly<Record<string, () => Promise<unknown>>> = {
      "a hash": () => w.sql`update audit_leaves set hashes = ${Buffer.alloc(96, 1)} where leaf = 3`,
      "a shorter hash": () => w.sql`update audit_leaves set hashes = ${Buffer.alloc(5)} where leaf = 6`,
      "a leaf less": () => w.run("delete from audit_leaves where leaf = 6"),
      "a leaf more": () =>
        w.sql`insert into audit_leaves (leaf, lane, first_seq, last_seq, hashes) values (7, ${"x"}, 1, 1, ${Buffer.alloc(256)})`,
      "no leaf": () => w.run("delete from audit_leaves"),
      "no head": () => w.run("delete from audit_checkpoints_signed"),
      "a head of nobody": () => w.run("update audit_checkpoints_signed set note = 'x'"),
      "another size in a note": () =>
        w.run(`update audit_checkpoints_signed set note = replace(note, '\n7\n', '\n6\n')`),
    };
    const next = await lane(w, 1);
    for (const [what, change] of Object.entries(changes)) {
      await change();
      const before = await leaves();
      const notary = notaryOn();
      await notary.round();
      expect({ what, flaws: notary.flaws, leaves: await leaves() }).toEqual({ what, flaws: 1, leaves: before });
      await putBack();
      await notary.round();
      expect({ what, flaws: notary.flaws }).toEqual({ what, flaws: 0 });
      await putBack();
    }
    // A row that somebody wrote has the next entry.
    await w.sql`insert into audit_leaves values (-1, ${next}, 1, ${Buffer.alloc(32)}, 1)`;
    await notaryOn().round();
    const named = [`Lane ${next}: the chain breaks at entry 1.`, "Leaf -1 is not a leaf of a tree."];
    expect(flaws().slice(-2)).toEqual(named);
  });

  test("notices that the tree was put back to an earlier one while it runs, and signs nothing", async () => {
    await lane(w, 3);
    const notary = notaryOn();
    await notary.round();
    const cut = await lane(w, 2);
    await notary.round();
    await w.run("delete from audit_leaves where leaf >= 1");
    await w.run("delete from audit_checkpoints_signed where size > 1");
    await w.sql`delete from audit_segments where lane = ${cut}`;
    await lane(w, 4);
    await notary.round();
    await notary.round();
    expect(flaws()).toEqual([expect.stringContaining("put back to an earlier state")]);
    expect(await leaves()).toHaveLength(1);
    // A larger tree is still another one.
    await notaryOn().round();
    expect(await requireSound()).toHaveLength(7);
    await notary.round();
    expect(notary.flaws).toBe(1);
  });

  test("that is one of two at once makes one tree with the other", async () => {
    const second = w.installation.open("notary");
    const notaries = [notaryOn(), notaryOn(second)];
    for (let at = 0; at < 6; at++) {
      await lane(w, 5);
      await Promise.all(notaries.map((notary) => notary.round()));
      for (const { flaws } of notaries) expect(flaws).toBe(0);
    }
    await notaries[0]?.round();
    expect(await requireSound()).toHaveLength(30);
    await second.close();
  });

  test("that ends at any of its statements leaves a tree that the next one goes on with", async () => {
    await lane(w, 4);
    await notaryOn().round();
    await lane(w, 3);
    for (let statements = 1; ; statements++) {
      const before = await requireSound();
      const ended = await notaryOn(endingAt(database, statements))
        .round()
        .then(
          () => false,
          () => true,
        );
      const after = await requireSound();
      if (!ended) break;
      // Unless all was done: the head and the leaves are one.
      expect([before.length, 7]).toContain(after.length);
      expect(statements).toBeLessThan(40);
    }
    expect(await requireSound()).toHaveLength(7);
    await lane(w, 1);
    const next = notaryOn();
    await next.round();
    expect(await requireSound()).toHaveLength(8);
    expect(next.flaws).toBe(0);
  });
});

/** A database whose tables of this kind cannot be read. */
function failingAt(database: Database, isBroken: (table: unknown) => boolean): Database {
  const db = new Proxy(database.db, {
    get: (target, name) => {
      if (name !== "select") return Reflect.get(target, name);
      return (...columns: []) => ({
        from: (table: never) => {
          if (isBroken(table)) throw new Error("broken");
          return target.select(...columns).from(table);
        },
      });
    },
  });
  return { ...database, db };
}

describeBoth("the keys that sign", (w) => {
  const auditKey = () => w.admin.systemKeys.audit;
  const open = async () => {
    const database = w.installation.open("notary");
    return openSigners(database, w.installation.keyring, w.admin.systemKeys.audit).finally(() => database.close());
  };

  test("are made once, by the first of several notaries", async () => {
    const opened = await Promise.all([open(), open(), open()]);
    const keys = opened.map(({ signers: [signer] }) => encodeVerifier(signer));
    expect(new Set(keys).size).toBe(1);
    expect(await w.run("select generation from audit_signers")).toEqual([{ generation: 1 }]);
    expect(keys[0]).toStartWith(`keyhole/${installationId(w.admin.systemKeys.audit)}+`);
  });

  test("are passed over and named if SQL changed their row or made one up, and the first is made again", async () => {
    const harms: Readonly<Record<string, readonly [harm: string, ...why: string[]]>> = {
      "no row": ["delete from audit_signers"],
      "another public key": [
        `update audit_signers set public_key = ${w.dialect === "postgres" ? "'\\x00'" : "x'00'"}`,
        "Row 1 of audit_signers was changed or made up: its keys do not belong together.",
      ],
      "another root": [
        "update audit_signers set root_id = 'other'",
        "Row 1 of audit_signers is under the root key other, which is not given here.",
      ],
      "another generation": [
        "update audit_signers set generation = 2",
        "Row 2 of audit_signers was changed or made up: it does not open.",
      ],
      "a copy": [
        `insert into audit_signers (generation, public_key, root_id, wrapped, created_at)
          select 2, public_key, root_id, wrapped, created_at from audit_signers`,
        "Row 2 of audit_signers was changed or made up: it does not open.",
      ],
    };
    const {
      signers: [key],
    } = await open();
    const rows = await savedTables(w, ["audit_signers"]);
    for (const [what, [harm, ...why]] of Object.entries(harms)) {
      await w.run(harm);
      const sentences = why.map((one) => expect.stringContaining(one));
      const found = await open();
      const named = (flaws: readonly { readonly sentence: string }[]) => flaws.map(({ sentence }) => sentence);
      expect({ what, keys: found.signers, flaws: named(found.flaws) }).toEqual({ what, keys: [key], flaws: sentences });
      expect([what, await auditKeys(w.admin)]).toEqual([what, [encodeVerifier(key)]]);
      expect([what, named((await verifyAudit(w.admin)).flaws)]).toEqual([what, sentences]);
      expect([what, await w.run("select generation from audit_signers where generation = 1")]).toEqual([
        ...[what, [{ generation: 1 }]],
      ]);
      // What is named once is named until it is mended.
      const log: LogEvent[] = [];
      const damaged = async () => (await findVerifiers(w.admin.database, w.admin.keyring, auditKey())).flaws;
      const notary = await notaryOf(w, { damaged, log: (event) => log.push(event) });
      await notary.round();
      await notary.round();
      const logged = log.filter(({ event }) => event === "audit_flaw").map(({ flaw }) => flaw);
      expect([what, logged, notary.flaws]).toEqual([what, sentences, why.length]);
      await rows();
      await notary.round();
      expect([what, notary.flaws]).toEqual([what, 0]);
    }
  });
});
