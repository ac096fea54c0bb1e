import type { Database } from "../../src/store/database.ts";

/** A database that fails at its statement of this number, as if the process ended there. */
export function endingAt(database: Database, statements: number): Database {
  let left = statements;
  const ending = <T extends object>(db: T): T =>
    new Proxy(db, {
      get: (target, name) => {
        if (name === "select" || name === "insert") if (--left === 0) throw new Error("the process ended");
        const value = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  return {
    ...database,
    get db() {
      return ending(database.db);
    },
    transaction: (work) =>
      database.transaction(async (db) => {
        const result = await work(ending(db));
        if (--left === 0) throw new Error("the process ended before its commit");
        return result;
      }),
  };
}
