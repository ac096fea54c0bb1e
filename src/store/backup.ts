import { Database as SqliteFile } from "bun:sqlite";
import { rmSync } from "node:fs";
import { databaseErrorCode } from "./database.ts";
import { migrations } from "./migrate.ts";

/** The result of a check. A database without rows can be replaced without a loss. */
export type Found = { readonly is: "database"; readonly rows: number } | { readonly is: "damaged" | "other" | "newer" };

/** Writes a snapshot of the database to an empty file, while others read and write. */
export function copyOnline(path: string, draft: string): void {
  opened(path, (file) => ask(file, "VACUUM INTO ?", draft));
}

/** Checks a file that should be Keyhole's database: every page, constraint and reference. */
export function inspect(path: string): Found {
  try {
    return opened(path, (file): Found => {
      const names = ask<{ name: string }>(file, "select name from sqlite_schema").map(({ name }) => name);
      const isKnown = names.includes("keyhole_migrations");
      if (!(isKnown || names.includes("__drizzle_migrations")) || !names.includes("system_keys"))
        return { is: "other" };
      const last = isKnown ? numberOf(file, "select max(created_at) as n from keyhole_migrations") : 0;
      if (last > (migrations.sqlite.at(-1)?.folderMillis ?? 0)) return { is: "newer" };
      const [check] = ask<{ integrity_check: string }>(file, "PRAGMA integrity_check(1)");
      if (check?.integrity_check !== "ok" || ask(file, "PRAGMA foreign_key_check").length > 0) return { is: "damaged" };
      const counts = "(select count(*) from organizations) + (select count(*) from audit_segments)";
      return { is: "database", rows: numberOf(file, `select ${counts} as n`) };
    });
  } catch (error) {
    const code = databaseErrorCode(error);
    if (code.startsWith("SQLITE_NOTADB")) return { is: "other" };
    if (code.startsWith("SQLITE_CORRUPT")) return { is: "damaged" };
    throw error;
  }
}

/** The wrapped system keys as they are stored. */
export function systemKeysIn(path: string) {
  type Row = { readonly purpose: string; readonly rootId: string; readonly wrapped: Uint8Array };
  return opened(path, (file) => ask<Row>(file, "select purpose, root_id as rootId, wrapped from system_keys"));
}

/**
 * Takes a database out of use, so that another file may replace it: moves its `-wal` into it and removes `-wal` and
 * `-shm`, which SQLite would take for the new file's.
 * @returns false if somebody else has it open
 */
export function takeOutOfUse(path: string): boolean {
  try {
    opened(path, (file) => ask(file, "PRAGMA journal_mode = DELETE"));
  } catch (error) {
    const code = databaseErrorCode(error);
    if (code.startsWith("SQLITE_BUSY")) return false;
    if (!/^SQLITE_(?:NOTADB|CORRUPT)/.test(code)) throw error;
    for (const side of ["-wal", "-shm", "-journal"]) rmSync(`${path}${side}`, { force: true });
  }
  return true;
}

function opened<T>(path: string, work: (file: SqliteFile) => T): T {
  const file = new SqliteFile(path, { create: false, readwrite: true });
  try {
    file.run("PRAGMA busy_timeout = 2000");
    file.run("PRAGMA trusted_schema = OFF");
    return work(file);
  } finally {
    file.close(false);
  }
}

function numberOf(file: SqliteFile, text: string): number {
  return ask<{ n: number | null }>(file, text)[0]?.n ?? 0;
}

/** The file stays open until its last statement is finalized. */
function ask<Row = unknown>(file: SqliteFile, text: string, ...values: readonly string[]): Row[] {
  using statement = file.prepare(text);
  return statement.all(...(values as string[])) as Row[];
}
