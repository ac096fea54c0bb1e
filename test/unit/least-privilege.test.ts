/** docs/least-privilege.md against the rights that `keyhole db grants` grants. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { servingRights } from "../../src/store/rights.ts";
import { rightsOfRoles } from "../../src/store/roles.ts";

const page = readFileSync(join(import.meta.dir, "../../docs/least-privilege.md"), "utf8");
/** The rows of the page's table: the tables, and their rights up to the reason. */
const rows = [...page.matchAll(/^\| (`.*?) \| (.*?) \|$/gm)].map(([, tables = "", rights = ""]) => {
  const named = [...tables.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? "");
  return [named, rights.replace(/:.*/, "")] as const;
});

/** Each table with each right, sorted. */
function pairs(rows: readonly (readonly [tables: readonly string[], rights: readonly string[]])[]): string[] {
  return [
    ...new Set(rows.flatMap(([tables, rights]) => tables.flatMap((table) => rights.map((one) => `${table} ${one}`)))),
  ].sort();
}

/** The rights of a text, as in `SELECT, UPDATE of `a`, `b``, or `UPDATE (a, b)`. */
function rightsIn(text: string): string[] {
  return text
    .replaceAll("`", "")
    .replace(/,? of ([^.:]*?)(?=, [A-Z]|$|, which)/g, " ($1)")
    .replace(/, which.*/, "")
    .split(/, (?=[A-Z])/);
}

test("the page lists exactly the rights of the server's role", () => {
  const told = rows.filter(([, rights]) => rights !== "nothing");
  const granted = rightsOfRoles.serve.map(([privileges, tables]) => [tables, rightsIn(privileges)] as const);
  expect(pairs(told.map(([tables, rights]) => [tables, rightsIn(rights)]))).toEqual(pairs(granted));
});

test("the page lists all that the server's role may not touch", () => {
  const [nothing = []] = rows.find(([, rights]) => rights === "nothing") ?? [];
  expect(nothing.toSorted()).toEqual(servingRights.none.toSorted());
});
