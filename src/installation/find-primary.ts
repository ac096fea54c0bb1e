import { sql } from "drizzle-orm";
import { Refused } from "../core/refused.ts";
import { databaseErrorCode, isSqlState, isStandby } from "../store/database.ts";
import { openPostgres, type Servers } from "../store/postgres.ts";

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

/**
 * Why a PostgreSQL server cannot be used, as one sentence that names it, and what a person can do. It holds neither the
 * user nor the password.
 *
 * @param where - its host and port, or its socket
 * @param error - what its first query failed with
 */
function describeUnreachable(where: string, error: unknown): string {
  if (isStandby(error)) return `${where} is a standby, and Keyhole needs the primary.`;
  const { cause } = error as Error;
  if (!(cause instanceof Error)) return `${where} did not answer within 2 s: does PostgreSQL run there?`;
  const code = databaseErrorCode(cause);
  if (code === "ECONNRESET" && /\bTLS\b/.test(cause.message)) {
    return `${where} does not speak TLS, which the URL asks for: turn it on there, or correct sslmode.`;
  }
  const [, words] = sentences.find(([codes]) => codes.test(code)) ?? [];
  const otherwise = isSqlState(code)
    ? `refuses (${code}): its log says why.`
    : `cannot be used (${code}): does PostgreSQL run there?`;
  return `${where} ${words ?? otherwise}`;
}

const sentences: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^ECONNREFUSED$/, "refuses connections: PostgreSQL does not run there, or listens on another port."],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, "is not a host that this machine knows: correct the name, or look at its DNS."],
  [/^(?:E?(?:TIMEDOUT|HOSTUNREACH|NETUNREACH)|CONNECT_TIMEOUT)$/, "does not answer: is a firewall between?"],
  [/^ENOENT$/, "is not there: PostgreSQL does not run on this machine, or has its sockets in another folder."],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    "has a certificate that belongs to another host: write the host in DATABASE_URL as the certificate does.",
  ],
  [
    /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL)/,
    "has a certificate that this machine does not trust: sslrootcert=FILE names a file with its authority.",
  ],
  [/^28P01$/, "refuses the user or the password: correct them, and percent-encode % @ / ? # in the password."],
  [/^28\w{3}$/, "refuses the user, perhaps because the connection is without TLS: see pg_hba.conf and sslmode."],
  [/^42501$/, "refuses the user: `grant connect on database NAME to USER` lets it connect to the database."],
  [/^53300$/, "has no free connection: raise max_connections or the limit of the role, or close other connections."],
  [/^3D000$/, "has no database of that name: create it, or correct the name."],
];
