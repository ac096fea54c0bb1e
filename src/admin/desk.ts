import type { Config } from "../config.ts";
import type { Database, Db } from "../store/database.ts";
import { type Installation, openInstallation } from "./installation.ts";

/** What the commands of people work with: a database they may write, and the keys. */
export type Desk = Pick<Installation, "keyring" | "systemKeys"> & {
  readonly database: Database;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

/**
 * Opens a desk on the database that the settings name; see {@link openInstallation} for what it makes and throws.
 * It works beside a running server.
 */
export async function openDesk(
  config: Config,
  say: (line: string) => void,
): Promise<Desk & { close(): Promise<void> }> {
  const installation = await openInstallation(config, say);
  return deskOf(installation);
}

/** A desk on an installation that is open already. */
export function deskOf(installation: Installation, now: () => number = Date.now): Desk & { close(): Promise<void> } {
  const database = installation.open("admin");
  const { keyring, systemKeys } = installation;
  return { keyring, systemKeys, database, now, close: () => database.close() };
}

/** Runs `work` in one write transaction: all of it happens, or nothing. */
export function writing<T>(desk: Desk, work: (db: Db) => Promise<T>): Promise<T> {
  return desk.database.transaction(work);
}
