import { Refused } from "../core/refused.ts";
import { toProblem } from "../terminal/failure.ts";

/** How the dashboard says no. */
export type Refusal = {
  readonly status: number;
  readonly title: string;
  /** It names what is wrong and what to do, and never a value. */
  readonly message: string;
  /** Whether it is a failure of Keyhole and not of a person's doing. */
  readonly isDefect: boolean;
};

/** Turns whatever a route threw into an answer. */
export function refusalOf(error: unknown): Refusal {
  const { code, message } = toProblem(error);
  const [status, title] = error instanceof Refused ? refusals[error.kind] : (failures[code] ?? [500, "Failed"]);
  return { status, title, message, isDefect: code === "internal_error" };
}

const refusals = {
  invalid: [400, "Not valid"],
  ambiguous: [400, "Not clear"],
  not_found: [404, "Not found"],
  exists: [409, "It exists"],
  conflict: [409, "Not as you saw it"],
  bound: [422, "Too much"],
  unavailable: [503, "Not available"],
} as const satisfies Record<Refused["kind"], readonly [status: number, title: string]>;

const failures: Readonly<Record<string, readonly [status: number, title: string]>> = {
  decryption_failed: [503, "It does not open"],
  unavailable: [503, "Not available"],
};
