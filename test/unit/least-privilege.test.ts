/** docs/least-privilege.md against the rights that `keyhole db grants` grants. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { getTableName } from "drizzle-orm";
import { type RoleUse, servingRights } from "../../src/store/rights.ts";
import { rightsOfRoles } from "../../src/store/roles.ts";
import { postgresTables } from "../../src/store/tables.ts";

const page = readFileSync(join(import.meta.dir, "../../docs/least-privilege.md"), "utf8");
const sections: readonly (readonly [use: RoleUse, heading: string])[] = [
  ["serve", "What the role may do"],
  ["people", "For people"],
  ["notary", "For the notary"],
];
const everyTable = Object.values(postgresTables).map(getTableName);

/** The rows of the table below a heading: the tables, and their rights up to the reason. */
function rowsBelow(heading: string): (readonly [tables: string[], rights: string])[] {
  const section = page.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^\| (.*?) \| (.*?) \|$/gm)].slice(1).flatMap(([, first = "", second = ""]) => {
    const named = [...first.matchAll(/`([\w.]+)`/g)].map(([, name]) => name ?? "");
    const all = first.startsWith("every table") ? everyTable : [];
    const tables = [...all, ...named.filter((name) => !name.includes("."))];
    return tables.length === 0 ? [] : [[tables, second.replace(/:.*/, "")] as const];
  });
}

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

test.each(sections)("the page lists exactly the rights of the role for %s", (use, heading) => {
  const told = rowsBelow(heading).filter(([, rights]) => rights !== "nothing");
  const granted = rightsOfRoles[use].map(([privileges, tables]) => [tables, rightsIn(privileges)] as const);
  expect(pairs(told.map(([tables, rights]) => [tables, rightsIn(rights)]))).toEqual(pairs(granted));
});

test("the page lists all that the server's role may not touch", () => {
  const [nothing = []] = rowsBelow("What the role may do").find(([, rights]) => rights === "nothing") ?? [];
  expect(nothing.toSorted()).toEqual(servingRights.none.toSorted());
});
