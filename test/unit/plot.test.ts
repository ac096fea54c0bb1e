import { expect, test } from "bun:test";
import { join } from "node:path";
import { readResults } from "../../bench/docs.ts";
import { plotOf } from "../../bench/plot.ts";
import { readPage } from "../support/markdown.ts";

const svg = plotOf(readResults(join(import.meta.dir, "../../docs/performance.json")));

test("the plot of docs/ is of the recorded results", () => expect(readPage("docs/performance.svg")).toBe(svg));

test("a series has one colour in both halves of the plot, and no other of its half has it", () => {
  const series = [...svg.matchAll(/<g class="(c\d)".*?<text [^>]*>([^<]*)<\/text><\/g><\/g>/g)];
  const colours = Map.groupBy(series, ([, , label = ""]) => label);
  expect(colours.size).toBeGreaterThan(8);
  for (const drawn of colours.values()) expect(new Set(drawn.map(([, colour]) => colour)).size).toBe(1);
  const panels = svg.split('<g transform="').slice(1);
  for (const panel of panels) {
    const used = [...panel.matchAll(/<g class="(c\d)"/g)].map(([, colour]) => colour);
    expect(new Set(used).size).toBe(used.length);
  }
});
