/** What is said of an edited chain. Whether a database gives it the chain: integration/audit-verify. */
import { describe, expect, test } from "bun:test";
import { compareCheckpoints } from "../../src/people/audit/log-checkpoints.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { type Acceptance, laneFlaw } from "../../src/record/flaw.ts";
import type { LaneCheckpoint } from "../../src/record/journal.ts";
import { Leaf, leafOf } from "../../src/record/leaf.ts";
import { sealLeft } from "../../src/record/leaf-set.ts";
import { stateFlaw } from "../../src/record/record.ts";
import { encodeEntries, type Segment, segmentMac } from "../../src/record/segment.ts";
import { leafHash } from "../../src/record/tree.ts";
import { AuditWalk, isProved, type LeafOfSegments, type StoredSegment, sealDropped } from "../../src/record/verify.ts";
import { auditKey, entry, journalOn } from "../support/journal.ts";

const from = Date.UTC(2026, 4, 7);
const dayMs = 86_400_000;
/** Adds a segment of these entries. Five neighbours have one date. */
function append(segments: Segment[], entries: readonly AuditEntry[]): void {
  const previous = segments.at(-1);
  const seq = previous?.lastSeq ?? 0;
  const numbers = { lane: "lane", firstSeq: seq + 1, lastSeq: seq + entries.length };
  const segment = { ...numbers, at: from + Math.floor(seq / 5) * 60_000, ...encodeEntries(entries) };
  segments.push({ ...segment, mac: segmentMac(auditKey, previous?.mac ?? Buffer.alloc(0), segment) });
}

function laneOf(count: number, size = 1): Segment[] {
  const segments: Segment[] = [];
  while (segments.length * size < count) append(segments, Array<AuditEntry>(size).fill(entry));
  return segments;
}

function endOf(segments: readonly Segment[]): LaneCheckpoint {
  const { lane, lastSeq, mac } = segments.at(-1) as Segment;
  return { lane, seq: lastSeq, mac: mac.toString("hex") };
}

/** What a database holds that has only these segments. */
const chainOf = (segments: readonly Segment[]) => ({
  before: async ({ firstSeq }: Segment) => segments.findLast((one) => one.firstSeq < firstSeq),
  dropped: async () => undefined,
  known: async () => ({ acceptances: [], prunes: [] }),
  leavesAt: async function* () {},
  holding: async ({ seq }: { readonly seq: number }) =>
    segments.find(({ firstSeq, lastSeq }) => firstSeq <= seq && seq <= lastSeq),
  lastOf: async () => segments.at(-1)?.lastSeq ?? 0,
});

const walkOver = async (segments: readonly Segment[]) => {
  const sorted = segments.toSorted((a, b) => a.firstSeq - b.firstSeq || a.at - b.at);
  const walk = new AuditWalk(auditKey, chainOf(sorted));
  for (const segment of sorted) await walk.pass(segment);
  return walk;
};

const saltKey = Buffer.alloc(32, 9);

/** Puts segments of one entry into leaves of `size` neighbours. */
function inLeaves(segments: readonly Segment[], size: number): (Segment & { readonly leaf: LeafOfSegments })[] {
  return segments.map((one, at) => {
    const leaf = Math.floor(at / size);
    const built = leafOf(saltKey, segments.slice(leaf * size, (leaf + 1) * size)) as Leaf;
    const { lane, firstSeq, lastSeq } = built;
    return { ...one, leaf: { leaf, lane, firstSeq, lastSeq, hashes: leafHash(built.text) } };
  });
}

/** Goes through what is left of these. */
const walkOverTree = async (
  written: readonly StoredSegment[],
  left: readonly StoredSegment[],
  acceptances: readonly Acceptance[] = [],
) => {
  const leaves = [...new Map(written.map(({ leaf }) => [leaf?.leaf, leaf as LeafOfSegments])).values()];
  const chain = {
    ...chainOf(left),
    known: async () => ({ acceptances, prunes: [] }),
    leavesAt: async function* (wanted: readonly number[]) {
      yield* leaves.filter(({ leaf }) => wanted.includes(leaf));
    },
  };
  const walk = new AuditWalk(auditKey, chain, { from: 0, to: leaves.length, saltKey });
  for (const segment of left) await walk.pass(segment);
  await walk.end();
  return walk;
};

