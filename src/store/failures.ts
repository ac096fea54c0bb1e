import { Fault } from "../core/fault.ts";
import { certificateFailures } from "../core/json-request.ts";
import { Problem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { databaseErrorCode, isSqlState, isStandby } from "./database.ts";
import { signInFailures } from "./sign-in.ts";

/* What a person reads of a database that cannot be used. A driver's own words may quote input. */

/** Why a database did not do what was asked, as a sentence: for logs. */
export function whyFailed(error: unknown): string {
  if (error instanceof Refused || error instanceof Problem) return error.message;
  if (error instanceof Fault) return error.cause === undefined ? sentence(error.message) : whyFailed(error.cause);
  const source = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (source instanceof Fault) return whyFailed(source);
  const code = databaseErrorCode(error);
  const [, known] = databaseFailures.find(([codes]) => codes.test(code)) ?? [];
  if (known !== undefined) return known;
  if (isSqlState(code)) return `The server of DATABASE_URL refuses (${code}): its log says why.`;
  return `The database cannot be used (${code === "no code" && source instanceof Error ? source.name : code}).`;
}

const sentence = (words: string) => `${words[0]?.toUpperCase()}${words.slice(1)}.`;

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
const serverFailures: readonly ServerFailure[] = [
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
    "refuses the user: it is not a role there, or pg_hba.conf does not let it in, such as without TLS (sslmode).",
  ],
  [
    /^42501$/,
    "refuses the user, who lacks a right in the database: use the owner of its tables, or `grant connect on database`.",
    "unauthorized",
  ],
  [/^2201X$/, "is a standby, and Keyhole needs the primary."],
  [/^55P03$/, "has a lock that somebody else holds: pg_locks and pg_stat_activity there say who."],
  [/^57014$/, "ended a statement that took too long: is a lock held, or is it overloaded?"],
  [/^25P0[34]$/, "ended a transaction that stood still: was this process stopped?"],
  [/^53100$/, "has no room on its disk, and nothing was changed: make room, then try again."],
  [/^25006$/, "takes no writes: it is a standby, or default_transaction_read_only is on."],
  [/^53300$/, "has no free connection: raise max_connections or the limit of the role, or close other connections."],
  [/^3D000$/, "has no database of that name: create it, or correct the name."],
  [
    /^(?:E(?:CONNRESET|PIPE)|CONNECT|CONNECTION_\w+|ERR_POSTGRES_\w+|08\w{3}|53\w{3}|57P\d\d)$/,
    "cannot be reached, or did not answer in time: does PostgreSQL run there?",
  ],
];

type ServerFailure = readonly [codes: RegExp, words: string, kind?: "unauthorized" | undefined];
type DatabaseFailure = readonly [
  codes: RegExp,
  words: string,
  kind?: "unauthorized" | "invalid" | "database_damaged" | undefined,
];

/** What a person can do about a failure of the database, by codes of PostgreSQL and SQLite. Kinds are of `people/desk/failure.ts`. */
export const databaseFailures: readonly DatabaseFailure[] = [
  ...serverFailures.map(([codes, words, kind]) => [codes, `The server of DATABASE_URL ${words}`, kind] as const),
  [/^22021$/, "What was asked for has a character that no name in the database can have.", "invalid"],
  [
    /^SQLITE_(?:FULL|IOERR_SHMSIZE)$/,
    "The disk of the data folder (KEYHOLE_DATA) is full, and nothing was changed: make room, then try again.",
  ],
  [/^SQLITE_(?:BUSY|LOCKED)\w*$/, "Another process keeps the embedded database locked: try again."],
  [
    /^SQLITE_(?:IOERR|CANTOPEN|READONLY)\w*$/,
    "The data folder (KEYHOLE_DATA) cannot be read or written: check its owner and mode, and that its disk works and has room.",
  ],
  [
    /^SQLITE_(?:NOTADB|CORRUPT)/,
    "The file keyhole.db in the folder KEYHOLE_DATA is damaged or not a Keyhole database.",
    "database_damaged",
  ],
];
