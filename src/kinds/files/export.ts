import { Refused } from "../../core/refused.ts";
import { visibleLines } from "../../core/visible.ts";
import { pathProblem, pathSetProblem } from "../../core/words/path.ts";
import type { Item } from "../../people/editing/open.ts";
import type { ExportItem } from "../export-item.ts";
import type { FileEntry } from "./entry.ts";

/**
 * The files below a folder of their own, and a list of what a file system does not keep of them.
 * @throws Refused `conflict` for paths that are not safe: nothing may be written outside of that folder
 */
export function exportFiles(items: readonly Item<FileEntry>[]): ExportItem[] {
  const entries = items.map(({ entry }) => entry);
  const paths = entries.map(({ path }) => path);
  const unsafe = paths.find((path) => pathProblem(path) !== undefined);
  const problem = unsafe === undefined ? pathSetProblem(paths) : `${JSON.stringify(unsafe)} ${pathProblem(unsafe)}`;
  if (problem !== undefined) throw new Refused("conflict", `The paths of the files are not safe: ${problem}.`);
  const records = entries.map(({ path, name, mode, size, sha256, contentType, updatedAt }) => {
    return { path, name, mode, size, sha256, contentType, updatedAt };
  });
  const list = { path: "files.json", text: visibleLines(`${JSON.stringify(records, null, 2)}\n`) };
  return [list, ...items.map((item) => ({ path: `files/${item.entry.path}`, mode: item.entry.mode, item }))];
}
