import type { Results } from "./report.ts";
import type { DatabaseName } from "./rig.ts";

type Series = {
  readonly label: string;
  /** Floors are dashed. */
  readonly floor: boolean;
  readonly points: readonly { readonly x: number; readonly y: number; readonly least: number; readonly most: number }[];
};
type Panel = {
  readonly title: string;
  readonly xTitle: string;
  /** Which sizes are labelled on the axis. */
  readonly isTick: (x: number) => boolean;
  readonly series: readonly Series[];
};

const width = 560;
const height = 360;
const margin = { top: 40, right: 205, bottom: 44, left: 58 };
// The colours of Okabe and Ito, which colour-blind people can distinguish, and lighter ones on a dark page.
const colours = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];
const darkColours = ["#4aa3df", "#ff8c42", "#2fc79a", "#e6a0c8", "#f5b83d", "#9ad6f7", "#ffffff"];
const style = `.paper{fill:#fff}.title{fill:#111}.label{fill:#444}.ground{stroke:#e3e3e3}${colourRules(colours)}
@media (prefers-color-scheme:dark){
.paper{fill:#161618}.title{fill:#f0f0f0}.label{fill:#b4b4be}.ground{stroke:#3a3a40}${colourRules(darkColours)}
}`;

function colourRules(all: readonly string[]): string {
  return all.map((colour, index) => `.c${index}{color:${colour}}`).join("");
}

/**
 * An SVG document: throughput of each row by connections, and of each scale by size, on logarithmic axes. A series has
 * one colour in both halves, PostgreSQL's and SQLite's.
 */