type Edit = (segments: readonly Segment[]) => Segment[];
const edit =
  (seq: number, change: (one: Segment) => Partial<Segment>): Edit =>
  (segments) =>
    segments.map((one) => (one.firstSeq === seq ? { ...one, ...change(one) } : one));
const replaced =
  (column: "texts" | "entries", of: string | RegExp, by: string) =>
  (one: Segment): Partial<Segment> => {
    expect(one[column]).toMatch(of);
    return { [column]: one[column].replace(of, by) };
  };
const drop =
  (first: number, last = first): Edit =>
  (segments) =>
    segments.filter(({ firstSeq }) => firstSeq < first || firstSeq > last);
const renumber = (one: Segment, by: number) => ({ ...one, firstSeq: one.firstSeq + by, lastSeq: one.lastSeq + by });
/** Gives all segments from `first` on other numbers. */
const shift =
  (first: number, by: number): Edit =>
  (segments) =>
    segments.map((one) => (one.firstSeq >= first ? renumber(one, by) : one));
const move = (seq: number, to: number): Edit => edit(seq, (one) => renumber(one, to - seq));
const exchange = (one: number, other: number): Edit => inTurn(move(one, 100), move(other, one), move(100, other));
const copy =
  (seq: number, to: number, at: number): Edit =>
  (segments) => {
    const one = segments.find(({ firstSeq }) => firstSeq === seq) as Segment;
    return [...segments, { ...renumber(one, to - seq), at }];
  };
const inTurn =
  (...edits: readonly Edit[]): Edit =>
  (segments) =>
    edits.reduce((edited, each) => each(edited), [...segments]);

type Found = readonly [seq: number, lastSeq: number];
type Tampering = readonly [...Found, name: string, edit: Edit, more?: readonly Found[]];
const noMac = Buffer.alloc(32);

const ofOne: readonly Tampering[] = [
  [7, 7, "its key", edit(7, replaced("texts", "key-1", "key-2"))],
  [7, 7, "the spelling of its entries", edit(7, ({ entries }) => ({ entries: `${entries} ` }))],
  [7, 7, "its names", edit(7, replaced("entries", '"DATABASE_URL",', ""))],
  [7, 7, "its environment", edit(7, replaced("texts", "production", "staging"))],
  [7, 7, "its moment", edit(7, ({ at }) => ({ at: at + 1 }))],
  [7, 8, "its mac, which the next one follows", edit(7, () => ({ mac: noMac }))],
  [7, 8, "its mac, cut", edit(7, () => ({ mac: Buffer.alloc(3) }))],
  [1, 1, "the first one", edit(1, () => ({ entries: "{}" }))],
  [20, 20, "the last one", edit(20, () => ({ entries: "" }))],
  [
    ...([3, 3, "two of them"] as const),
    inTurn(
      edit(3, () => ({ entries: "{}" })),
      edit(9, () => ({ entries: "{}" })),
    ),
    [[9, 9]],
  ],
  [
    ...([3, 3, "two of them, and not the one between"] as const),
    inTurn(
      edit(3, () => ({ entries: "{}" })),
      edit(5, () => ({ entries: "{}" })),
    ),
    [[5, 5]],
  ],
  [
    ...([3, 5, "two neighbours and their macs: the third follows neither"] as const),
    inTurn(...[3, 4].map((seq) => edit(seq, () => ({ entries: "", mac: noMac })))),
  ],
  [7, 8, "how many it has", edit(7, () => ({ lastSeq: 8 }))],
  [7, 7, "one in the middle", drop(7)],
  [7, 10, "four in the middle", drop(7, 10)],
  [1, 1, "the first one", drop(1)],
  [1, 10, "the first ten", drop(1, 10)],
  [7, 19, "one, and the others moved up", inTurn(drop(7), shift(8, -1))],
  [7, 9, "two neighbours, and the next one follows neither", exchange(7, 8)],
  [2, 3, "two far apart", exchange(2, 19), [[19, 20]]],
  [7, 7, "one put at the end", move(7, 21), [[21, 21]]],
  [7, 7, "a copy under the same number", copy(7, 7, from)],
  [7, 7, "a later copy under the same number", copy(7, 7, from + dayMs)],
  [0, 1, "one before the first, which that does not follow", copy(7, 0, from)],
  [7, 21, "one between, and the others moved down", inTurn(shift(7, 1), copy(3, 7, from + 6 * 60_000))],
  // Nothing follows it, so all that is wrong with it is that it is there.
  [21, 21, "one after the last", copy(20, 21, from + dayMs)],
];

