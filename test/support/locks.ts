import type postgres from "postgres";

/** Locks a table while `work` runs. @param mode - such as `access exclusive` */
export async function whileLocked<T>(
  holder: postgres.Sql,
  table: string,
  mode: string,
  work: () => Promise<T>,
): Promise<T> {
  const done = Promise.withResolvers<void>();
  const isLocked = Promise.withResolvers<void>();
  const holding = holder.begin(async (locking) => {
    await locking.unsafe(`lock table ${table} in ${mode} mode`);
    isLocked.resolve();
    await done.promise;
  });
  await isLocked.promise;
  try {
    return await work();
  } finally {
    done.resolve();
    await holding;
  }
}
