import { renderPulled, type TextFormat } from "../../core/formats/format.ts";
import { Problem } from "../../core/problem.ts";
import { visibleLines } from "../../core/visible.ts";
import type { Item } from "../../people/editing/open.ts";
import type { ExportAsk, ExportItem } from "../export-item.ts";
import type { VariableEntry } from "./entry.ts";
import { storedValue } from "./write.ts";

/**
 * Variables as JSON, and in each format that can carry all of them; and the days to rotate them by. A file is whole or
 * left out.
 */
export function exportVariables(items: readonly Item<VariableEntry>[], { formats, warn }: ExportAsk): ExportItem[] {
  const variables = items.map((item) => ({ name: item.entry.key, value: storedValue(item) }));
  const texts = [...new Set<TextFormat>(["json", ...formats])].flatMap((format) => {
    try {
      const text = renderPulled(format, variables, warn);
      return [{ path: `variables.${format}`, text: format === "json" ? visibleLines(text) : text }];
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "env_unrepresentable" || format === "json") throw error;
      warn(`${error.message} There is no variables.${format}.`);
      return [];
    }
  });
  const days = items.flatMap(({ entry: { key, rotateBy } }) => (rotateBy === undefined ? [] : [[key, rotateBy]]));
  if (days.length === 0) return texts;
  return [...texts, { path: "rotate-by.json", text: `${JSON.stringify(Object.fromEntries(days), null, 2)}\n` }];
}
