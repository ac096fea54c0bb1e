import { expect, test } from "bun:test";
import { RecentSegments } from "../../src/record/store/recent-segments.ts";

const segment = (seq: number, at: number, bytes: number) => ({
  segment: { lane: "l", firstSeq: seq, lastSeq: seq, at, mac: Buffer.alloc(0), texts: "", entries: "e".repeat(bytes) },
  reads: [],
});

test("what is remembered is what was added in the two minutes before the newest, however many are forgotten", () => {
  const recent = new RecentSegments();
  for (let seq = 1; seq <= 5000; seq++) {
    recent.add(segment(seq, seq * 100, 1));
    expect(recent.hasForgotten).toBe(seq > 1201);
  }
  expect(recent.all.map((one) => one.segment.lastSeq)).toEqual(Array.from({ length: 1201 }, (_, at) => 3800 + at));
});

test("… and at most 32 MiB of it", () => {
  const recent = new RecentSegments();
  for (let seq = 1; seq <= 40; seq++) recent.add(segment(seq, 0, 2 ** 20 - 256));
  expect(recent.all.map((one) => one.segment.lastSeq)).toEqual(Array.from({ length: 32 }, (_, at) => 9 + at));
});
