/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import { Actions, Chips, Filter, Table, type TableProps } from "./parts.tsx";
import { withQuery } from "./paths.ts";
import type { Visit } from "./visit.ts";

/** The most rows of a page. */
export const rowsMax = 200;

type PagedProps<T> = TableProps<T> & {
  readonly visit: Pick<Visit, "url" | "query">;
  readonly idOf: (row: T) => string;
  /** What its own order is called. */
  readonly own?: string;
  /** By what the list can be sorted beside its own order. */
  readonly orders?: Readonly<Record<string, (row: T) => string | number>>;
  /** What its parameters in the address begin with, if the page has another one. */
  readonly prefix?: string;
};

/**
 * A table of a list that may be long. If it has more rows than a page, the filter and the order in the address work over
 * all of them, and a page begins after a row, not after a number of rows. Else the browser filters and sorts.
 */
export function PagedTable<T>(props: PagedProps<T>) {
  const { visit, idOf, own = "Newest first", orders = {}, prefix = "", ...table } = props;
  const { filter, tools, ...plain } = table;
  const { rows, nameOf } = plain;
  if (rows.length <= rowsMax) return <Table {...table} />;
  const names = ["part", "sort", "after"].map((name) => `${prefix}${name}`);
  const [partName = "", sortName = "", afterName = ""] = names;
  const [part = "", sort, after] = names.map((name) => visit.query(name));
  const asked = Object.fromEntries(visit.url.searchParams);
  const to = (change: Readonly<Record<string, string | undefined>>) =>
    withQuery(visit.url.pathname, { ...asked, [afterName]: undefined, ...change });
  const words = part.toLowerCase().split(/\s+/);
  const has = (row: T) => {
    const name = nameOf?.(row).toLowerCase();
    return words.every((word) => name?.includes(word));
  };
  const found = part === "" ? rows : rows.filter(has);
  const sorted = inOrder(found, orders, sort);
  const start = after === undefined ? 0 : sorted.findIndex((row) => idOf(row) === after) + 1;
  if (after !== undefined && start === 0) {
    throw new Refused("not_found", "The row after which this page began is gone: begin with the first page.");
  }
  const shown = sorted.slice(start, start + rowsMax);
  const last = shown.at(-1);
  const next = last !== undefined && start + rowsMax < sorted.length ? to({ [afterName]: idOf(last) }) : undefined;
  const { [partName]: _, [afterName]: __, ...kept } = asked;
  return (
    <>
      {nameOf && (
        <form action={visit.url.pathname} class="filter">
          {Object.entries(kept).map(([name, value]) => (
            <input type="hidden" name={name} value={value} />
          ))}
          <Filter what={filter ?? "this list"} name={partName} value={part} />
          <button type="submit" class="quiet">
            Filter
          </button>
          {tools}
        </form>
      )}
      {Object.keys(orders).length > 0 && (
        <Chips
          label="In which order"
          items={[undefined, ...Object.keys(orders)].map((one) => ({
            words: one === undefined ? own : `By ${one.toLowerCase()}`,
            to: to({ [sortName]: one }),
            isHere: one === sort,
          }))}
        />
      )}
      <p class="quiet">
        {shown.length === 0
          ? "None"
          : `${(start + 1).toLocaleString("en")} to ${(start + shown.length).toLocaleString("en")}`}{" "}
        of {sorted.length.toLocaleString("en")}
        {part !== "" && ` with that in the name, of ${rows.length.toLocaleString("en")} in all`}
      </p>
      <Table {...plain} rows={shown} none="Nothing of this list has that in its name." isPart />
      <Actions items={{ ...(start > 0 && { "First page": to({}) }), ...(next && { "Next page": next }) }} quiet />
    </>
  );
}

/** @throws Refused `not_found` if there is no such order */
function inOrder<T>(
  rows: readonly T[],
  orders: Readonly<Record<string, (row: T) => string | number>>,
  sort: string | undefined,
): readonly T[] {
  if (sort === undefined) return rows;
  const keyOf = Object.hasOwn(orders, sort) ? orders[sort] : undefined;
  if (keyOf === undefined) throw new Refused("not_found", `The list has no order ${JSON.stringify(sort)}.`);
  const keyed = rows.map((row) => [keyOf(row), row] as const);
  return keyed.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, row]) => row);
}
