import { visibleLines } from "../../core/visible.ts";
import { type Audience, failureFor, failures } from "../../people/desk/failure.ts";

/**
 * Turns an error that a route threw into an answer.
 * @returns a message that names what is wrong and what to do, and never a value; stored text in it is visible. What is
 * for the log is not a person's doing, or is not told them: a defect, and a failure of this host
 */
export function refusalOf(error: unknown, audience: Audience) {
  const { code, message } = failureFor(audience, error);
  const [, status, title] = failures[code];
  const isWithheld = message !== failureFor("operator", error).message;
  return { status, title, message: visibleLines(message), isForLog: isWithheld || code === "internal_error" };
}
