import { sql } from "drizzle-orm";
import { Refused } from "../../core/refused.ts";
import { auditPartitions } from "../../record/store/audit-months.ts";
import { upgradeLock } from "../../store/migrate.ts";
import { type RoleUse, servingRights } from "../../store/rights.ts";
import { rightsOfRoles, rolesInUse } from "../../store/roles.ts";
import type { AdminContext } from "../desk/context.ts";
import { Permit } from "../desk/permit.ts";

/**
 * The PostgreSQL statements that give a role the rights that its use needs and revoke all others on Keyhole's tables.
 * Operators create the role themselves and choose its password.
 * @throws Refused `invalid` for the embedded database or an invalid role name
 */
export async function grantStatements(admin: AdminContext, role: string, use: RoleUse = "serve"): Promise<string[]> {
  Permit.operator(admin);
  if (admin.database.dialect !== "postgres") {
    throw new Refused("invalid", "The embedded database has no roles: set DATABASE_URL to use PostgreSQL.");
  }
  if (!/^[^\p{C}]{1,63}$/u.test(role) || Buffer.byteLength(role) > 63) {
    throw new Refused("invalid", "A role name must have 1 to 63 bytes and no control characters.");
  }
  const [here] = await admin.database.query<{ database: string; schema: string }>(sql`
    select current_database()::text as database, relnamespace::regnamespace::text as schema
    from pg_class where oid = 'audit_segments'::regclass`)({});
  const schema = here?.schema ?? "public";
  const to = quoted(role);
  const { read, append, count, none } = servingRights;
  const { parts } = await auditPartitions(admin.database);
  const tables = (names: readonly string[]) => names.map((name) => `${schema}.${quoted(name)}`).join(", ");
  const journal = tables(["keyhole_migrations"]);
  const months = parts.map(({ name }) => name);
  /** Servers insert into a month's partition itself. */
  const withMonths = (privileges: string, names: readonly string[]) =>
    privileges === "INSERT" && names.includes("audit_segments") ? [...names, ...months] : names;
  return [
    `GRANT CONNECT ON DATABASE ${quoted(here?.database ?? "")} TO ${to};`,
    `REVOKE ALL ON SCHEMA ${schema} FROM ${to};`,
    `GRANT USAGE ON SCHEMA ${schema} TO ${to};`,
    `REVOKE ALL ON ${tables([...new Set([...read, ...append, ...count, ...none, ...months])])}, ${journal} FROM ${to};`,
    ...rightsOfRoles[use].map(
      ([privileges, names]) => `GRANT ${privileges} ON ${tables(withMonths(privileges, names))} TO ${to};`,
    ),
  ];
}

/**
 * Runs {@link grantStatements} in one transaction.
 * @throws Refused `not_found` if there is no such role; `invalid` also for a superuser or the tables' owner, which no
 *   grant can restrict; `unavailable` if the present role may not grant
 */
export async function applyGrants(admin: AdminContext, role: string, use: RoleUse = "serve"): Promise<string[]> {
  const statements = await grantStatements(admin, role, use);
  const [found] = await admin.database.query<{ superuser: boolean; owner: boolean }>(sql`
    select rolsuper as superuser,
      pg_has_role(oid, (select relowner from pg_class where oid = 'audit_segments'::regclass), 'MEMBER') as owner
    from pg_roles where rolname = ${role}`)({});
  if (!found) {
    const words = `There is no role ${quoted(role)}: create it first, as in CREATE ROLE ${quoted(role)} LOGIN PASSWORD '…'.`;
    throw new Refused("not_found", words);
  }
  if (found.superuser || found.owner) {
    const words = `${quoted(role)} ${found.superuser ? "is a superuser" : "owns the tables"}, which no grant can restrict: create a separate role.`;
    throw new Refused("invalid", words);
  }
  await admin.database.transaction(async (db) => {
    for (const statement of statements) await db.execute(sql.raw(statement));
  });
  return statements;
}

/**
 * Grants each of Keyhole's roles the rights on newer tables. Takes none away, so that servers of the version before go
 * on.
 */
export async function renewGrants(admin: AdminContext): Promise<{ readonly role: string; readonly use: RoleUse }[]> {
  Permit.operator(admin);
  const { database } = admin;
  if (database.dialect !== "postgres") return [];
  const roles = await rolesInUse(database);
  const statements = await Promise.all(roles.map(({ role, use }) => grantStatements(admin, role, use)));
  await database.transaction(async (db) => {
    await db.execute(upgradeLock); // PostgreSQL refuses two GRANTs on one table at a time
    for (const statement of statements.flat()) {
      if (statement.startsWith("GRANT")) await db.execute(sql.raw(statement));
    }
  });
  return roles;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}
