import { Fault } from "../../core/fault.ts";
import { exits, Problem } from "../../core/problem.ts";
import { HostRefused, Refused, type RefusedKind, unusable } from "../../core/refused.ts";
import { databaseFailures } from "../../store/failures.ts";

/*
 * Turns an error into a code and a sentence, which commands and pages show. There are two sentences: an operator is told
 * which folder, host or setting is wrong, and can correct it. Anybody else who comes through a door is told what
 * happened and whom to ask.
 */

/** Each kind of failure, with a command's exit code, and a page's status and title. The kind of a Refused is its key. */
export const failures = {
  invalid: [exits.usage, 400, "Not valid"],
  ambiguous: [exits.usage, 400, "Ambiguous"],
  not_found: [exits.notFound, 404, "Not found"],
  forbidden: [exits.unauthorized, 403, "Not permitted"],
  stale: [exits.unauthorized, 401, "Sign in again"],
  exists: [exits.failed, 409, "Already exists"],
  conflict: [exits.failed, 409, "Not possible now"],
  bound: [exits.refused, 422, "Too much"],
  unavailable: [exits.unavailable, 503, "Not available"],
  unauthorized: [exits.unauthorized, 503, "Not allowed in the database"],
  decryption_failed: [exits.failed, 503, "Cannot be decrypted"],
  database_damaged: [exits.failed, 503, "The database is damaged"],
  internal_error: [exits.failed, 500, "Failed"],
} as const satisfies Record<RefusedKind, FailureRow> & Record<string, FailureRow>;

type FailureRow = readonly [exitCode: number, status: number, title: string];

type FailureCode = keyof typeof failures;

/** Who reads a sentence: somebody who holds the root key, or somebody who came through a door. */
export type Audience = "operator" | "person";

type ToldFailure = { readonly code: FailureCode; readonly message: string };

/**
 * The code and the sentence of an error. An operator is told all that helps to correct it; of a database's or a parser's
 * error only the code, because such an error may quote a secret. Others are told nothing of this host but the name of an
 * error.
 */
export function failureFor(audience: Audience, error: unknown): ToldFailure {
  const isPerson = audience === "person";
  // A Refused explains more than the code of its cause, or the Fault that it caused.
  const refused = error instanceof Fault ? error.cause : error;
  // What is missing or there already on this host is not what they asked for.
  if (isPerson && refused instanceof HostRefused) {
    return { code: refused.kind === "conflict" ? "conflict" : "unavailable", message: refused.forPersons };
  }
  if (refused instanceof Refused) return { code: refused.kind, message: refused.message };
  if (error instanceof Problem && error.code === "invalid_configuration") {
    return { code: "unavailable", message: isPerson ? unusable : error.message };
  }
  // An operation refuses what it was given, in the words of a command.
  if (error instanceof Problem && error.exitCode === exits.usage) return { code: "invalid", message: error.message };
  const known = knownFailure(error);
  if (known !== undefined) {
    return { code: known.code, message: (isPerson ? known.forPersons : undefined) ?? known.message };
  }
  const what = `Something failed inside Keyhole (${nameOf(error)})`;
  const todo = isPerson ? ": tell an operator, who can report it." : ". Please report it.";
  return { code: "internal_error", message: what + todo };
}

/** What an operator is told of a failure that has a code, and others if that is something else. */
function knownFailure(error: unknown): (ToldFailure & { readonly forPersons?: string }) | undefined {
  const code = systemCode(error);
  const found = databaseFailures.find(([codes]) => codes.test(code ?? ""));
  if (found !== undefined) {
    const [, message, kind = "unavailable"] = found;
    return { code: kind, message, ...(kind !== "invalid" && { forPersons: unusable }) };
  }
  const faultCode = error instanceof Fault ? error.code : undefined;
  return faultCode === "decryption_failed" || faultCode === "unavailable" ? ofFaults[faultCode] : undefined;
}

/** The name of an error, and its code. */
function nameOf(error: unknown): string {
  const name = error instanceof Error ? error.name : typeof error;
  const code = systemCode(error);
  return code === undefined ? name : `${name}, ${code}`;
}

const ofFaults = {
  unavailable: {
    code: "unavailable",
    message: "The database did not answer in time, or not as it should: try again.",
    forPersons: "The database did not answer in time, or not as it should: try again, or ask an operator.",
  },
  decryption_failed: {
    code: "decryption_failed",
    message: "Something stored cannot be decrypted: this is the wrong root key, or the database was altered.",
    forPersons: "Something stored cannot be decrypted: ask an operator.",
  },
} as const;

/** The code of a system, driver or database error. Unlike the message, it quotes no input. */
function systemCode(error: unknown): string | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    const { code } = at as { code?: unknown };
    if (at instanceof Fault) continue; // its code is for clients
    if (typeof code === "string" && /^\w{1,40}$/.test(code)) return code;
  }
  return undefined;
}
