/** @jsxImportSource preact */
import { isEnvironment } from "../../core/names.ts";
import { oneLine } from "../../core/visible.ts";
import type { Cell, Columns } from "../../people/desk/outcome.ts";
import { Ago, type Cells, Env, FirstFew, Stored, Word } from "./parts.tsx";

/* A page draws the columns of a command: the same facts under the same words. */

/** Columns of a table. */
export function drawn<T>(columns: Columns<T>, now: number): Cells<T> {
  return Object.fromEntries(
    Object.entries(columns).map(([heading, cell]) => [wordsOf(heading), (row: T) => draw(cell(row), now, 3)]),
  );
}

/** The facts of one thing, without what never was. */
export function drawnFacts<T>(item: T, columns: Columns<T>, now: number) {
  const facts = Object.entries(columns).map(([label, cellOf]) => {
    const cell = cellOf(item);
    const isNever = typeof cell === "object" && "at" in cell && (cell.at ?? null) === null;
    return [wordsOf(label), isNever ? null : draw(cell, now)] as const;
  });
  return Object.fromEntries(facts);
}

/** `LAST USED` is `Last used`. */
function wordsOf(heading: string): string {
  return heading === "ORG" ? "Organization" : `${heading[0]}${heading.slice(1).toLowerCase()}`;
}

/** What a command says by a dash, a page leaves out. @param max - how many words of a list are shown */
function draw(cell: Cell, now: number, max = Number.POSITIVE_INFINITY) {
  if (typeof cell === "number") return cell;
  if (typeof cell === "string") return !["", "-"].includes(cell) && <Stored>{oneLine(cell)}</Stored>;
  if ("at" in cell) return <Ago at={cell.at ?? null} now={now} />;
  if ("name" in cell) return cell.name && <Word>{cell.name}</Word>;
  if (cell.words === null) return "all";
  const words = cell.words.map((word) => (isEnvironment(word) ? <Env value={word} /> : <Word>{word}</Word>));
  return words.length > 0 && <FirstFew items={words} max={max} />;
}
