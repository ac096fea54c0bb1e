import type { Given, Inputs, ReadInput } from "../desk/inputs.ts";
import type { Interaction, Operation } from "../desk/operation.ts";
import type { Outcome } from "../desk/outcome.ts";
import type { Done } from "./route.ts";
import type { Visit } from "./visit.ts";

/**
 * Runs an operation for a form, which has asked what the operation asks.
 * @param to - the path of the page that then shows what the operation says
 */
export async function carryOut<const I extends Inputs>(
  { admin }: Pick<Visit, "admin">,
  operation: Operation<I>,
  given: Given<I>,
  to: string,
): Promise<Done> {
  return goOn(to, await operation.run(admin, given, answered));
}

/** Goes on to a page that shows what was done, and what a person is warned of. */
export function goOn(to: string, { sentence = "", warnings = [] }: Pick<Outcome, "sentence" | "warnings">): Done {
  return { to, notice: [sentence, ...warnings].join(" ") };
}

const answered: Interaction = { env: {}, agree: async () => {}, show: async () => {}, report: () => {} };

/** A text of a form, for an operation that reads one. */
export function typedIn(text: string): ReadInput {
  async function* lines() {
    yield* text.split("\n");
  }
  return { name: "the form", read: async () => Buffer.from(text), lines };
}