const ofFive: readonly Tampering[] = [
  [6, 10, "one entry", edit(6, replaced("entries", "request-1", "request-2"))],
  [6, 10, "a segment in the middle", drop(6)],
  [1, 10, "the first two", drop(1, 6)],
  [6, 15, "a segment, and the others moved up", inTurn(drop(6), shift(11, -5))],
  [6, 20, "two neighbours, and the next one follows neither", exchange(6, 11)],
  [6, 10, "one put at the end", move(6, 21), [[21, 25]]],
  [6, 10, "a copy under the same numbers", copy(6, 6, from + dayMs)],
  [6, 25, "one between, and the others moved down", inTurn(shift(6, 5), copy(1, 6, from + 60_000))],
  [
    ...([6, 9, "an entry taken out of its segment, which then says so"] as const),
    edit(6, (one) => ({ ...replaced("entries", /,\[[^[\]]*\]\]\}$/, "]}")(one), lastSeq: 9 })),
    [[10, 10]],
  ],
];

describe("names the first entry that was tampered with:", () => {
  for (const [size, tamperings] of [
    [1, ofOne],
    [5, ofFive],
  ] as const) {
    for (const [seq, lastSeq, name, tamper, more = []] of tamperings) {
      const where = size === 1 ? `${seq}` : `in segments of five, ${seq} to ${lastSeq}`;
      test(`${where}: ${name}`, async () => {
        const { flaws } = await walkOver(tamper(laneOf(20, size)));
        expect(flaws.map((flaw) => [flaw.what, flaw.seq, flaw.lastSeq])).toEqual(
          [[seq, lastSeq] as const, ...more].map((range) => ["broken", ...range]),
        );
      });
    }
  }

  test("a segment that the database refused and kept, put in the place of the one that was written then", async () => {
    const kept: Segment[] = [];
    const journal = journalOn(
      async (segment) => {
        kept.push(segment as Segment);
        return { outcome: kept.length === 2 ? "refused" : "durable" };
      },
      { now: () => from },
    );
    for (const requestId of ["1", "2", "3", "4"]) await journal.record([{ ...entry, requestId }]).catch(() => {});
    const [first, refused, written, last] = kept as [Segment, Segment, Segment, Segment];
    expect(refused.firstSeq).toBe(written.firstSeq);
    expect((await walkOver([first, written, last])).flaws).toEqual([]);
    expect((await walkOver([first, refused, last])).flaws).toMatchObject([{ seq: 3, what: "broken" }]);
  });
});

describe("with the tree", () => {
  const written = inLeaves(laneOf(9), 3);
  const shown = ({ flaws }: AuditWalk) => flaws.map((flaw) => [flaw.what, flaw.seq, flaw.lastSeq, flaw.seals?.length]);

  test("finds nothing that is as it was written", async () => {
    expect(shown(await walkOverTree(written, written))).toEqual([]);
  });

  test("an entry that is gone has one seal of what is left of its leaf", async () => {
    const left = written.filter(({ firstSeq }) => firstSeq !== 2);
    expect(shown(await walkOverTree(written, left))).toEqual([
      ["broken", 2, 2, 1],
      ["gone", 2, 2, 1],
    ]);
  });

  test("a leaf with another hash is named beside the loss of the leaf after it", async () => {
    const left = written
      .filter(({ leaf }) => leaf.leaf !== 1)
      .map((one) => (one.leaf.leaf === 0 ? { ...one, leaf: { ...one.leaf, hashes: noMac } } : one));
    expect(shown(await walkOverTree(written, left))).toEqual([
      ["broken", 4, 6, 1],
      ["broken", 1, 3, undefined],
      ["gone", 4, 6, 1],
    ]);
  });

  test("a loss that was accepted is not one of an entry that was changed", async () => {
    const [one, two, three] = written as [StoredSegment, StoredSegment, StoredSegment];
    const rest = new Leaf(saltKey, one);
    for (const segment of [one, three]) rest.add(segment);
    const accepted = { lane: "lane", seq: 2, lastSeq: 2, seals: [sealLeft(auditKey, 0, rest.root)] };
    const changed = [one, { ...two, entries: "{}" }, ...written.slice(2)];
    const walk = await walkOverTree(written, changed, [accepted]);
    expect([shown(walk), walk.accepted]).toEqual([[["broken", 2, 2, undefined]], []]);
    expect([...walk.flawedLanes]).toEqual(["lane"]);
  });

  test("remembers 1000 leaves that lack entries", async () => {
    const many = inLeaves(laneOf(2002), 2);
    const { flaws, moreFlaws } = await walkOverTree(
      many,
      many.filter(({ firstSeq }) => firstSeq % 2 === 1),
    );
    // Before each of the leaves but the first, the chain breaks.
    expect([flaws.length, moreFlaws]).toEqual([1000, 1000]);
  });
});

