import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { HostRefused } from "../core/refused.ts";
import { databaseErrorCode, textValue } from "../store/database.ts";
import { describeUnreachable } from "../store/failures.ts";
import { openPostgres, protocolViolation, requiredSettings, type Servers } from "../store/postgres.ts";

/**
 * Asks each server until one is the primary, which is then the current one of `servers`.
 * @throws Refused if there is none, Problem if its sessions have a setting that Keyhole cannot work with
 */
export async function findPrimary(servers: Servers): Promise<void> {
  const failures: string[] = [];
  let database = openPostgres(servers, "admin");
  let found: readonly Setting[] | undefined;
  try {
    while (found === undefined) {
      try {
        const isAsked = database.isMember(sql`name`, textValue("names"));
        const ask = sql`select name, setting from pg_settings where ${isAsked}`;
        found = await database.query<Setting>(ask, { retry: false })({ names });
      } catch (error) {
        if (databaseErrorCode(error) === protocolViolation && !servers.isPooled) {
          await database.close();
          servers.isPooled = true;
          database = openPostgres(servers, "admin");
          continue;
        }
        failures.push(describeUnreachable(servers.current.name, error));
        if (failures.length < servers.count) continue;
        throw new HostRefused("unavailable", `DATABASE_URL: ${failures.join(" ")}`, { cause: error });
      }
    }
  } finally {
    await database.close();
  }
  requireSettings(found);
}

type Setting = { readonly name: string; readonly setting: string };

const names = JSON.stringify(Object.keys(requiredSettings));

/** @throws Problem that names the first setting that a database, a role or a pooler gave otherwise */
function requireSettings(rows: readonly Setting[]): void {
  for (const { name, setting } of rows) {
    const wanted = requiredSettings[name];
    if (setting === wanted) continue;
    const words = `The sessions of DATABASE_URL have ${name} = ${setting}, and Keyhole needs ${wanted}: alter role … or alter database … set ${name} = ${wanted}.`;
    throw configProblem(words);
  }
}
