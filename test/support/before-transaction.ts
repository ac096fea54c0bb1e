import type { AdminContext } from "../../src/people/desk/context.ts";

/** Somebody else's change comes right before the next transaction of this context. */
export function beforeTransaction(admin: AdminContext, change: () => Promise<unknown>): AdminContext {
  const { transaction } = admin.database;
  let isDone = false;
  const changed: typeof transaction = async (work) => {
    if (!isDone) {
      isDone = true;
      await change();
    }
    return transaction(work);
  };
  return { ...admin, database: { ...admin.database, transaction: changed } };
}
