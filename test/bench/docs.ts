import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plotOf } from "./plot.ts";
import { conditionsOf, extrasTable, markdownOf, type Results, rowsTable, scaleTable } from "./report.ts";
import { targetsTable } from "./targets.ts";

/*
 * `docs/performance.md` is written by people, except for the part between these two lines, which is generated from
 * `docs/performance.json`:
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

/** Writes the JSON, the plot and the measured part of the page. A run or a scale replaces only results of its kind. */
export function writeResults(folder: string, added: Omit<Results, "format">): void {
  const json = join(folder, "performance.json");
  const results: Results = { ...readResults(json), ...added };
  writeFileSync(json, `${JSON.stringify(results, rounded, 1)}\n`);
  writeFileSync(join(folder, "performance.svg"), plotOf(results));
  const page = join(folder, "performance.md");
  const text = existsSync(page) ? readFileSync(page, "utf8") : `# Performance\n\n${begin}\n${end}\n`;
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${page} has lost the lines that mark its measured part`);
  writeFileSync(page, `${text.slice(0, from + begin.length)}\n\n${measured(results)}\n\n${text.slice(to)}`);
}

function measured(results: Results): string {
  const { run, scale } = results;
  const parts = [`![Requests per second](performance.svg)`, "### Targets", markdownOf(targetsTable(results))];
  if (run) {
    const points = run.rows.flatMap((row) => row.points);
    parts.push("### Rows", conditionsOf(run, points), markdownOf(rowsTable(run.rows)));
    parts.push("### Other measurements", markdownOf(extrasTable(run.extras)));
  }
  if (scale) {
    const points = scale.scales.flatMap((line) => line.points);
    parts.push("### How cost grows", conditionsOf(scale, points), markdownOf(scaleTable(scale.scales)));
  }
  return parts.join("\n\n");
}

/** Four significant digits are precise enough and keep diffs of the file small. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
