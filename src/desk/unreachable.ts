import { sql } from "drizzle-orm";
import { Refused } from "../core/refused.ts";
import { databaseErrorCode, isStandby } from "../store/database.ts";
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
        failures.push(describeUnreachable(servers.url, error));
        if (failures.length < servers.count) continue;
        throw new Refused("unavailable", `DATABASE_URL: ${failures.join(" ")}`, { cause: error });
      }
    }
  } finally {
    await database.close();
  }
}

/**
 * Why a PostgreSQL server cannot be used, as one sentence with its host and port, and what a person can do. It holds
 * neither the user nor the password.
 *
 * @param url - of one server
 * @param error - what its first query failed with
 */
function describeUnreachable(url: string, error: unknown): string {
  const { hostname, port, searchParams } = new URL(url);
  const where = `${hostname || searchParams.get("host") || "localhost"}:${port || 5432}`;
  if (isStandby(error)) return `${where} is a standby, and Keyhole needs the primary.`;
  const { cause } = error as Error;
  if (!(cause instanceof Error)) return `${where} did not answer within 2 s: does PostgreSQL run there?`;
  const code = databaseErrorCode(cause);
  if (code === "ECONNRESET" && /\bTLS\b/.test(cause.message)) {
    return `${where} does not speak TLS, which the URL asks for: turn it on there, or correct sslmode.`;
  }
  const [, words] = sentences.find(([codes]) => codes.test(code)) ?? [];
  return `${where} ${words ?? `cannot be used (${code}): does PostgreSQL run there?`}`;
}

const sentences: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^ECONNREFUSED$/, "refuses connections: PostgreSQL does not run there, or listens on another port."],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, "is not a host that this machine knows: correct the name, or look at its DNS."],
  [/^(?:E?(?:TIMEDOUT|HOSTUNREACH|NETUNREACH)|CONNECT_TIMEOUT)$/, "does not answer: is a firewall between?"],
  [
    /^(?:CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO|ERR_TLS|ERR_SSL)/,
    "has a certificate that this machine does not trust: NODE_EXTRA_CA_CERTS names a file with its authority.",
  ],
  [/^28P01$/, "refuses the user or the password: correct them, and percent-encode @ / # in the password."],
  [/^28\w{3}$/, "refuses the user, perhaps because the connection is without TLS: see pg_hba.conf and sslmode."],
  [/^3D000$/, "has no database of that name: create it, or correct the name."],
];
