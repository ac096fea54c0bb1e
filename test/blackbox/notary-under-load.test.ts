/** What a notary owes on bad days: killed again and again, behind, without its witness, and beside made-up entries. */

import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, setSystemTime, test } from "bun:test";
import { parseReceipt } from "../../src/core/receipt.ts";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { openSigners } from "../../src/record/notary/signers.ts";
import { startWitness } from "../../src/record/notary/witness-server.ts";
import { Witnesses } from "../../src/record/notary/witnesses.ts";
import { encodeWitness, witnessOf } from "../../src/record/note.ts";
import { encodeEntries, type Segment, segmentMac } from "../../src/record/segment.ts";
import type { Database } from "../../src/store/database.ts";
import { moment } from "../support/clock.ts";
import { startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { entry } from "../support/journal.ts";
import { notaryOf } from "../support/notarize.ts";
import { signAll, startNotary } from "../support/notary.ts";
import { type Key, long, makeKeys, onBoth, type Server, type Site, siteOf } from "../support/server.ts";
import { describeBoth, type LogEvent } from "../support/world.ts";

/** A slow machine takes minutes for what each of these waits for. */
setDefaultTimeout(600_000);

const kills = long ? 30 : 10;
const values = "/projects/web/variables?environment=staging";

onBoth("a notary beside load", (dialect) => {
  const site = siteOf(dialect, { staging: { TOKEN: "canary-of-the-load" } });
  let keys: readonly [Key, ...Key[]];
  let server: Server;

  const leaves = () => site.sql("select leaf, lane, first_seq, last_seq from audit_leaves order by leaf");
  const isOk = ({ status }: { readonly status: unknown }) => status === 200;
  const readers = (count: number) =>
    startReaders(
      count,
      () => server.origin,
      (client, at) => ({ path: values, key: keyAt(client + at * count) }),
      20,
    );
  const keyAt = (at: number) => keys[at % keys.length]?.key ?? "";
  const requireWhole = async () => {
    const [public_ = ""] = ((await site.json(["audit", "key"])) as { keys: string[] }).keys;
    for (const way of [[], ["--public", "--key", public_]]) {
      expect(await site.keyhole(["audit", "verify", ...way])).toMatchObject({ exitCode: 0 });
    }
  };

  beforeAll(async () => {
    keys = await makeKeys(site, 40, "variables");
  });

  test("that is killed again and again, with PostgreSQL beside another one, loses no leaf and makes none twice", async () => {
    server = await site.serve();
    const load = readers(3);
    let before = await leaves();
    for (let round = 0; round < kills; round++) {
      await load.more(3, isOk);
      // With SQLite the server is the notary.
      const notaries = dialect === "sqlite" ? [server] : await Promise.all([startNotary(site), startNotary(site)]);
      await moment((round * 11) % 100);
      await Promise.all(notaries.map((one) => one.stop("SIGKILL")));
      const after = await leaves();
      expect(after.slice(0, before.length)).toEqual(before);
      before = after;
      if (dialect === "sqlite") server = await site.serve();
    }
    const outcomes = await load.stop();
    expect(await server.stop()).toBe(0);
    await signAll(site);
    const all = await leaves();
    expect(all.slice(0, before.length)).toEqual(before);
    const ends = new Map<unknown, number>();
    for (const { lane, first_seq: first, last_seq: last } of all) {
      expect(Number(first)).toBe((ends.get(lane) ?? 0) + 1);
      ends.set(lane, Number(last));
    }
    const lanes = await site.sql("select lane, max(last_seq) as last from audit_segments group by lane");
    expect(ends).toEqual(new Map(lanes.map(({ lane, last }) => [lane, Number(last)])));
    const answered = outcomes
      .filter(isOk)
      .map(({ answer }) => parseReceipt(answer?.headers.get("keyhole-audit") ?? ""));
    expect(answered.length).toBeGreaterThanOrEqual(3 * kills);
    for (const receipt of answered) expect(receipt?.lastSeq).toBeLessThanOrEqual(ends.get(receipt?.lane) ?? 0);
    await requireWhole();
  });

  test("that is 25,000 large segments behind takes them in with bounded memory, while reads go on", async () => {
    const lane = await addSegments(site, 25_000);
    server = await site.serve();
    const notary = dialect === "sqlite" ? undefined : await startNotary(site);
    const load = readers(2);
    const taken = `select leaf from audit_leaves where lane = '${lane}' and last_seq = 25000`;
    await eventually(async () => (await site.sql(taken)).length === 1);
    await load.more(5, isOk);
    const peak = (notary ?? server).memory().peak;
    for (const { status } of await load.stop()) expect([200, 429]).toContain(status as number);
    // The segments alone are more than 150 MiB.
    expect(peak).toBeLessThan(256 * 2 ** 20);
    expect(await server.stop()).toBe(0);
    expect((await notary?.stop()) ?? 0).toBe(0);
    const said = notary?.said() ?? server.said().stdout;
    expect(said).not.toContain("audit_flaw");
    await requireWhole();
  });
});

/** Adds a lane of true segments, some 160 MB of them for 25,000. @returns its name */
async function addSegments(site: Site, count: number): Promise<string> {
  const { open, systemKeys } = await openInstallation(readConfig(site.env), () => {});
  const database = open("admin");
  const lane = crypto.randomUUID();
  const names = Array.from({ length: 160 }, (_, at) => `A_LONG_NAME_OF_A_VARIABLE_${at}`);
  let mac = Buffer.alloc(0);
  for (let seq = 1; seq <= count; ) {
    const rows: Segment[] = [];
    for (; rows.length < 1000 && seq <= count; seq++) {
      const encoded = encodeEntries([{ ...entry, names, requestId: `${seq}` }]);
      const segment = { lane, firstSeq: seq, lastSeq: seq, at: Date.now(), ...encoded };
      mac = segmentMac(systemKeys.audit, mac, segment) as typeof mac;
      rows.push({ ...segment, mac });
    }
    await database.db.insert(database.tables.auditSegments).values(rows);
  }
  await database.close();
  return lane;
}

/** All of a day stays in one month: a notary seals the month before, and signs once more for that. */
const midMonth = Date.UTC(2026, 5, 10);

describe("in the middle of a month", () => {
  beforeAll(() => void setSystemTime(midMonth));
  afterAll(() => void setSystemTime());
  describeBoth("a notary", (w) => {
    const folder = newFolder();
    const ours = witnessOf("witness.example", new Uint8Array(32).fill(8));
    const closing: (() => Promise<void>)[] = [];
    let log: LogEvent[] = [];
    /** The clock of notaries, people and witnesses. */
    let now = midMonth;
    let selects = 0;

    /** @param urls - of its witness */
    const notaryOn = async (...urls: readonly string[]) => {
      const database = w.installation.open("notary");
      closing.push(() => database.close());
      const { signers } = await openSigners(database, w.installation.keyring, w.admin.systemKeys.audit);
      const add = (event: LogEvent) => log.push(event);
      const witnesses = new Witnesses(
        database,
        urls.map((url) => ({ url, key: encodeWitness(ours) })),
        add,
      );
      const counted = { ...database, db: counting(database.db) };
      const notary = await notaryOf(w, { database: counted, signers, log: add, now: () => now });
      return { notary, witnesses, signers };
    };
    const counting = (db: Database["db"]) =>
      new Proxy(db, {
        get: (target, name) => {
          if (name === "select") selects += 1;
          const value = Reflect.get(target, name, target);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    const pass = (ms: number) => {
      now += ms;
      w.clock.nowMs = now;
    };
    const of = (event: string) => log.filter((one) => one.event === event);

    afterEach(async () => {
      for (const close of closing.splice(0)) await close();
      log = [];
    });

    test("whose witness is away for a day goes on, says so once, and has its signature once it is back", async () => {
      const { signers } = await notaryOn();
      const witness = (port = 0) =>
        startWitness({ folder, signer: ours, logs: signers, host: "127.0.0.1", port, log: () => {}, now: () => now });
      const { origin, stop } = witness();
      const { notary, witnesses } = await notaryOn(origin);
      const round = async () => {
        await w.organization();
        await notary.round();
        await witnesses.ask();
      };
      await round();
      await stop();
      const before = of("cosigned");
      for (const backAt = now + 86_400_000; now < backAt; pass(600_000)) await round();
      expect(of("witness_away")).toHaveLength(1);
      expect(of("signed_checkpoint")).toHaveLength(145);
      const back = witness(Number(new URL(origin).port));
      await round();
      await back.stop();
      const newest = of("signed_checkpoint").at(-1)?.["size"];
      expect(of("cosigned")).toEqual([...before, { event: "cosigned", witness: ours.name, size: newest }]);
      expect([witnesses.away, notary.flaws]).toEqual([{}, 0]);
    });

    test("beside a flood of lanes that somebody made up takes in what is true, and asks and says little of each", async () => {
      const { notary } = await notaryOn();
      await notary.round();
      const flood = async (count: number) => {
        const encoded = encodeEntries([entry]);
        const rows = Array.from({ length: count }, () => {
          const lane = crypto.randomUUID();
          return { lane, firstSeq: 1, lastSeq: 1, at: now, ...encoded, mac: Buffer.alloc(32, 1) };
        });
        const database = w.installation.open("admin");
        for (let at = 0; at < count; at += 500)
          await database.db.insert(database.tables.auditSegments).values(rows.slice(at, at + 500));
        await database.close();
      };
      for (const [more, all] of [
        [0, 0],
        [500, 500],
        [2500, 3000],
      ] as const) {
        await flood(more);
        await w.organization();
        [selects, log] = [0, []];
        await notary.round();
        expect(selects).toBeLessThan(100 + 4 * all);
        expect(of("audit_flaw").length).toBeLessThanOrEqual(Math.min(more, 1000));
        expect(of("signed_checkpoint")).toHaveLength(1);
      }
      expect(notary.flaws).toBeLessThanOrEqual(1500);
      expect(await w.run("select distinct lane from audit_leaves")).toEqual([{ lane: "commands" }]);
      log = [];
      await notary.round();
      expect(log).toEqual([]);
    });
  });
});
