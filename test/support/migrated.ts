import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { makeAuditMonths } from "../../src/record/store/audit-months.ts";
import { migrate, migrations } from "../../src/store/migrate.ts";
import { openPostgres, Servers } from "../../src/store/postgres.ts";
import { copyTemplate, type TestDatabase } from "./postgres.ts";

/** Creates a database with Keyhole's tables and nothing in them, as the first command leaves it before it makes keys. */
export function migratedDatabase(url: string): Promise<TestDatabase> {
  // A test may add a migration of its own, which no other one knows.
  return copyTemplate(url, `${migrations.postgres.length}`, async (empty) => {
    const servers = new Servers(parsePostgresUrl(empty, {}).servers);
    const database = openPostgres(servers, "admin");
    try {
      await migrate(database);
      await makeAuditMonths(database, Date.now());
    } finally {
      await database.close();
    }
  });
}
