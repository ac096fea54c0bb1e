import { sql } from "drizzle-orm";
import type { Keyring, SystemKeyPurpose } from "../seal/keyring.ts";
import { type Database, warm } from "../store/database.ts";
import { isMigrated } from "../store/migrate.ts";

/** What a server needs to answer requests, each as it is at this moment. */
export function readinessChecks(needs: {
  readonly database: Database;
  /** That of the look-ups, where it is another. */
  readonly gatehouse: Database;
  readonly keyring: Keyring;
  readonly journal: { check(): Promise<boolean> };
}): Readonly<Record<"database" | "migrations" | "root_key" | "audit", () => Promise<boolean>>> {
  const { database, gatehouse, keyring, journal } = needs;
  const { systemKeys: s } = database.tables;
  const systemKeys = database.query<{ purpose: SystemKeyPurpose; rootId: string; wrapped: Buffer }>(
    sql`select ${s.purpose} as purpose, ${s.rootId} as "rootId", ${s.wrapped} as wrapped from ${s}`,
  );
  return {
    database: async () => {
      await Promise.all([warm(gatehouse), warm(database)]);
      return true;
    },
    migrations: () => isMigrated(database),
    root_key: async () => {
      const rows = await systemKeys({});
      for (const { purpose, rootId, wrapped } of rows) keyring.unwrapSystemKey(purpose, rootId, wrapped).fill(0);
      return rows.length > 0;
    },
    audit: () => journal.check(),
  };
}
