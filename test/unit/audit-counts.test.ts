import { expect, test } from "bun:test";
import fc from "fast-check";
import { Fragment, h } from "preact";
import { renderToString } from "preact-render-to-string";
import type { AuditRecord } from "../../src/people/audit/audit.ts";
import { Chart, Who } from "../../src/people/audit/audit-counts.tsx";
import { AuditCounts, countedMax, spanOf } from "../../src/people/audit/reads.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
const noon = Date.parse("2030-01-02T12:00:00Z");

function entry(at: number, more: Partial<AuditRecord> = {}): AuditRecord {
  const actor = { type: "key", id: "k1" } as const;
  const place = { organization: "acme", project: "web", environment: "staging" };
  const asked = { requestId: "", clientAddress: "", userAgent: "", lane: "l", seq: 1 };
  return { time: at, actor, ...place, action: "variables.read", names: ["A"], count: 1, ...asked, ...more };
}

/** Bars as `DAYTHOUR:count`, in UTC. */
const barsOf = ({ bars }: AuditCounts) =>
  bars.map(({ at, count }) => `${new Date(at).toISOString().slice(8, 13)}:${count}`).join(" ");

const countedOf = (entries: readonly AuditRecord[], counts = new AuditCounts(spanOf(noon, {}))) => {
  for (const one of entries) if (!counts.add(one)) break;
  return counts;
};

test.each([
  ["by default, the last day, by the hour", {}, 25, hourMs, "2030-01-01T12:00"],
  ["7 days by the day", { sinceAt: noon - 7 * dayMs }, 8, dayMs, "2029-12-26T00:00"],
  ["30 days by the day", { sinceAt: noon - 30 * dayMs }, 31, dayMs, "2029-12-03T00:00"],
  ["a day in the past", { beforeAt: noon - 9 * dayMs }, 24, hourMs, "2029-12-23T12:00"],
  ["a year by 28 days", { sinceAt: noon - 365 * dayMs }, 14, 28 * dayMs, "2028-12-07T00:00"],
  ["one hour", { sinceAt: noon, beforeAt: noon + 1 }, 1, hourMs, "2030-01-02T12:00"],
] as const)("the bars follow the filter: %s", (_, filter, bars, unitMs, from) => {
  const span = spanOf(noon, filter);
  expect([(span.endAt - span.fromAt) / unitMs, span.unitMs]).toEqual([bars, unitMs]);
  expect(new Date(span.fromAt).toISOString()).toStartWith(from);
});

test("the bars hold every moment of the filter, and are at most 60 for fifty years", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: noon }), fc.integer({ min: 1, max: noon }), (sinceAt, beforeAt) => {
      fc.pre(sinceAt < beforeAt);
      const { fromAt, endAt, unitMs } = spanOf(noon, { sinceAt, beforeAt });
      expect(fromAt).toBeLessThanOrEqual(sinceAt);
      expect(endAt).toBeGreaterThan(beforeAt - 1);
      expect(endAt - fromAt).toBeLessThanOrEqual(63 * unitMs);
    }),
  );
});

test("machines' reads are in their hours, and what is no read or dated ahead is in none", () => {
  const counts = countedOf([
    entry(noon + 2 * hourMs),
    entry(noon),
    entry(noon - 1, { action: "file.read" }),
    entry(noon - 1, { action: "variables.write" }),
    entry(noon - 1, { action: "variables.reveal" }),
    entry(noon - hourMs, { names: ["A", "B"] }),
    entry(noon - 24 * hourMs),
    entry(noon - 24 * hourMs - 1),
  ]);
  expect(barsOf(counts).replaceAll(/ \S+:0\b/g, "")).toBe("01T12:1 02T11:2 02T12:1");
  expect([counts.entries, counts.isWhole]).toEqual([8, true]);
});

test("who did what is counted by person or key, project and environment, with the names they touched most", () => {
  const person = { type: "person", name: "ana", from: "os" } as const;
  const counts = countedOf([
    entry(noon, { names: ["B"] }),
    entry(noon - 1, { names: ["A", "B"] }),
    entry(noon - 2, { environment: "production" }),
    entry(noon - 3, { actor: person }),
    entry(noon - 4, { actor: person, names: [] }),
    entry(noon - 5),
  ]);
  const shown = counts.doings.map(({ actor, environment, names, count, lastAt }) => {
    return [actor.type, environment, names.join(), count, noon - lastAt];
  });
  const byAna = ["person", "staging", "A", 2, 3];
  expect(shown).toEqual([["key", "staging", "B,A", 3, 0], byAna, ["key", "production", "A", 1, 2]]);
});

test("names that nobody looks for are left out of what is listed, unless an entry has no other", () => {
  const counts = new AuditCounts(spanOf(noon, {}), (name) => name === "B");
  countedOf([entry(noon, { names: ["C", "B"] }), entry(noon - 1)], counts);
  expect(counts.doings.map(({ names, count }) => [names, count])).toEqual([[["B", "A"], 2]]);
});

test("the newest 10,000 are counted, and the bars begin with the oldest of them", () => {
  const entries = Array.from({ length: countedMax + 1 }, (_, at) => entry(noon - at * 1000));
  expect(countedOf(entries.slice(0, -1)).isWhole).toBe(true);
  const counts = countedOf(entries);
  expect([counts.entries, counts.isWhole]).toEqual([countedMax, false]);
  expect(barsOf(counts)).toBe("02T09:2799 02T10:3600 02T11:3600 02T12:1");
  // Columns that people sort have digits alone: with a comma, 3,600 would come before 4.
  const html = renderToString(
    h(Fragment, null, Chart({ counts, isOfAll: true }), Who({ counts, typed: {}, keys: new Map(), now: noon })),
  );
  const textsOf = (pattern: RegExp) => [...html.matchAll(pattern)].map(([, text]) => text);
  expect(textsOf(/<td[^>]*>(?:<a[^>]*>)?([\d,]+)</g)).toEqual(["10000"]);
  expect(textsOf(/<title>[^<]*: ([\d,]+) reads?</g)).toEqual(["2,799", "3,600", "3,600", "1"]);
});

test("entries with very many names are counted up to 300,000 names", () => {
  const names = Array.from({ length: 1000 }, (_, at) => `N${at}`);
  const counts = countedOf(Array.from({ length: 1000 }, (_, at) => entry(noon - at, { names })));
  expect([counts.entries, counts.isWhole]).toEqual([301, false]);
});
