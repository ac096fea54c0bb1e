import { Fault } from "../core/fault.ts";
import { Refused, type RefusedKind } from "../core/refused.ts";

/* Turns an error into a code and a sentence for a person. Commands and pages show both. */

/** What kind of failure it is. The kinds of a Refused keep their names. */
export type FailureCode = RefusedKind | "unauthorized" | "decryption_failed" | "database_damaged" | "internal_error";

/**
 * What to tell a person about an error. Of a database's or a parser's error the message has only the code, because such
 * an error may quote a secret.
 * @param isOperators - whether the message may name settings of this host, which an operator can correct
 */
export function failureOf(
  error: unknown,
  isOperators = true,
): { readonly code: FailureCode; readonly message: string } {
  // A Refused explains more than the code of its cause, or the Fault that it caused.
  const refused = error instanceof Fault && error.cause instanceof Refused ? error.cause : error;
  if (refused instanceof Refused) return { code: refused.kind, message: refused.message };
  const code = systemCode(error);
  const failure = databaseFailures.find(({ codes }) => codes.test(code ?? ""));
  if (failure !== undefined) {
    const message = isOperators || failure.as === "invalid" ? failure.message : hostFailure;
    return { code: failure.as ?? "unavailable", message };
  }
  const faultCode = error instanceof Fault ? error.code : undefined;
  if (faultCode === "decryption_failed") return { code: faultCode, message: decryptionMessage };
  if (faultCode === "unavailable") return { code: faultCode, message: unavailableMessage };
  const name = error instanceof Error ? error.name : typeof error;
  const shown = code === undefined ? name : `${name}, ${code}`;
  return { code: "internal_error", message: `Something failed inside Keyhole (${shown}). Please report it.` };
}

/** What a person who is not an operator is told about a failure of the host or its database. */
export const hostFailure =
  "Keyhole cannot be used on this host now: ask an operator, who sees why with `keyhole whoami` there.";
const unavailableMessage = "The database did not answer in time, or not as it should: try again.";
const decryptionMessage =
  "Something stored cannot be decrypted: this is the wrong root key, or the database was altered.";

/** What a person can do about a failure of the database. The codes are the system's, PostgreSQL's and SQLite's. */
const databaseFailures: readonly {
  readonly codes: RegExp;
  readonly message: string;
  /** Default: unavailable. */
  readonly as?: FailureCode;
}[] = [
  {
    codes: /^3D000$/,
    message: "The server of DATABASE_URL has no database of that name: create it, or correct the name in DATABASE_URL.",
  },
  {
    codes: /^28\w{3}$/,
    message: "The server of DATABASE_URL refuses the user: correct the user or the password in DATABASE_URL.",
  },
  {
    codes: /^22021$/,
    as: "invalid",
    message: "What was asked for has a character that no name in the database can have.",
  },
  {
    codes: /^42501$/,
    as: "unauthorized",
    message: "The user of DATABASE_URL lacks a right in the database: use the one that owns its tables.",
  },
  {
    codes:
      /^(?:E(?:CONNREFUSED|CONNRESET|TIMEDOUT|HOSTUNREACH|NETUNREACH|NOTFOUND|PIPE|AI_AGAIN)|CONNECT|CONNECTION_\w+|CONNECT_TIMEOUT|ERR_POSTGRES_\w+|08\w{3}|53\w{3}|57P\d\d|57014)$/,
    message:
      "The database cannot be reached or did not answer in time. Check that it runs and that DATABASE_URL is right.",
  },
  {
    codes: /^SQLITE_(?:FULL|IOERR_SHMSIZE)$/,
    message: "The disk of the data folder (KEYHOLE_DATA) is full, and nothing was changed: make room, then try again.",
  },
  {
    codes: /^SQLITE_(?:BUSY|LOCKED)\w*$/,
    message: "Another process keeps the embedded database locked: try again.",
  },
  {
    codes: /^SQLITE_(?:IOERR|CANTOPEN|READONLY)\w*$/,
    message:
      "The data folder (KEYHOLE_DATA) cannot be read or written: check its owner and mode, and that its disk works and has room.",
  },
  {
    codes: /^SQLITE_(?:NOTADB|CORRUPT)/,
    as: "database_damaged",
    message: "The file keyhole.db in the folder KEYHOLE_DATA is damaged or not a Keyhole database.",
  },
];

/** The code of a system, driver or database error. Unlike the message, it quotes no input. */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code } = at as { code?: unknown };
    if (at instanceof Fault) continue; // its code is for clients
    if (typeof code === "string" && /^\w{1,40}$/.test(code)) return code;
  }
  return undefined;
}
