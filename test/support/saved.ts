import type { World } from "./world.ts";

/** Reads whole tables, as somebody with SQL copies them. @returns what puts these rows back, and takes all others away */
export async function savedTables(
  { run }: Pick<World, "run">,
  tables: readonly string[],
): Promise<() => Promise<void>> {
  const saved = await Promise.all(tables.map(async (table) => [table, await run(`select * from ${table}`)] as const));
  return async () => {
    for (const [table, rows] of saved) {
      await run(`delete from ${table}`);
      for (const row of rows) {
        const names = Object.keys(row);
        const places = names.map(() => "?").join();
        await run(`insert into ${table} (${names.join()}) values (${places})`, Object.values(row));
      }
    }
  };
}
