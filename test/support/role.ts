import { afterAll, beforeAll } from "bun:test";
import { randomBytes } from "node:crypto";
import type postgres from "postgres";
import { parsePostgresUrl } from "../../src/core/settings/postgres-url.ts";
import { type Installation, openInstallation } from "../../src/installation/installation.ts";
import { applyGrants } from "../../src/people/backup/grants.ts";
import { connectTo, rightsIn } from "./postgres.ts";

import { openWorld, type Row, type World } from "./world.ts";

/**
 * A role of PostgreSQL with the rights of its use, for a suite: in a world of its own, which is empty until the suite's
 * first test, as is what the role sees of it.
 * @param end - closes at the suite's end what the suite has opened as the role
 */
export function roleOf(use: Parameters<typeof applyGrants>[2], end?: () => unknown, begin = `keyhole ${use}`) {
  const name = `${begin} ${randomBytes(4).toString("hex")}`;
  const quoted = `"${name.replaceAll('"', '""')}"`;
  const [w, installation] = [{} as World, {} as Installation];
  let sql: postgres.Sql | undefined;
  beforeAll(async () => {
    Object.assign(w, await openWorld("postgres"));
    await w.run(`create role ${quoted} login password 'of-a-test'`);
    await applyGrants(w.admin, name, use);
    const url = new URL(w.databaseUrl as string);
    Object.assign(url, { username: encodeURIComponent(name), password: "of-a-test" });
    const config = { ...w.config, postgres: parsePostgresUrl(url.href, {}) };
    Object.assign(installation, await openInstallation(config, () => {}));
    sql = connectTo(url.href);
  });
  afterAll(async () => {
    await sql?.end({ timeout: 1 });
    await end?.();
    await w.run?.(`drop owned by ${quoted}`);
    await w.run?.(`drop role ${quoted}`);
    await w.close?.();
  });
  const connection = () => sql as postgres.Sql;
  /** Runs a statement as the role. */
  const run = async (statement: string): Promise<Row[]> => [...(await connection().unsafe(statement))];
  return { name, quoted, w, installation, run, rights: () => rightsIn(connection()) };
}

/** The SQLSTATE of a statement that the database does not let its user run. */
export const forbidden = { code: "42501" };
