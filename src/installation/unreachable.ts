import { certificateFailures } from "../core/json-request.ts";
import { databaseErrorCode, isSqlState, isStandby } from "../store/database.ts";
import { signInFailures } from "../store/sign-in.ts";

/* What a person reads of a PostgreSQL server that cannot be used. */

/**
 * Why a PostgreSQL server cannot be used, as one sentence that names it, and what a person can do. It holds neither the
 * user nor the password.
 *
 * @param where - its host and port, or its socket
 * @param error - what its first query failed with
 */
export function describeUnreachable(where: string, error: unknown): string {
  if (isStandby(error)) return `${where} is a standby, and Keyhole needs the primary.`;
  const { cause } = error as Error;
  if (!(cause instanceof Error)) return `${where} did not answer within 2 s: does PostgreSQL run there?`;
  const code = databaseErrorCode(cause);
  if (code === "ECONNRESET" && /\bTLS\b/.test(cause.message)) {
    return `${where} does not speak TLS, which the URL asks for: turn it on there, or correct sslmode.`;
  }
  if (code === "ENOENT") {
    return `${where} is not there: PostgreSQL does not run on this machine, or has its sockets in another folder.`;
  }
  const [, words] = serverFailures.find(([codes]) => codes.test(code)) ?? [];
  const otherwise = isSqlState(code)
    ? `refuses (${code}): its log says why.`
    : `cannot be used (${code}): does PostgreSQL run there?`;
  return `${where} ${words ?? otherwise}`;
}

/** What a server does or lacks, after its name, and what a person can do. The codes are the system's and PostgreSQL's. */
export const serverFailures: readonly ServerFailure[] = [
  ...Object.entries(signInFailures).map(([code, words]): ServerFailure => [new RegExp(`^${code}$`), words]),
  [/^ECONNREFUSED$/, "refuses connections: PostgreSQL does not run there, or listens on another port."],
  [/^(?:ENOTFOUND|EAI_AGAIN)$/, "is not a host that this machine knows: correct the name, or look at its DNS."],
  [/^(?:E?(?:TIMEDOUT|HOSTUNREACH|NETUNREACH)|CONNECT_TIMEOUT)$/, "does not answer: is a firewall between?"],
  [
    /^ERR_TLS_CERT_ALTNAME_INVALID$/,
    "has a certificate that belongs to another host: write the host in DATABASE_URL as the certificate does.",
  ],
  ...Object.entries(certificateFailures("sslrootcert=FILE may name a file with yours")).map(
    ([code, words]): ServerFailure => [new RegExp(`^${code}$`), `has a certificate that ${words}.`],
  ),
  [/^(?:CERT_|ERR_TLS|ERR_SSL)/, "and this machine cannot agree on TLS: its log may say why."],
  [/^28P01$/, "refuses the user or the password: correct them, and percent-encode % @ / ? # in the password."],
  [
    /^28\w{3}$/,
    "refuses the user: it is no role there, or pg_hba.conf does not let it in, such as without TLS (sslmode).",
  ],
  [
    /^42501$/,
    "refuses the user, who lacks a right in the database: use the owner of its tables, or `grant connect on database`.",
    "unauthorized",
  ],
  [/^53100$/, "has no room on its disk, and nothing was changed: make room, then try again."],
  [/^25006$/, "takes no writes: it is a standby, or default_transaction_read_only is on."],
  [/^53300$/, "has no free connection: raise max_connections or the limit of the role, or close other connections."],
  [/^3D000$/, "has no database of that name: create it, or correct the name."],
  [
    /^(?:E(?:CONNRESET|PIPE)|CONNECT|CONNECTION_\w+|ERR_POSTGRES_\w+|08\w{3}|53\w{3}|57P\d\d|57014)$/,
    "cannot be reached, or did not answer in time: does PostgreSQL run there?",
  ],
];

type ServerFailure = readonly [codes: RegExp, words: string, code?: "unauthorized"];