export function plotOf(results: Results): string {
  const halves = [rowPanels(results), scalePanels(results)];
  const panels = halves.flat().filter(({ series }) => series.length > 0);
  const labels = halves.map((half) => [...new Set(half.flatMap(({ series }) => series.map(({ label }) => label)))]);
  const colourOf = (label: string) => {
    const at = Math.max(...labels.map((some) => some.indexOf(label)));
    return `c${at % colours.length}`;
  };
  const lines = Math.ceil(panels.length / 2);
  const [wholeWidth, wholeHeight] = [2 * width, lines * height];
  const drawn = panels.map(
    (panel, index) =>
      `<g transform="translate(${(index % 2) * width} ${Math.floor(index / 2) * height})">${draw(panel, colourOf)}</g>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${wholeWidth} ${wholeHeight}" font-family="system-ui, sans-serif" font-size="12">
<title>Requests per second</title>
<style>
${style}
</style>
<rect class="paper" width="${wholeWidth}" height="${wholeHeight}"/>
${drawn.join("\n")}
</svg>
`;
}

const databases: readonly DatabaseName[] = ["PostgreSQL", "SQLite"];
/** Rows of files and of refusals have other orders of magnitude and would hide the rest. So have commands. */
const plottedRows = new Set(["fixed", "select-1", "metadata", "value-20", "value-1000", "filtered", "env"]);

const unplottedScales = new Set(["persons", "names in the database"]);

function rowPanels({ run }: Results): Panel[] {
  return databases.map((database) => ({
    title: `${database}: requests per second`,
    xTitle: "connections",
    isTick: () => true,
    series: (run?.rows ?? [])
      .filter((row) => plottedRows.has(row.id.split("/")[1] ?? ""))
      .filter((row) => row.database === database || row.database === null)
      .filter((row) => row.id !== "floor/select-1" || database === "PostgreSQL")
      .map((row) => ({
        label: row.title,
        floor: row.database === null,
        points: row.points
          .filter(({ faults }) => faults.length === 0)
          .map(({ connections, perSecond }) => point(connections, perSecond)),
      })),
  }));
}

function scalePanels({ scale }: Results): Panel[] {
  return databases.map((database) => ({
    title: `${database}: how cost grows (requests per second)`,
    xTitle: "size",
    isTick: (x) => Number.isInteger(Math.log10(x)),
    series: (scale?.scales ?? [])
      .filter((line) => line.database === database && !unplottedScales.has(line.what))
      .map((line) => ({
        label: line.what,
        floor: false,
        points: line.points
          .filter(({ faults }) => faults.length === 0)
          .map(({ size, perSecond }) => point(size, perSecond)),
      })),
  }));
}

function point(x: number, { median, least, most }: { median: number; least: number; most: number }) {
  return { x, y: median, least, most };
}

function draw(panel: Panel, colourOf: (label: string) => string): string {
  const { title, xTitle, series } = panel;
  const points = series.flatMap((line) => line.points);
  if (points.length === 0) return "";
  const x = axis([...points.map((at) => at.x)], margin.left, width - margin.right);
  const y = axis([...points.flatMap((at) => [at.least, at.most])], height - margin.bottom, margin.top);
  const grid = [
    ...decades(y).map(
      (value) =>
        `<path d="M${margin.left} ${y.at(value)}H${width - margin.right}" class="ground"/>${text(margin.left - 6, y.at(value) + 4, short(value), "end")}`,
    ),
    ...[...new Set(series.flatMap((line) => line.points.map((at) => at.x)))].map(
      (value) =>
        `<path d="M${x.at(value)} ${margin.top}V${height - margin.bottom}" class="ground"/>${
          panel.isTick(value) ? text(x.at(value), height - margin.bottom + 16, short(value), "middle") : ""
        }`,
    ),
  ];
  const labels = apart(series.map((line) => y.at(line.points.at(-1)?.y ?? y.least)));
  const lines = series.map((line, index) => {
    const path = line.points.map((at, step) => `${step === 0 ? "M" : "L"}${x.at(at.x)} ${y.at(at.y)}`).join("");
    const whiskers = line.points.map((at) => `M${x.at(at.x)} ${y.at(at.least)}V${y.at(at.most)}`).join("");
    const dots = line.points.map((at) => `<circle cx="${x.at(at.x)}" cy="${y.at(at.y)}" r="2.5" />`);
    const last = line.points.at(-1);
    const labelY = labels[index] as number;
    const leader = last
      ? `<path d="M${x.at(last.x) + 4} ${y.at(last.y)}L${width - margin.right + 12} ${labelY}" stroke-width="0.5" fill="none"/>`
      : "";
    const label = text(width - margin.right + 15, labelY + 4, line.label, "start", "");
    const drawn = `<path d="${path}" fill="none" stroke-width="1.8"${line.floor ? ' stroke-dasharray="5 4"' : ""}/><path d="${whiskers}"/>`;
    const colour = `class="${colourOf(line.label)}" stroke="currentColor"`;
    return `<g ${colour}>${drawn}${leader}<g stroke="none" fill="currentColor">${dots.join("")}${label}</g></g>`;
  });
  return `<text x="${margin.left}" y="22" class="title" font-size="14" font-weight="600">${escaped(title)}</text>
${grid.join("")}
${text((margin.left + width - margin.right) / 2, height - 10, xTitle, "middle")}
${lines.join("\n")}`;
}

type Axis = { readonly at: (value: number) => number; readonly least: number; readonly most: number };

/** A logarithmic axis over these values, with a small margin. */
function axis(values: readonly number[], from: number, to: number): Axis {
  const [least, most] = [Math.min(...values), Math.max(...values)].map(Math.log10) as [number, number];
  const room = Math.max(most - least, 0.3);
  const at = (value: number) => {
    const share = (Math.log10(value) - least + room * 0.04) / (room * 1.08);
    return Math.round((from + share * (to - from)) * 10) / 10;
  };
  return { at, least: 10 ** least, most: 10 ** most };
}

/** 1, 2 and 5 of each decade on the axis. */
function decades({ least, most }: Axis): number[] {
  const values: number[] = [];
  for (let decade = Math.floor(Math.log10(least)); decade <= Math.log10(most); decade++) {
    values.push(...[1, 2, 5].map((step) => step * 10 ** decade));
  }
  return values.filter((value) => value >= least && value <= most);
}

/** Moves labels down so that none overlap, from top to bottom. */
function apart(heights: readonly number[]): number[] {
  const order = heights.map((_, index) => index).sort((a, b) => (heights[a] as number) - (heights[b] as number));
  const placed = [...heights];
  let last = Number.NEGATIVE_INFINITY;
  for (const index of order) {
    last = Math.max(placed[index] as number, last + 15);
    placed[index] = last;
  }
  return placed;
}

function short(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000}M`;
  return value >= 1000 ? `${value / 1000}k` : String(value);
}

function text(x: number, y: number, words: string, anchor: "start" | "middle" | "end", name = "label"): string {
  const class_ = name === "" ? "" : ` class="${name}"`;
  return `<text${class_} x="${x}" y="${y}" text-anchor="${anchor}">${escaped(words)}</text>`;
}

function escaped(words: string): string {
  return words.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("`", "");
}
