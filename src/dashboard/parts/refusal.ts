import { visibleLines } from "../../core/visible.ts";
import { type Audience, type FailureCode, failureFor } from "../../people/desk/failure.ts";

/**
 * Turns an error that a route threw into an answer.
 * @returns a message that names what is wrong and what to do, and never a value; stored text in it is visible. What is
 * for the log is not a person's doing, or is not told them: a defect, and a failure of this host
 */
export function refusalOf(error: unknown, audience: Audience) {
  const { code, message } = failureFor(audience, error);
  const [status, title] = refusals[code];
  const isWithheld = message !== failureFor("operator", error).message;
  return { status, title, message: visibleLines(message), isForLog: isWithheld || code === "internal_error" };
}

const refusals = {
  invalid: [400, "Not valid"],
  ambiguous: [400, "Ambiguous"],
  not_found: [404, "Not found"],
  forbidden: [403, "Not permitted"],
  stale: [401, "Sign in again"],
  exists: [409, "Already exists"],
  conflict: [409, "Not possible now"],
  bound: [422, "Too much"],
  unavailable: [503, "Not available"],
  unauthorized: [503, "Not allowed in the database"],
  decryption_failed: [503, "Cannot be decrypted"],
  database_damaged: [503, "The database is damaged"],
  internal_error: [500, "Failed"],
} as const satisfies Record<FailureCode, readonly [status: number, title: string]>;
