import type { Config } from "../config.ts";
import type { Database, Db } from "../store/database.ts";
import { type Installation, openInstallation } from "./installation.ts";

/** What the commands of people work with: a database they may write, and the keys. */
export type AdminContext = Pick<Installation, "keyring" | "systemKeys"> & {
  readonly database: Database;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

/**
 * Opens the database that the settings name, beside a running server; see {@link openInstallation}.
 */
export async function openAdminContext(
  config: Config,
  say: (line: string) => void,
): Promise<AdminContext & { close(): Promise<void> }> {
  const installation = await openInstallation(config, say);
  return adminContextOf(installation);
}

/** The same for an installation that is open already. */
export function adminContextOf(
  installation: Installation,
  now: () => number = Date.now,
): AdminContext & { close(): Promise<void> } {
  const database = installation.open("admin");
  const { keyring, systemKeys } = installation;
  return { keyring, systemKeys, database, now, close: () => database.close() };
}

/** Runs `work` in one write transaction: all of it happens, or nothing. */
export function writing<T>(admin: AdminContext, work: (db: Db) => Promise<T>): Promise<T> {
  return admin.database.transaction(work);
}
