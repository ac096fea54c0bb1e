import type postgres from "postgres";

/** Locks a table while `work` runs. @param mode - such as `access exclusive` */
export function whileLocked<T>(holder: postgres.Sql, table: string, mode: string, work: () => Promise<T>): Promise<T> {
  return whileStanding(holder, `lock table ${table} in ${mode} mode`, work);
}

/** Runs a statement in a transaction that stands still while `work` runs, and is then undone. */
export async function whileStanding<T>(holder: postgres.Sql, statement: string, work: () => Promise<T>): Promise<T> {
  const [begun, done] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const standing = holder.begin(async (inside) => {
    await inside.unsafe(statement);
    begun.resolve();
    await done.promise;
    await inside.unsafe("rollback");
  });
  await Promise.race([begun.promise, standing]);
  try {
    return await work();
  } finally {
    done.resolve();
    await standing;
  }
}
