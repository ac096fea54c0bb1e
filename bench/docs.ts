import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plotOf } from "./plot.ts";
import {
  type Conditions,
  conditionsOf,
  costsTable,
  extrasTable,
  growthTable,
  markdownOf,
  number,
  type Results,
  type RowReport,
  type Table,
} from "./report.ts";
import { targetsTable } from "./targets.ts";

/*
 * `docs/performance.md` and the page on its method are written by people, except for the part between these two lines,
 * which is generated from `docs/performance.json`:
 *
 *     <!-- measured: made by `bun run bench` -->
 *     <!-- end of measured -->
 */

const begin = "<!-- measured: made by `bun run bench` -->";
const end = "<!-- end of measured -->";
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
  const targets = briefly(targetsTable(results));
  writeMeasured(join(folder, "performance.md"), [...measuredParts(results), missedOf(targets)]);
  const reached = "Missed ones are in bold. Each is for 64 connections unless it says otherwise.";
  writeMeasured(join(folder, "maintainers/performance-method.md"), [
    ...["### Targets", reached, markdownOf(targets)],
    ...(results.run ? ["### What a server takes", markdownOf(extrasTable(results.run.extras))] : []),
  ]);
}

function writeMeasured(page: string, parts: readonly string[]): void {
  const text = readFileSync(page, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has lost the lines that mark its measured part`);
  const measured = parts.map(wrapped).join("\n\n");
  writeFileSync(page, `${text.slice(0, from + begin.length)}\n\n${measured}\n\n${text.slice(to)}`);
}

function measuredParts(results: Results): string[] {
  const { run, scale } = results;
  const parts: string[] = [];
  if (run) {
    parts.push("### What a request costs", conditionsOf(run), markdownOf(costsTable(run.rows)), floorOf(run.rows));
  }
  if (scale)
    parts.push(
      "### How it scales",
      run ? sinceRun(run, scale) : conditionsOf(scale),
      markdownOf(growthTable(scale.scales)),
    );
  parts.push("![Requests per second, by connections and by sizes](performance.svg)");
  return parts;
}

function missedOf(targets: Table): string {
  const missed = targets.flat().filter((cell) => cell.startsWith("**")).length;
  const all = targets
    .slice(1)
    .flatMap((row) => row.slice(2))
    .filter(Boolean).length;
  return `We miss ${missed} of our ${all} [targets](maintainers/performance-method.md#targets).`;
}

/** The bars of both databases in a row each, without the aims beyond them. */
function briefly([, ...rows]: Table): Table {
  const met = new Map<string, Map<string, string>>();
  for (const [what = "", bar = "", , measured = "", reached = ""] of rows) {
    const [database = "", target = ""] = what.split(/: (.*)/);
    const name = `${target} | ${bar}`;
    const cells = met.get(name) ?? new Map<string, string>();
    met.set(name, cells.set(database, reached === "missed" ? `**${measured}**` : measured));
  }
  const cells = (name: string, of: ReadonlyMap<string, string>) => [
    ...name.split(" | "),
    ...["PostgreSQL", "SQLite"].map((database) => of.get(database) ?? ""),
  ];
  return [["", "bar", "PostgreSQL", "SQLite"], ...[...met].map(([name, of]) => cells(name, of))];
}

/** The conditions of a later measurement, in short if only its runs are others. */
function sinceRun(run: Conditions, later: Conditions): string {
  const { repeats, seconds } = later;
  const same = conditionsOf({ ...run, repeats, seconds }) === conditionsOf(later);
  return same ? `On the same machine; medians of ${repeats} runs of ${seconds} s each.` : conditionsOf(later);
}

/** What the machine could do in that hour. */
function floorOf(rows: readonly RowReport[]): string {
  const points = rows.find(({ id }) => id === "floor/select-1")?.points;
  const rate = points?.find(({ connections }) => connections === 64)?.perSecond.median;
  const words = "Compare rows rather than rates, which depend on the machine and its hour";
  if (rate === undefined) return `${words}.`;
  return `${words}: a bare server with one \`select 1\` answered ${number(rate)} requests a second here at 64.`;
}

/** Prose in lines of at most 120 characters; a table as it is. */
function wrapped(part: string): string {
  return part.startsWith("|") ? part : part.replace(/(?=.{121})(.{1,120}) /g, "$1\n");
}

/** Four significant digits are precise enough and keep diffs of the file small. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
