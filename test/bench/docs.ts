import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { plotOf } from "./plot.ts";
import { conditionsOf, extrasTable, markdownOf, type Results, rowsTable, scaleTable } from "./report.ts";
import { targetsTable } from "./targets.ts";

/*
 * `docs/performance.md` is written by people but for what stands between these two lines, which is made of
 * `docs/performance.json`:
 *
 *     <!-- measured: made by `bun run bench` -->
 *     <!-- end of measured -->
 */

const begin = "<!-- measured: made by `bun run bench` -->";
const end = "<!-- end of measured -->";

/** The results that are on record, or none. @throws Error where the file is something else */
export function readResults(file: string): Results {
  if (!existsSync(file)) return { format: 1 };
  const results = JSON.parse(readFileSync(file, "utf8")) as Results;
  if (results.format !== 1) throw new Error(`${file} holds no results of this benchmark`);
  return results;
}

/** Puts results on record: the JSON, the plot, and the measured part of the page. A run and a scale replace only their kind. */
export function writeResults(folder: string, news: Omit<Results, "format">): void {
  const json = join(folder, "performance.json");
  const results: Results = { ...readResults(json), ...news };
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
  const parts = [`![Requests per second](performance.svg)`, "### To reach", markdownOf(targetsTable(results))];
  if (run) {
    const points = run.rows.flatMap((row) => row.points);
    parts.push("### Rows", conditionsOf(run, points), markdownOf(rowsTable(run.rows)));
    parts.push("### Beside the rows", markdownOf(extrasTable(run.extras)));
  }
  if (scale) {
    const points = scale.scales.flatMap((line) => line.points);
    parts.push("### How cost grows", conditionsOf(scale, points), markdownOf(scaleTable(scale.scales)));
  }
  return parts.join("\n\n");
}

/** Four figures say what there is to say, and keep the differences between versions of the file small. */
function rounded(_: string, value: unknown): unknown {
  return typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(4)) : value;
}
