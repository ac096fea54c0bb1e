import { type SQL, sql } from "drizzle-orm";
import { dayMs, type Environment } from "../core/names.ts";
import { type Database, databaseErrorCode, literal, textValue } from "./database.ts";
import { type Authorized, authorized, bounded, type Standing, selectForKey, standingColumns } from "./reach.ts";

/** The most requests that may be pending at once. */
export const pendingPerKeyMax = 20;
export const pendingPerOrganizationMax = 200;
/** How long a request waits for a decision. */
const lifetimeMs = 7 * dayMs;

/** A variable that a key asks people for. */
export type NewRequest = Authorized & {
  readonly id: string;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly name: string;
  readonly reason: string;
};

/** The reasons not to file a request: the present rights of its key, and the pending requests. */
export type RequestRefusal = Standing & {
  readonly ofKey: number;
  readonly ofOrganization: number;
  /** The key's pending request for the same variable, if there is one. */
  readonly equalId: string | null;
  readonly equalExpiresAt: number | null;
};

/** A request as its key may see it; nulls if it has none with that id. */
export type RequestRow = Standing & {
  readonly status: "pending" | "approved" | "rejected" | "expired" | null;
  readonly decisionReason: string | null;
};

export type RequestQueries = ReturnType<typeof requestQueries>;

/** Prepares what keys do with variable requests. @param writable - a connection that may add rows */
export function requestQueries(database: Database, writable: Database) {
  const { variableRequests: r, apiKeys: k } = database.tables;
  const { nowMs } = database;
  const text = textValue;
  const pending = sql`from ${r}
    where ${r.organizationId} = ${text("organizationId")} and ${r.expiresAt} > ${nowMs} and ${r.status} = 'pending'`;
  const ofKey = sql`(select count(*) ${pending} and ${r.keyId} = ${text("keyId")})`;
  const ofOrganization = sql`(select count(*) ${pending})`;
  const equal = (column: SQL) => sql`(select ${column} ${pending}
      and ${r.keyId} = ${text("keyId")} and ${r.projectId} = standing.reached
      and ${r.environment} = ${text("environment")} and ${r.name} = ${text("name")}
    order by ${r.number} limit 1)`;
  const file = writable.query<{ expiresAt: number }>(
    sql`
    insert into ${r} (id, organization_id, project_id, environment, name, reason, key_id, number, status, created_at, expires_at)
    with ${authorized(database)}
    select ${text("id")}, ${text("organizationId")}, standing.reached, ${text("environment")}, ${text("name")},
      ${text("reason")}, ${text("keyId")},
      (select coalesce(max(${r.number}), 0) + 1 from ${r} where ${r.organizationId} = ${text("organizationId")}),
      'pending', ${nowMs}, ${nowMs} + ${literal(lifetimeMs)}
    from standing
    where standing.reached is not null and ${equal(sql`${r.id}`)} is null
      and ${ofKey} < ${literal(pendingPerKeyMax)} and ${ofOrganization} < ${literal(pendingPerOrganizationMax)}
    on conflict (organization_id, number) do nothing
    returning expires_at as "expiresAt"`,
    { retry: false },
  );
  const refusal = database.query<RequestRefusal>(sql`
    with ${authorized(database)}
    select ${standingColumns}, ${ofKey} as "ofKey", ${ofOrganization} as "ofOrganization",
      ${equal(sql`${r.id}`)} as "equalId", ${equal(sql`${r.expiresAt}`)} as "equalExpiresAt" from standing`);
  const state = sql`
    case when ${r.status} = 'pending' and ${r.expiresAt} <= ${nowMs} then 'expired' else ${r.status} end as status,
    ${bounded(r.decisionReason, 8192)} as "decisionReason"`;
  const find = database.query<RequestRow>(sql`
    ${selectForKey(database, state)} left join ${r} on ${r.id} = ${text("id")} and ${r.keyId} = ${k.id}
    where ${k.id} = ${text("keyId")}`);
  return {
    /**
     * Files a request if the key still reaches the project and the limits allow one more. Two that are filed at the
     * same moment have the same number, so the second is not filed and must count again.
     * @returns when it expires; undefined if it was not filed: not allowed, an equal one is pending, or another writer
     *   was faster
     */
    file: async (request: NewRequest): Promise<number | undefined> => {
      try {
        const [filed] = await file(request);
        return filed?.expiresAt;
      } catch (error) {
        // This connection waits for no lock, which would stop the event loop.
        if (databaseErrorCode(error).startsWith("SQLITE_BUSY")) return undefined;
        throw error;
      }
    },
    /** One row, unless the key is gone. */
    refusal: (request: NewRequest) => refusal(request),
    /** One row, unless the key is gone. */
    find: (keyId: string, id: string) => find({ keyId, id }),
  };
}
