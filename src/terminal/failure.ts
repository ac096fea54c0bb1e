import { Fault } from "../core/fault.ts";
import { exits, Problem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { visibleLines } from "../core/visible.ts";
import type { Surroundings } from "./command.ts";
import { fitted, hasColour, jsonLine, red, write } from "./terminal.ts";

/* How a command fails: whatever was thrown becomes a Problem, and `main.ts` prints it. */

/** Turns whatever was thrown into a Problem. */
export function toProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const [exitCode, code, message] = classify(error);
  return new Problem(exitCode, code, message, { cause: error });
}

type Classified = readonly [exitCode: number, code: string, message: string];

function classify(error: unknown): Classified {
  // A Refused explains more than the code of its cause.
  if (error instanceof Refused) return [refusals[error.kind], error.kind, error.message];
  const code = systemCode(error);
  const failure = databaseFailures.find(({ codes }) => codes.test(code ?? ""));
  if (failure !== undefined) return [...(failure.as ?? unavailable), failure.message];
  const faultCode = error instanceof Fault ? error.code : undefined;
  if (faultCode === "decryption_failed") return [exits.failed, faultCode, decryptionMessage];
  if (faultCode === "unavailable") return [...unavailable, unavailableMessage];
  // Messages of databases and parsers quote their input, which may be a secret: only the name and the code are shown.
  const name = error instanceof Error ? error.name : typeof error;
  const shown = code === undefined ? name : `${name}, ${code}`;
  return [exits.failed, "internal_error", `The command failed inside Keyhole (${shown}). Please report it.`];
}

/** Writes the error to stderr: `keyhole: …` for people, `{"error","code","requestId"}` with `--json`. */
export async function complain(here: Surroundings, problem: Problem): Promise<void> {
  const { message, code, requestId, help, notes } = problem;
  const { stderr } = here.terminal;
  if (here.json) {
    return write(stderr, jsonLine({ error: message, code, requestId, ...(notes.length > 0 && { notes }) }));
  }
  if (help !== undefined) return write(stderr, help);
  const request = requestId === null ? "" : ` (request ${requestId})`;
  const name = hasColour(stderr, here.env) ? red("keyhole:") : "keyhole:";
  return write(stderr, `${fitted(`${name} ${visibleLines(message + request)}`, stderr)}\n`);
}

/** With --json, stderr holds one document if the command fails. So the messages of `work` wait for its outcome. */
export async function holdNotes<T>(here: Surroundings, work: (say: Surroundings["say"]) => Promise<T>): Promise<T> {
  const notes: string[] = [];
  try {
    const result = await work(here.json ? (line) => notes.push(line) : here.say);
    notes.forEach(here.say);
    return result;
  } catch (error) {
    const problem = toProblem(error);
    problem.notes = notes;
    throw problem;
  }
}

const refusals = {
  invalid: exits.usage,
  ambiguous: exits.usage,
  not_found: exits.notFound,
  exists: exits.failed,
  conflict: exits.failed,
  bound: exits.refused,
  unavailable: exits.unavailable,
} as const satisfies Record<Refused["kind"], number>;

const unavailable = [exits.unavailable, "unavailable"] as const;
const unavailableMessage = "The database did not answer in time, or not as it should: try again.";
const decryptionMessage =
  "Something stored cannot be decrypted: this is the wrong root key, or the database was altered.";

/** What a person can do about a failure of the database. The codes are the system's, PostgreSQL's and SQLite's. */
const databaseFailures: readonly {
  readonly codes: RegExp;
  readonly message: string;
  /** Default: unavailable. */
  readonly as?: readonly [exitCode: number, code: string];
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
    codes: /^42501$/,
    as: [exits.unauthorized, "unauthorized"],
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
    as: [exits.failed, "database_damaged"],
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
