import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plotOf } from "./plot.ts";
import {
  conditionsOf,
  costsTable,
  extrasTable,
  growthTable,
  markdownOf,
  number,
  type Results,
  type RowReport,
  rowsTable,
  scaleTable,
} from "./report.ts";
import { targetsTable } from "./targets.ts";

/*
 * The pages are written by people, except for the parts between these two lines, which are generated from
 * `docs/performance.json`:
 *
 *     <!-- measured: made by `bun run bench` -->
 *     <!-- end of measured -->
 */

const begin = "<!-- measured: made by `bun run bench` -->";
const end = "<!-- end of measured -->";
const pages: Readonly<Record<string, (results: Results) => string[]>> = {
  "performance.md": forUsers,
  "maintainers/performance-method.md": inFull,
};

/** Reads recorded results; none if there is no file. @throws Error if the file is not a results file */
export function readResults(file: string): Results {
  if (!existsSync(file)) return { format: 1 };
  const results = JSON.parse(readFileSync(file, "utf8")) as Results;
  if (results.format !== 1) throw new Error(`${file} holds no results of this benchmark`);
  return results;
}

/** Writes the JSON, the plot and the measured parts of the pages. A run replaces only results of its kind. */
export function writeResults(folder: string, added: Omit<Results, "format">): void {
  const json = join(folder, "performance.json");
  const results: Results = { ...readResults(json), ...added };
  writeFileSync(json, `${JSON.stringify(results, rounded, 1)}\n`);
  writeFileSync(join(folder, "performance.svg"), plotOf(results));
  for (const [name, measured] of Object.entries(pages)) {
    const page = join(folder, name);
    const text = readFileSync(page, "utf8");
    const [from, to] = [text.indexOf(begin), text.indexOf(end)];
    if (from < 0 || to < from) throw new Error(`${page} has lost the lines that mark its measured part`);
    const parts = measured(results).map(wrapped).join("\n\n");
    writeFileSync(page, `${text.slice(0, from + begin.length)}\n\n${parts}\n\n${text.slice(to)}`);
  }
}

function forUsers({ run, scale }: Results): string[] {
  const parts: string[] = [];
  if (run) {
    parts.push("### What a request costs", conditionsOf(run), markdownOf(costsTable(run.rows)), floorOf(run.rows));
    parts.push("### What a server takes", markdownOf(extrasTable(run.extras)));
  }
  if (scale) parts.push("### How it scales", conditionsOf(scale), markdownOf(growthTable(scale.scales)));
  return [...parts, "![Requests per second, by connections and by sizes](performance.svg)"];
}

/** What the machine could do in that hour. */
function floorOf(rows: readonly RowReport[]): string {
  const points = rows.find(({ id }) => id === "floor/select-1")?.points;
  const rate = points?.find(({ connections }) => connections === 64)?.perSecond.median;
  const words = "Compare rows rather than rates, which depend on the machine and its hour";
  if (rate === undefined) return `${words}.`;
  return `${words}: a bare server with one \`select 1\` answered ${number(rate)} requests a second here at 64.`;
}

function inFull(results: Results): string[] {
  const { run, scale, tax } = results;
  const parts = ["### Targets", markdownOf(targetsTable(results))];
  if (run) {
    const points = run.rows.flatMap((row) => row.points);
    parts.push("### Rows", conditionsOf(run, points), markdownOf(rowsTable(run.rows)));
  }
  if (scale) {
    const points = scale.scales.flatMap((line) => line.points);
    parts.push("### How cost grows", conditionsOf(scale, points), markdownOf(scaleTable(scale.scales)));
  }
  if (tax) parts.push("### What the audit costs", conditionsOf(tax), markdownOf(tax.table));
  return parts;
}

/** Prose in lines of at most 120 characters; a table as it is. */
function wrapped(part: string): string {
  return part.startsWith("|") ? part : part.replace(/(?=.{121})(.{1,120}) /g, "$1\n");
}

/** Four significant digits are precise enough and keep diffs of the file small. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
