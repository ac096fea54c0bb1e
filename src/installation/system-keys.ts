import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { generationOf } from "../seal/envelope.ts";
import { type Keyring, newKey, type SystemKeyPurpose, sealFormat } from "../seal/keyring.ts";
import type { Database } from "../store/database.ts";

/** The keys that every installation has. */
export const purposes = ["pepper", "grant", "audit", "listing"] as const satisfies readonly SystemKeyPurpose[];
type SystemKeyRow = { readonly purpose: SystemKeyPurpose; readonly rootId: string; readonly wrapped: Buffer };

export async function systemKeyRows(database: Database): Promise<Map<string, SystemKeyRow>> {
  const { systemKeys: s } = database.tables;
  const rows = await database.query<SystemKeyRow>(
    sql`select ${s.purpose} as purpose, ${s.rootId} as "rootId", ${s.wrapped} as wrapped from ${s}`,
  )({});
  return new Map(rows.map((row) => [row.purpose, row]));
}

export type SystemKeys = Readonly<Record<SystemKeyPurpose, Uint8Array>>;

/** Opens the system keys; makes them in a new database. @returns also what the database seals: see {@link sealFormat} */
export async function openSystemKeys(database: Database, keyring: Keyring, source: string) {
  let rows = await systemKeyRows(database);
  if (purposes.some((purpose) => !rows.has(purpose))) {
    const made = purposes.map((purpose) => ({
      purpose,
      ...keyring.wrapSystemKey(purpose, newKey()),
      createdAt: Date.now(),
    }));
    // If several processes start on an empty database, all use the keys of the first.
    await database.transaction(async (db) => {
      await db.insert(database.tables.systemKeys).values(made).onConflictDoNothing();
    });
    rows = await systemKeyRows(database);
  }
  const opened = purposes.map((purpose) => {
    const row = rows.get(purpose) as SystemKeyRow;
    return [purpose, unwrapped(keyring, source, purpose, row)] as const;
  });
  const formats = new Set(purposes.map((purpose) => generationOf((rows.get(purpose) as SystemKeyRow).wrapped)));
  const format = Math.max(...formats);
  if (formats.size > 1 || format > sealFormat) {
    throw configProblem("The system keys of this database are of different ages: some of their rows were put back.");
  }
  return { systemKeys: Object.fromEntries(opened) as SystemKeys, format };
}

function unwrapped(keyring: Keyring, source: string, purpose: SystemKeyPurpose, row: SystemKeyRow): Uint8Array {
  try {
    return keyring.unwrapSystemKey(purpose, row.rootId, row.wrapped);
  } catch (error) {
    throw configProblem(`${source}: ${error instanceof Error ? error.message : "not the key of this database."}`);
  }
}
