import type { Given, Inputs, ReadInput } from "../desk/inputs.ts";
import type { Interaction, Operation } from "../desk/operation.ts";
import type { Outcome, SecretOutput } from "../desk/outcome.ts";
import type { Done, Secret } from "./route.ts";
import type { Visit } from "./visit.ts";

/** What a form gives an operation, which may do without the rest. */
type Filled<I extends Inputs> = Partial<Given<I>> & {
  readonly [K in keyof I as undefined extends Given<I>[K] ? never : K]: Given<I>[K];
};

/**
 * Runs an operation for a form, which has asked what the operation asks.
 * @param to - the path of the page that then shows what the operation says
 */
export async function carryOut<const I extends Inputs>(
  { admin }: Pick<Visit, "admin">,
  operation: Operation<I>,
  given: Filled<I>,
  to: string,
): Promise<Done> {
  return goOn(to, await operation.run(admin, given as Given<I>, answered));
}

/**
 * Runs an operation that makes something with a secret, for a form of the page's script.
 * @param page - the path of the page of all such things; the page of each is below it, by its id
 */
export async function handOver<const I extends Inputs>(
  { admin }: Pick<Visit, "admin">,
  operation: Operation<I>,
  given: Filled<I>,
  page: string,
): Promise<Secret> {
  const outcome = await operation.run(admin, given as Given<I>, answered);
  const { id } = outcome.document as { readonly id: string };
  const { secret, advice } = outcome.shows as SecretOutput;
  const { to, notice } = goOn(`${page}/${id}`, outcome);
  return { secret: String(secret).trimEnd(), to, notice: `${notice} ${advice?.(undefined) ?? ""}` };
}

/** Goes on to a page that shows what was done, and what a person is warned of. */
export function goOn(to: string, { sentence = "", warnings = [] }: Pick<Outcome, "sentence" | "warnings">): Done {
  return { to, notice: [sentence, ...warnings].join(" ") };
}

const answered: Interaction = { env: {}, agree: async () => {}, show: async () => {}, report: () => {} };

/** A text of a form, for an operation that reads one. */
export function typedIn(text: string): ReadInput {
  const bytes = Buffer.from(text);
  async function* chunks() {
    yield bytes;
  }
  return { name: "the form", read: async () => bytes, chunks };
}
