import { type SQL, sql } from "drizzle-orm";
import type { PostgresServer } from "../core/settings/postgres-url.ts";
import { isStandby } from "../store/database.ts";
import { describeUnreachable } from "../store/failures.ts";
import { openPostgres } from "../store/postgres.ts";
import { askServer, commits, noPrimary, type Primary } from "./find-primary.ts";

/* What the servers of DATABASE_URL are to each other. */

/** One server of DATABASE_URL. */
export type Host =
  | ({ readonly host: string; readonly role: "primary" } & PrimaryFacts)
  | { readonly host: string; readonly role: "standby" }
  | { readonly host: string; readonly role: "unknown"; readonly why: string };

export type PrimaryFacts = {
  /** Two names of one server have the same. */
  readonly startedAt: string;
  /** Such as `15.18 (Debian 15.18-0+deb12u1)`. */
  readonly version: string;
  /** Whether a commit passes within 2 s. */
  readonly commits: boolean;
  /** Empty: no commit waits for a standby. */
  readonly synchronousStandbyNames: string;
  readonly fsync: string;
  readonly isPooled: boolean;
  /** By how much its clock is ahead of this host's, at least; negative if it is behind. */
  readonly clockAheadMs: number;
  /** Whether this role sees standbys and addresses. */
  readonly seesAll: boolean;
  readonly standbys: readonly Standby[];
  readonly processes: readonly Process[];
};

type Standby = {
  readonly name: string;
  readonly address: string | null;
  /** Null if this role may not see it, as in what follows. */
  readonly state: string | null;
  readonly synchronous: boolean | null;
  readonly bytesBehind: number | null;
};

/** Keyhole's processes at one address. Null: over a socket, or this role may not see it. */
type Process = { readonly name: "serve" | "notary"; readonly address: string | null };

/** @throws Refused `unavailable` if none of the servers answers as primary */
export async function checkServers(servers: readonly PostgresServer[]): Promise<readonly Host[]> {
  const hosts = await Promise.all(servers.map(lookAt));
  if (hosts.some(({ role }) => role === "primary")) return hosts;
  throw noPrimary(hosts.map((one) => (one.role === "unknown" ? one : { why: `${one.host} is a standby.` })));
}

async function lookAt(server: PostgresServer): Promise<Host> {
  const host = server.name;
  const found = await askServer(server);
  if ("why" in found) {
    return isStandby(found.cause) ? { host, role: "standby" } : { host, role: "unknown", why: found.why };
  }
  try {
    return { host, role: "primary", ...(await factsOf(found)) };
  } catch (error) {
    return { host, role: "unknown", why: describeUnreachable(host, error) };
  }
}

async function factsOf(primary: Primary): Promise<PrimaryFacts> {
  await using database = openPostgres(primary.own, "admin");
  const ask = <T extends object>(text: SQL) => database.query<T>(text, { retry: false })({});
  const standbys = await ask<Standby>(sql`select application_name as name, host(client_addr) as address, state,
      sync_state in ('sync', 'quorum') as synchronous,
      pg_wal_lsn_diff(pg_current_wal_flush_lsn(), flush_lsn)::bigint as "bytesBehind"
    from pg_stat_replication order by 1, 2`);
  const processes = await ask<Process>(sql`select distinct
      case application_name when 'keyhole notary' then 'notary' else 'serve' end as name, host(client_addr) as address
    from pg_stat_activity where datname = current_database() and application_name in
      ('keyhole notary', 'keyhole look-up', 'keyhole serve', 'keyhole journal') order by 1, 2`);
  const beforeMs = Date.now();
  const [row] = await ask<FactsRow>(sql`select current_setting('server_version') as version,
      current_setting('synchronous_standby_names') as "synchronousStandbyNames", current_setting('fsync') as fsync,
      current_setting('lock_timeout') <> '30s' as "isPooled", ${database.nowMs} as "nowMs",
      pg_has_role(current_user, 'pg_read_all_stats', 'usage') as "seesAll"`);
  const afterMs = Date.now();
  const { nowMs, isPooled, ...facts } = row as FactsRow;
  return {
    ...facts,
    startedAt: primary.startedAt,
    commits: await commits(primary),
    isPooled: isPooled || primary.own.isPooled,
    clockAheadMs: nowMs > afterMs ? nowMs - afterMs : Math.min(nowMs - beforeMs, 0),
    standbys,
    processes,
  };
}

type FactsRow = Pick<PrimaryFacts, "version" | "synchronousStandbyNames" | "fsync" | "seesAll" | "isPooled"> & {
  readonly nowMs: number;
};
