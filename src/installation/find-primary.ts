import { sql } from "drizzle-orm";
import { Refused } from "../core/refused.ts";
import { openPostgres, type Servers } from "../store/postgres.ts";
import { describeUnreachable } from "./failure.ts";

/** Asks each server until one is the primary, which is then the current one of `servers`. @throws Refused */
export async function findPrimary(servers: Servers): Promise<void> {
  const database = openPostgres(servers, "admin");
  const ask = database.query(sql`select 1 as one`, { retry: false });
  const failures: string[] = [];
  try {
    for (;;) {
      try {
        await ask({});
        return;
      } catch (error) {
        failures.push(describeUnreachable(servers.current.name, error));
        if (failures.length < servers.count) continue;
        throw new Refused("unavailable", `DATABASE_URL: ${failures.join(" ")}`, { cause: error });
      }
    }
  } finally {
    await database.close();
  }
}
