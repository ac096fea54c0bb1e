import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { join } from "node:path";
import fc from "fast-check";
import { Deadline } from "../../src/core/deadline.ts";
import { Fault } from "../../src/core/fault.ts";
import { sha256Of } from "../../src/core/hash.ts";
import type { JobRead } from "../../src/core/names.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { type Append, entriesMax, type LaneCheckpoint, Unmet } from "../../src/record/journal.ts";
import { decodeEntries, encodeEntries, type Segment, segmentMac } from "../../src/record/segment.ts";
import { Budget } from "../../src/serve/limit/budget.ts";
import { requestOf } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { auditKey, entry, journalOn, writeLane } from "../support/journal.ts";
import { insertFiles, numbered } from "../support/rows.ts";
import { seed } from "../support/seed.ts";
import { describeBoth, describePostgres, everything, type Key, type Row, type World } from "../support/world.ts";

describe("the journal", () => {
  test("writes what arrives in one turn together, and what arrives meanwhile as the next batch", async () => {
    const { append, answer } = byHand();
    const { journal, batches } = open(append);
    const record = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => journal.record([numberedEntry(from + i)]));
    const calls = record(0, 10);
    await turn();
    calls.push(...record(10, 60));
    await turn();
    calls.push(...record(60, 100));
    await answer({ outcome: "durable" });
    await answer({ outcome: "durable" });
    await Promise.all(calls);
    expect(batches.map(({ entries }) => entries.length)).toEqual([10, 90]);
    expect(namesIn(batches)).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`));
    expectChain(batches);
  });

  test("goes on in its lane after a defect of what it reports to", async () => {
    // In a process of its own: here, a rejection that nobody handles fails the test.
    const module = JSON.stringify(join(import.meta.dir, "../support/journal.ts"));
    const script = `const { entry, journalOn } = await import(${module});
      const defect = new Promise((resolve) => process.once("unhandledRejection", resolve));
      const segments = [];
      let defects = 1;
      const append = async (segment) => (segments.push(segment), { outcome: "durable" });
      const journal = journalOn(append, { measure: () => { if (defects-- > 0) throw new RangeError("a defect"); } });
      await journal.record([entry]);
      const { message } = await defect;
      await journal.record([entry]);
      const [one, two] = segments;
      console.log(message, one.firstSeq, two.firstSeq, one.lane === two.lane);`;
    const ran = Bun.spawn([process.execPath, "--no-env-file", "--no-install", "-e", script]);
    expect(await ran.stdout.text()).toBe("a defect 1 2 true\n");
  });

  test("has at most one batch under way, of at most 512 entries, in the order of arrival", async () => {
    let underWay = 0;
    let most = 0;
    const { journal, batches } = open(async () => {
      most = Math.max(most, ++underWay);
      await turn();
      underWay -= 1;
      return { outcome: "durable" };
    });
    const calls = Array.from({ length: 20 }, (_, call) => numberedEntries(100, call * 100));
    await Promise.all(calls.map((entries) => journal.record(entries)));
    expect(most).toBe(1);
    expect(batches.map(({ entries }) => entries.length)).toEqual([512, 512, 512, 464]);
    expect(namesIn(batches)).toEqual(Array.from({ length: 2000 }, (_, i) => `n${i}`));
    expectChain(batches);
  });

  test("writes at most 32,000 names of lists that differ together; a shared list counts once", async () => {
    const { journal, batches } = open();
    const sizes = async (lists: readonly (readonly string[])[]) => {
      batches.length = 0;
      await journal.record(lists.map((names) => ({ ...entry, names })));
      return batches.map(({ entries }) => entries.length);
    };
    const list = (length: number) => Array.from({ length }, (_, i) => `n${i}`);
    expect(await sizes(Array.from({ length: 5 }, () => list(8000)))).toEqual([4, 1]);
    expect(await sizes([...Array.from({ length: 4 }, () => list(8000)), ["one more"]])).toEqual([4, 1]);
    expect(await sizes(Array(100).fill(list(20_000)))).toEqual([100]);
    // A list alone may be longer: it has a batch of its own.
    expect(await sizes([["first"], list(40_000), ["last"]])).toEqual([1, 1, 1]);
  });

  test("refuses a call if one of its batches was refused, though the other stays on record", async () => {
    const { append, answer } = byHand();
    const { journal, batches } = open(append);
    const call = journal.record(numberedEntries(1100)).catch(codeOf);
    await answer({ outcome: "durable" });
    await answer({ outcome: "refused", reason: "53100" });
    expect(await call).toBe("unavailable");
    expect(batches.length).toBe(2); // the third is for nobody
    const next = journal.record([entry]);
    await answer({ outcome: "durable" });
    await next;
    expect(batches.at(-1)?.segment).toMatchObject({ lane: batches[0]?.segment.lane, firstSeq: 513, lastSeq: 513 });
  });

  test("names the entries of each call: one, several in a row, or none", async () => {
    const { journal, batches } = open();
    await journal.record([]);
    expect(batches).toEqual([]);
    const calls = [[entry], numberedEntries(1000), [], [entry], numberedEntries(2)];
    const names = await Promise.all(calls.map((entries) => journal.record(entries)));
    const { lane } = (batches[0] as Batch).segment;
    expect(names).toEqual([`${lane}:1`, `${lane}:2-1001`, undefined, `${lane}:1002`, `${lane}:1003-1004`]);
    expect(await journal.record([entry])).toBe(`${lane}:1005`);
  });

  test("refuses a call whose entries came into two lanes, and goes on", async () => {
    const { append, answer } = byHand();
    const { journal, batches } = open(append);
    const call = journal.record(numberedEntries(1000)).catch(codeOf);
    await answer({ outcome: "durable" });
    await answer({ outcome: "refused", moved: true });
    await answer({ outcome: "durable" });
    expect(await call).toBe("unavailable");
    const next = journal.record([entry]);
    await answer({ outcome: "durable" });
    const { lane } = (batches.at(-1) as Batch).segment;
    expect(lane).not.toBe(batches[0]?.segment.lane);
    expect(await next).toBe(`${lane}:489`);
  });

  const ofJob = { trustId: "trust-1", job: "00", readsMax: 3, keptMs: 1 };

  test("counts a job's reads with their entries, and writes without those that are too many", async () => {
    const { append, answer } = byHand();
    const reads: unknown[] = [];
    const { journal, batches } = open((...asked) => {
      reads.push(asked[2]);
      return append(...asked);
    });
    const calls = [1, 2, 3, 4].map((at) => journal.record([numberedEntry(at)], ofJob).catch(codeOf));
    const key = journal.record(numberedEntries(2, 10));
    await answer({ outcome: "refused", counts: [5] }); // of which one was there before
    await answer({ outcome: "durable" });
    const { lane } = (batches[1] as Batch).segment;
    expect(await Promise.all(calls)).toEqual([`${lane}:1`, `${lane}:2`, "unauthorized", "unauthorized"]);
    expect(await key).toBe(`${lane}:3-4`);
    expect(reads).toEqual([[{ ...ofJob, reads: 4 }], []]);
  });

  test("refuses what was counted twice because nobody knew, and leaves the lane", async () => {
    const { journal, batches } = open(inTurn({ outcome: "unknown" }, { outcome: "refused", counts: [4] }));
    expect(await journal.record([entry], ofJob).catch(codeOf)).toBe("unavailable");
    await journal.record([entry]);
    expect(batches[2]?.segment).toMatchObject({ firstSeq: 1 });
    expect(batches[2]?.segment.lane).not.toBe(batches[1]?.segment.lane);
  });

  test("stores nothing if its condition does not hold, and gives its number to the next entry", async () => {
    const sent: unknown[] = [];
    const outcomes: Awaited<ReturnType<Append>>[] = [{ outcome: "durable" }, { outcome: "refused", unmet: true }];
    const append: Append = async (segment, _, __, condition) => {
      sent.push([segment?.firstSeq, condition]);
      return outcomes.shift() ?? { outcome: "durable" };
    };
    const batches: unknown[] = [];
    const journal = journalOn(append, { measure: (batch) => void batches.push(batch) });
    const lane = (await journal.recordIf(condition, [entry]))?.split(":")[0];
    await expect(journal.recordIf(condition, [entry])).rejects.toBeInstanceOf(Unmet);
    expect(await journal.record([entry])).toBe(`${lane}:2`);
    expect([sent, batches.length]).toEqual([
      [
        [1, condition],
        [2, condition],
        [2, undefined],
      ],
      2,
    ]);
  });

  test("has no condition for what shares a batch, or needs several: those without one are stored", async () => {
    const { journal, batches } = open();
    const calls = [journal.recordIf(condition, [entry]), journal.record(numberedEntries(2))];
    const ended = await Promise.allSettled(calls);
    expect(ended).toMatchObject([{ reason: expect.any(Unmet) }, { value: expect.stringMatching(/:1-2$/) }]);
    const two = [journal.recordIf(condition, [entry]), journal.recordIf(condition, [entry])];
    for (const one of await Promise.allSettled(two)) expect(one).toMatchObject({ reason: expect.any(Unmet) });
    await expect(journal.recordIf(condition, numberedEntries(513))).rejects.toBeInstanceOf(Unmet);
    await turn();
    expect(await journal.recordIf(condition, numberedEntries(512))).toEndWith(":3-514");
    expect(batches.map(({ entries }) => entries.length)).toEqual([2, 512]);
  });

  test("leaves a lane if nobody knows whether an entry is there whose condition does not hold any more", async () => {
    const { journal, batches } = open(inTurn({ outcome: "unknown" }, { outcome: "refused", unmet: true }));
    const refusal = await journal.recordIf(condition, [entry]).catch((error: unknown) => error);
    expect([refusal instanceof Unmet, (refusal as Fault).code]).toEqual([false, "unavailable"]);
    await journal.record([entry]);
    expect(batches[2]?.segment).toMatchObject({ firstSeq: 1 });
    expect(batches[2]?.segment.lane).not.toBe(batches[1]?.segment.lane);
  });

  test("sends a batch of unknown outcome once more, unchanged, and accepts that it is on record already", async () => {
    const { journal, batches } = open(inTurn({ outcome: "unknown", reason: "CONNECTION_CLOSED" }));
    await Promise.all([journal.record([numberedEntry(1)]), journal.record([numberedEntry(2)])]);
    await journal.record([numberedEntry(3)]);
    expect(batches.map(({ again }) => again)).toEqual([false, true, false]);
    expect(batches[1]?.segment).toEqual(batches[0]?.segment as Segment);
    expectChain([batches[1] as Batch, batches[2] as Batch]);
  });

  test.each([
    { when: "at once", first: [] },
    { when: "when it sends the batch again", first: [{ outcome: "unknown" }] },
  ] as const)("begins a new lane if the database is another server, $when, and loses no entry", async ({ first }) => {
    const answers = inTurn({ outcome: "durable" }, ...first, { outcome: "refused", moved: true });
    const { journal, batches, checkpoints } = open(answers);
    for (const n of [1, 2, 3]) await journal.record([numberedEntry(n)]);
    const old = (batches[0] as Batch).segment;
    expect(checkpoints).toEqual([{ lane: old.lane, seq: 1, mac: old.mac.toString("hex") }]);
    const [second, third] = batches.slice(-2) as [Batch, Batch];
    expect(second.segment.lane).not.toBe(old.lane);
    expectChain([second, third]);
    expect(namesIn([second, third])).toEqual(["n2", "n3"]);
  });

  test.each(["unknown", "refused"] as const)(
    "leaves a lane whose end nobody knows (then %s), and tells its last known entry",
    async (second) => {
      const answers = inTurn({ outcome: "durable" }, { outcome: "unknown" }, { outcome: second });
      const { journal, batches, checkpoints } = open(answers);
      await journal.record([numberedEntry(1)]);
      expect(await journal.record([numberedEntry(2)]).catch(codeOf)).toBe("unavailable");
      const last = (batches[0] as Batch).segment;
      expect(checkpoints).toEqual([{ lane: last.lane, seq: 1, mac: last.mac.toString("hex") }]);
      await journal.record([numberedEntry(3)]);
      const next = batches.at(-1) as Batch;
      expect(next.segment.firstSeq).toBe(1);
      expect(next.segment.lane).not.toBe(last.lane);
      expectChain([next]);
    },
  );

  test("gives up on a batch after 2 s, and does not begin what nobody waits for any more", async () => {
    const { append, answer } = byHand();
    const { journal, batches } = open(append);
    const began = performance.now();
    const stuck = journal.record([numberedEntry(1)]).catch(codeOf);
    await turn();
    const behind = journal.record(numberedEntries(600, 10)).catch(codeOf);
    expect(await Promise.all([stuck, behind])).toEqual(["unavailable", "unavailable"]);
    expect(performance.now() - began).toBeGreaterThanOrEqual(2000);
    const next = journal.record([numberedEntry(2)]);
    await answer({ outcome: "durable" }); // late: what nobody waited for is on record all the same
    await answer({ outcome: "durable" });
    await next;
    expect(namesIn(batches)).toEqual(["n1", "n2"]);
    expectChain(batches);
  });

  describe("has room for 4096 entries, and", () => {
    const of = (id: string, entries: readonly AuditEntry[]) =>
      entries.map((one) => ({ ...one, actor: { type: "key" as const, id } }));
    /** @param claim - instead of the room that a server has */
    const openWith = (claim?: (entries: number, holder: string) => Promise<{ release: () => void }>) => {
      const { append, answer } = byHand();
      const room = new Budget(entriesMax, entriesMax / 2, 2);
      const opened = open(append, { claim: claim ?? ((entries, holder) => room.claim(entries, holder, 60_000)) });
      const ended: string[] = [];
      const record = (id: string, entries: readonly AuditEntry[]) =>
        opened.journal.record(of(id, entries)).then(
          () => void ended.push(id),
          ({ code, message }: Fault) => void ended.push(`${id} ${code}: ${message}`),
        );
      return { ...opened, answer, room, ended, record };
    };

    test("one key half of it: its next entries wait, and those of others are written before them", async () => {
      const { answer, ended, record, room } = openWith();
      for (let n = 0; n < 8; n++) void record("greedy", numberedEntries(1000));
      void record("other", [entry]);
      while (ended.length < 9) {
        await answer({ outcome: "durable" });
        expect(room.taken).toBeLessThanOrEqual(2001);
      }
      expect(ended).toEqual(["greedy", "greedy", "other", ...Array(6).fill("greedy")]);
      expect(room.taken).toBe(0);
    });

    test("a call that would be more waits for those of others", async () => {
      const { answer, ended, journal, record, room } = openWith();
      for (const id of ["one", "one", "two", "two"]) void record(id, numberedEntries(1000));
      void record("three", numberedEntries(97));
      void record("four", [entry]);
      expect([room.taken, journal.queued]).toEqual([4000, 4000]);
      await answer({ outcome: "durable" });
      expect([room.taken, ended]).toEqual([4000, []]);
      while (ended.length < 6) {
        await answer({ outcome: "durable" });
        expect(room.taken).toBeLessThanOrEqual(4096);
      }
      expect(ended).toEqual(["one", "one", "two", "two", "three", "four"]);
    });

    test("a call that waited in vain is told that the database is the cause, unless others were stored", async () => {
      const waits: PromiseWithResolvers<{ release: () => void }>[] = [];
      const { answer, ended, record } = openWith((entries) => {
        if (entries === 1) return Promise.resolve({ release: () => {} });
        const wait = Promise.withResolvers<{ release: () => void }>();
        waits.push(wait);
        return wait.promise;
      });
      const inVain = () => waits.shift()?.reject(new Fault("rate_limited", "own entries", { retryAfterS: 2 }));
      const first = record("first", numberedEntries(2));
      inVain();
      await first;
      const second = record("second", numberedEntries(2));
      const stored = record("another", [entry]);
      await answer({ outcome: "durable" });
      await stored;
      inVain();
      await second;
      const words = "no audit entries were stored while these waited for room";
      expect(ended).toEqual([`first unavailable: ${words}`, "another", "second rate_limited: own entries"]);
    });

    test("a call that waits while the journal closes is refused, and takes no room", async () => {
      const { answer, ended, journal, record, room, batches } = openWith();
      const calls = ["greedy", "greedy", "greedy"].map((id) => record(id, numberedEntries(1000)));
      const closed = journal.close();
      for (let batch = 0; batch < 4; batch++) await answer({ outcome: "durable" });
      await Promise.all([...calls, closed]);
      expect(ended.toSorted()).toEqual(["greedy", "greedy", "greedy unavailable: the journal is closed"]);
      expect([batches.length, room.taken]).toEqual([4, 0]);
    });

    test("a call that failed gives its room back", async () => {
      const { answer, ended, record, room } = openWith();
      void record("one", numberedEntries(600));
      await answer({ outcome: "refused", reason: "53100" });
      expect([ended.length, room.taken]).toEqual([1, 0]);
    });
  });

  test("reports a checkpoint every 1000 entries and at its end, each once, and none without new entries", async () => {
    const { journal, batches, checkpoints } = open();
    journal.announce();
    await journal.record(numberedEntries(999));
    expect(checkpoints).toEqual([]);
    await journal.record([entry]);
    const after = (seq: number) => checkpointOf(batches.find(({ segment }) => segment.lastSeq === seq));
    expect(checkpoints).toEqual([after(1000)]);
    journal.announce();
    await journal.record([entry]);
    journal.announce();
    journal.announce();
    expect(checkpoints).toEqual([after(1000), after(1001)]);
    const last = journal.record([entry]);
    await journal.close();
    await last;
    expect(checkpoints.at(-1)).toEqual(after(1002));
    await journal.close();
    expect(checkpoints.length).toBe(3);
  });

  test("takes nothing more once it is closing, and closes when all that it took has ended", async () => {
    const { append, answer } = byHand();
    const { journal, batches } = open(append);
    const first = journal.record([numberedEntry(1)]);
    const closed = journal.close();
    const late = journal.record([numberedEntry(2)]).catch((fault: Fault) => fault.message);
    expect(await late).toBe("the journal is closed");
    expect(await journal.check()).toBe(false);
    await answer({ outcome: "durable" });
    await Promise.all([first, closed]);
    expect(namesIn(batches)).toEqual(["n1"]);
  });
});

describe("a segment", () => {
  test("gives back the entries that it was made of, whatever their texts hold", () => {
    fc.assert(
      fc.property(
        fc.array(anyEntry(fc.string({ unit: "binary" })), { minLength: 1, maxLength: 20 }),
        fc.nat(),
        (entries, before) => {
          const encoded = encodeEntries(entries);
          const at = { lane: "lane", firstSeq: before + 1, lastSeq: before + entries.length, at: 1 };
          expect(decodeEntries({ ...at, ...encoded, mac: Buffer.alloc(0) })).toEqual(entries);
        },
      ),
    );
  });

  test("has each text and each list of names once", () => {
    const entries = Array.from({ length: 3 }, () => ({ ...entry, names: [...entry.names] }));
    const encoded = encodeEntries(entries);
    expect(JSON.parse(encoded.entries)).toHaveProperty("names", [[...entry.names]]);
    const texts = JSON.parse(encoded.texts) as string[];
    expect(new Set(texts).size).toBe(texts.length);
  });

  test.each([
    ["another number of entries", "entries", (text: string) => text.replace(/(?<="entries":\[)(.*)(?=\]\}$)/, "$1,$1")],
    ["a position without a text", "entries", (text: string) => text.replace(/\[\[0,/, "[[99,")],
    ["a position without names", "entries", (text: string) => text.replace('"names":[[', '"names":[],"others":[[')],
    ["no JSON", "entries", (text: string) => text.slice(1)],
    ["other JSON", "entries", () => "null"],
    ["names that are no texts", "entries", (text: string) => text.replace('"names":[["DATABASE_URL"', '"names":[[{}')],
    ["texts that are no JSON", "texts", (text: string) => text.slice(1)],
    ["no texts", "texts", () => "[]"],
    ["a text that is none", "texts", (text: string) => text.replace('"key"', "1")],
  ] as const)("that somebody edited to have %s does not decode", (_, column, edit) => {
    const segment = { lane: "lane", firstSeq: 1, lastSeq: 1, at: 1, mac: Buffer.alloc(0) };
    const encoded = encodeEntries([entry]);
    expect(decodeEntries({ ...segment, ...encoded })).toEqual([entry]);
    const edited = edit(encoded[column]);
    expect(edited).not.toBe(encoded[column]);
    expect(decodeEntries({ ...segment, ...encoded, [column]: edited })).toBeUndefined();
  });

  const segment = { lane: "lane", firstSeq: 5, lastSeq: 6, at: 1_700_000_000_000, ...encodeEntries([entry]) };

  test("has as its mac the HMAC-SHA-256 over a JSON array of the previous mac and its fields, then both its texts", () => {
    const { texts, entries, ...fields } = segment;
    const said = JSON.stringify(["keyhole audit v1", "6265666f7265", ...Object.values(fields), texts.length]);
    const expected = createHmac("sha256", auditKey).update(said).update(texts).update(entries).digest("hex");
    expect(segmentMac(auditKey, Buffer.from("before"), segment).toString("hex")).toBe(expected);
  });

  test("has another mac for another value of any field, another key and another predecessor", () => {
    const mac = (changed: object = {}, key = auditKey, previous: Uint8Array = Buffer.from("before")) =>
      segmentMac(key, previous, { ...segment, ...changed }).toString("hex");
    const macs = [mac(), mac({}, new Uint8Array(32))];
    for (const before of ["other", ""]) macs.push(mac({}, auditKey, Buffer.from(before)));
    for (const [name, value] of Object.entries(segment)) {
      macs.push(mac({ [name]: typeof value === "number" ? value + 1 : `${value} ` }));
    }
    const { texts, entries } = segment;
    macs.push(mac({ texts: texts + entries.slice(0, 1), entries: entries.slice(1) }));
    expect(new Set(macs).size).toBe(macs.length);
  });
});

describeBoth("the journal on its database", (w) => {
  test("shows in the view audit_entries what `audit list` shows, for any entry", async () => {
    // No name that Keyhole takes, and nothing else in an entry, holds a NUL: jsonb has none.
    const anyText = fc.string({ unit: "binary" }).map((text) => text.replaceAll("\0", "'\"\\"));
    // The view has no versions.
    const entries = fc.sample(anyEntry(anyText), { numRuns: 500, seed }).map(({ version: _, ...entry }) => entry);
    const batches: (typeof entries)[] = [];
    for (let from = 0; from < entries.length; from += 1 + (from % 50)) {
      batches.push(entries.slice(from, from + 1 + (from % 50)));
    }
    const { lane } = await writeLane(w, batches);
    const rows = await w.sql`select * from audit_entries where lane = ${lane} order by seq`;
    const columns = (row: Row, ...names: string[]) =>
      Object.fromEntries(names.map((name) => [name.replace(/_(.)/, (_, one) => one.toUpperCase()), row[name]]));
    const lists = (row: Row, ...names: string[]) =>
      Object.fromEntries(names.map((name) => [name, JSON.parse(String(row[name])) as string[]]));
    const shown = rows.map((row) => ({
      time: row["at"],
      actor:
        row["actor_type"] === "key"
          ? { type: "key", id: row["key_id"] }
          : { type: "person", name: row["actor"], from: JSON.parse(String(row["actor_from"])) },
      ...columns(row, "organization", "project", "environment", "action", "count", "request_id", "client_address"),
      ...columns(row, "user_agent", "lane", "seq"),
      ...lists(row, "names", ...(row["added"] === null ? [] : ["added", "changed", "deleted"])),
    }));
    expect<unknown>(shown).toEqual((await listAudit(w.admin, { limit: 100_000 })).filter((one) => one.lane === lane));
    const ids = rows.map((row) => [row["organization_id"], row["project_id"]]);
    expect(ids).toEqual(entries.map((one) => [one.organizationId, one.projectId]));
    expect<unknown>(rows.map((row) => lists(row, "names"))).toEqual(entries.map(({ names }) => ({ names })));
  });

  test("goes on in its lane without a gap after it could not write for a while", async () => {
    const { keys, read } = await readers(w, 1);
    const [key] = keys;
    expect((await w.ask(read, { key })).status).toBe(200);
    await w.run("alter table audit_segments rename to audit_gone");
    const { overuses } = w.keyhole.gate.alarms;
    for (let i = 0; i < 3; i++) expect((await w.ask(read, { key })).status).toBe(503);
    expect(w.keyhole.gate.alarms.overuses).toBe(overuses);
    await w.run("alter table audit_gone rename to audit_segments");
    expect((await w.ask(read, { key })).status).toBe(200);
    const own = await w.sql`select * from audit_entries where key_id = ${key?.id} order by seq`;
    expect(own.length).toBe(2);
    expect((own[1]?.["seq"] as number) - (own[0]?.["seq"] as number)).toBe(1);
    await expectUnbroken(w);
  });

  test("takes eight pulls of 1000 files by one key, and another key's read before most of them", async () => {
    const { organization, project } = await w.place({ variables: { production: { A: "a value beside the files" } } });
    await insertFiles(w, project, numbered("f", 1000), ["production"], (name) => `the content of ${name}`);
    const greedy = await w.key(organization, { resources: ["files"] });
    const other = await w.key(organization);
    const store = w.installation.openJournal();
    const journal = journalOn(store.append, { auditKey: w.installation.systemKeys.audit });
    let asked = 0;
    const record: typeof journal.record = (...given) => {
      asked += 1;
      return journal.record(...given);
    };
    const { handle } = w.client(() => ({ journal: { record } }));
    const ended: string[] = [];
    const get = async (path: string, { key }: Key) => {
      const response = await handle(requestOf(path, { key }));
      ended.push(`${path} ${response.status}`);
      await response.body?.cancel();
    };
    const [files, value] = [
      "/files?project=web&environment=production",
      "/projects/web/variables?environment=production",
    ];
    await get(value, other); // now it is recognized
    await holdLock(w);
    const reads: Promise<void>[] = [];
    for (const [path, key] of [...Array(8).fill([files, greedy]), [value, other]] as const) {
      reads.push(get(path, key));
      await until(async () => asked === reads.length + 1);
    }
    await w.run("commit");
    await Promise.all(reads);
    expect(ended.toSorted()).toEqual([...Array(8).fill(`${files} 200`), `${value} 200`, `${value} 200`]);
    expect(ended.lastIndexOf(`${value} 200`)).toBeLessThanOrEqual(3);
    await journal.close();
    await store.close();
    expect((await w.audit(greedy)).length).toBe(8000);
  });

  test("waits for another writer before it answers; reads without values wait for nobody", async () => {
    const tried = async () => {
      const { keys, read } = await readers(w, 1);
      const [key] = keys;
      await w.ask("/organization", { key });
      await holdLock(w);
      const order: string[] = [];
      const pending = w.ask(read, { key }).finally(() => order.push("answered"));
      for (let i = 0; i < 20; i++) expect((await w.ask("/projects/web", { key })).status).toBe(200);
      order.push("committed");
      await w.run("commit");
      const { status } = await pending;
      return { early: order[0] === "answered", status, entries: (await w.audit(key as { id: string })).length };
    };
    let seen = await tried();
    // The read gives up within 2 s. A slow machine may not get that far each time.
    for (let turn = 1; turn < 5 && seen.status === 503; turn++) seen = await tried();
    expect(seen).toEqual({ early: false, status: 200, entries: 1 });
  });
});

describeBoth("the count of a job's reads", (w) => {
  test("is sent without anything else of the job, so that no text of its token fails the reads of others", async () => {
    const store = w.installation.openJournal();
    const journal = journalOn(store.append, { auditKey: w.installation.systemKeys.audit });
    const read = { trustId: "trust-1", job: "00", readsMax: 3, keptMs: 60_000 };
    const texts = ["jti=\0", "jti=\ud800", "jti=\udc00\ud800", "x".repeat(8192)];
    const jobs = texts.map((claims) => journal.record([entry], { ...read, job: sha256Of(claims), claims } as JobRead));
    const others = texts.map(() => journal.record([entry]));
    const ended = await Promise.allSettled([...jobs, ...others]);
    expect(ended.map(({ status }) => status)).toEqual(ended.map(() => "fulfilled"));
    await journal.close();
    await store.close();
    const counted = await w.sql`select reads from job_reads where trust_id = ${read.trustId}`;
    expect(counted).toEqual(texts.map(() => ({ reads: 1 })));
  });
});

describePostgres("the journal's connection", (w) => {
  const ofJournal = "from pg_stat_activity where datname = current_database() and application_name = 'keyhole journal'";
  const endJournal = () => w.run(`select pg_terminate_backend(pid) ${ofJournal}`);

  test("may be ended by the server: reads go on, each recorded once", async () => {
    const { keys, read } = await readers(w, 2);
    for (const key of keys) {
      expect((await w.ask(read, { key })).status).toBe(200);
      await endJournal();
      for (let i = 0; i < 3; i++) expect((await w.ask(read, { key })).status).toBe(200);
      expect((await w.audit(key)).length).toBe(4);
    }
    await expectUnbroken(w);
  });

  test("may be ended in the middle of a batch: what is answered is on record once", async () => {
    const { keys, read } = await readers(w, 1);
    const [key] = keys;
    await w.ask(read, { key }); // so that the journal is connected
    await holdLock(w);
    const pending = Array.from({ length: 5 }, () => w.ask(read, { key }));
    // On the connection that holds the lock, once the batch waits for it.
    await until(async () => (await w.run(`select pid ${ofJournal} and wait_event_type = 'Lock'`)).length === 1);
    await endJournal();
    await w.run("commit");
    const statuses = (await Promise.all(pending)).map(({ status }) => status);
    expect(statuses).toEqual(Array(5).fill(200));
    expect((await w.audit(key as { id: string })).length).toBe(6);
  });

  test("leaves a lane that another server has, and stores nothing in it", async () => {
    const [one, other] = [w.installation.openJournal(), w.installation.openJournal()];
    const sent: Segment[] = [];
    const journal = journalOn((segment, again) => {
      sent.push(segment as Segment);
      return one.append(segment, again);
    });
    for (let count = 0; count < 3; count++) await journal.record([entry]);
    expect(new Set(sent.map(({ lane }) => lane)).size).toBe(1);
    // This connection does not know which server has the lane.
    const [first, ...next] = sent as [Segment, ...Segment[]];
    const after = { ...(next.at(-1) as Segment), firstSeq: 4, lastSeq: 4 };
    expect(await other.append(after, false)).toMatchObject({ outcome: "refused", moved: true });
    await Promise.all([one.close(), other.close()]);
    const [stored] = await w.sql`select max(last_seq)::int as seq from audit_segments where lane = ${first.lane}`;
    expect(stored).toEqual({ seq: 3 });
  });

  test("takes a batch that it sends again for durable if it is there already, and for refused if not", async () => {
    const store = w.installation.openJournal();
    let sent: Segment | undefined;
    const journal = journalOn((segment, again) => {
      sent = segment;
      return store.append(segment, again);
    });
    await journal.record([entry]);
    expect(await store.append(sent, true)).toMatchObject({ outcome: "durable" });
    expect(await store.append(sent, false)).toMatchObject({ outcome: "refused", reason: "23505" });
    await store.close();
    expect(await w.sql`select seq from audit_entries where lane = ${sent?.lane}`).toHaveLength(1);
  });
});

/** @param text - any text that the place of the entry takes */
function anyEntry(text: fc.Arbitrary<string>): fc.Arbitrary<AuditEntry> {
  const names = fc.array(fc.oneof(fc.constantFrom('"', "'", "\\", "]", "é🦔", "a, b"), text));
  const word = text.map((text) => `n${text}`);
  return fc.record({
    actor: fc.oneof(
      fc.record({ type: fc.constant("key" as const), id: fc.oneof(fc.constantFrom("key-1", "key-2"), text) }),
      fc.record({
        ...{ type: fc.constant("person" as const), name: text },
        from: fc.oneof(fc.constantFrom("os" as const, "ssh" as const), fc.record({ issuer: text, subject: text })),
      }),
    ),
    ...{ organizationId: word, organization: word, projectId: word, project: word },
    environment: fc.constantFrom("staging", "production", null),
    action: fc.constantFrom("variables.read", "accounts.read", "file.read", "secrets.read", "key.rotate"),
    names,
    write: fc.option(fc.record({ added: names, changed: names, deleted: names }), { nil: undefined }),
    version: fc.option(fc.nat(), { nil: undefined }),
    ...{ requestId: text, clientAddress: text, userAgent: text },
  });
}

const condition = { text: "select", parameters: [] };

type Batch = { readonly segment: Segment; readonly entries: readonly AuditEntry[]; readonly again: boolean };

/** A journal on the database `append`, which by default always succeeds. */
function open(append: Append = async () => ({ outcome: "durable" }), options: Parameters<typeof journalOn>[1] = {}) {
  const batches: Batch[] = [];
  const checkpoints: LaneCheckpoint[] = [];
  const noting: Append = (segment, again, reads) => {
    if (segment) batches.push({ segment, entries: decodeEntries(segment) as AuditEntry[], again });
    return append(segment, again, reads);
  };
  const checkpoint = (one: LaneCheckpoint) => checkpoints.push(one);
  const given = { now: () => 1_700_000_000_000, checkpoint, deadline: ofTwoSeconds(), ...options };
  const journal = journalOn(noting, given);
  return { journal, batches, checkpoints };
}

/** A database that gives these answers first, and then takes everything. */
function inTurn(...answers: Awaited<ReturnType<Append>>[]): Append {
  return async () => answers.shift() ?? { outcome: "durable" };
}

const codeOf = (fault: Fault) => fault.code;
const ofTwoSeconds = () => new Deadline(2000, () => new Fault("unavailable", "late"));

/** A database that answers when it is told to, in the order of the batches. */
function byHand() {
  const waiting: ((result: Awaited<ReturnType<Append>>) => void)[] = [];
  const append: Append = () => new Promise((resolve) => waiting.push(resolve));
  const answer = async (result: Awaited<ReturnType<Append>>) => {
    await until(async () => waiting.length > 0);
    waiting.shift()?.(result);
    await turn();
    await turn(); // the next batch goes out at the end of the turn that the answer came in
  };
  return { append, answer };
}

function numberedEntry(n: number): AuditEntry {
  return { ...entry, names: [`n${n}`] };
}

function numberedEntries(count: number, from = 0): AuditEntry[] {
  return Array.from({ length: count }, (_, i) => numberedEntry(from + i));
}

function namesIn(batches: readonly Batch[]): string[] {
  return batches.flatMap(({ entries }) => entries.flatMap(({ names }) => names));
}

function checkpointOf(batch: Batch | undefined): LaneCheckpoint {
  const { lane, lastSeq, mac } = (batch as Batch).segment;
  return { lane, seq: lastSeq, mac: mac.toString("hex") };
}

/** Fails unless these are one lane from its beginning. */
function expectChain(batches: readonly Batch[]): void {
  let previous: Uint8Array = Buffer.alloc(0);
  let seq = 0;
  for (const { segment, entries } of batches) {
    expect(segment).toMatchObject({ lane: batches[0]?.segment.lane, firstSeq: seq + 1, lastSeq: seq + entries.length });
    expect(segment.mac.equals(segmentMac(auditKey, previous, segment))).toBe(true);
    previous = segment.mac;
    seq = segment.lastSeq;
  }
}

/** Fails unless every segment in every lane follows from the one before. */
async function expectUnbroken(w: World): Promise<void> {
  expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
}

/** Keys of one project, and the path at which each of them finds a value. */
async function readers(w: World, count: number) {
  const { organization } = await w.place({ variables: { staging: { A: "a value on record" } } });
  const keys = await Promise.all(Array.from({ length: count }, () => w.key(organization, everything)));
  return { keys, read: "/projects/web/variables?environment=staging" };
}

/** Keeps every other writer of audit entries out, until `commit`. */
async function holdLock(w: World): Promise<void> {
  if (w.dialect === "sqlite") return void (await w.run("begin immediate"));
  await w.run("begin");
  await w.run("lock table audit_segments in share row exclusive mode");
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await turn();
}

/** Lets everything run that is ready to. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