describe("what retention dropped", () => {
  const [, , third] = laneOf(5) as [Segment, Segment, Segment];
  const dropped = { lane: "lane", seq: 3, mac: third.mac };
  const seal = sealDropped(auditKey, dropped);

  test("is believed with its lane, its number and its mac alone", () => {
    expect(isProved(auditKey, { ...dropped, seal })).toBe(true);
    for (const other of [{ lane: "another" }, { seq: 4 }, { mac: noMac }]) {
      expect(isProved(auditKey, { ...dropped, ...other, seal })).toBe(false);
    }
  });

  test("does not lead to a segment that was put back: those before it are missing", async () => {
    const left = laneOf(5).slice(2);
    const walk = new AuditWalk(auditKey, { ...chainOf(left), dropped: async () => ({ ...dropped, seal }) });
    for (const segment of left) await walk.pass(segment);
    expect(walk.flaws).toMatchObject([{ what: "broken", seq: 1, lastSeq: 2 }]);
  });
});

test("a flaw is one line, whatever SQL calls the lane or what it put back", () => {
  const lane = "x\n\u001b[2JEvery entry is unchanged.";
  expect([
    laneFlaw({ lane, seq: 1, lastSeq: 1 }, "broken").sentence,
    stateFlaw({ subject: "key:\n1", recorded: "revoked", found: "live\n" }).sentence,
  ]).toEqual([
    "Lane x\\u000a\\u001b[2JEvery entry is unchanged.: the chain breaks at entry 1.",
    "key:\\u000a1 was put back or changed by other means: it is live\\u000a, and the record says revoked.",
  ]);
});

describe("with checkpoints", () => {
  test("notices a lane that was cut off and went on, though later checkpoints fit it", async () => {
    const written = laneOf(4);
    const before = endOf(written);
    written.splice(2);
    const after = [["5"], ["6", "7"]].map((requestIds) => {
      for (const requestId of requestIds) append(written, [{ ...entry, requestId }]);
      return endOf(written);
    });
    expect((await walkOver(written)).flaws).toEqual([]);
    expect(await compareCheckpoints(auditKey, chainOf(written), after)).toEqual({ flaws: [], accepted: [] });
    const flaw = { lane: "lane", seq: 4, lastSeq: 4, what: "lost" as const };
    for (const checkpoints of [
      [before, ...after],
      [...after, before],
    ]) {
      expect(await compareCheckpoints(auditKey, chainOf(written), checkpoints)).toMatchObject({ flaws: [flaw] });
    }
  });

  test("notices that somebody with the audit key cut the segments in other places", async () => {
    const forged = laneOf(21, 7);
    expect((await walkOver(forged)).flaws).toEqual([]);
    // The mac is that of the last segment's end, and entries 13 and 20 are in the middle of theirs.
    const flaw = { lane: "lane", seq: 8, lastSeq: 21, what: "lost" as const };
    const shown = [20, 13].map((seq) => ({ ...endOf(forged), seq }));
    for (const checkpoints of [shown, shown.toReversed()]) {
      expect(await compareCheckpoints(auditKey, chainOf(forged), checkpoints)).toMatchObject({ flaws: [flaw] });
    }
  });
});

test("goes on after a flaw, and counts those beyond 1000", async () => {
  const [one] = laneOf(1) as [Segment];
  const moved = Array.from({ length: 1250 }, (_, n) => ({ ...one, lane: `lane-${n}` }));
  const { flaws, moreFlaws } = await walkOver(moved);
  expect([flaws.length, moreFlaws, flaws.at(-1)?.lane]).toEqual([1000, 250, "lane-999"]);
});
