import { Refused } from "../../core/refused.ts";
import { firstLines } from "../../core/words/text.ts";
import type { Change } from "../../people/desk/changes.ts";
import type { Given, Inputs, ReadInput } from "../../people/desk/inputs.ts";
import type { Interaction, Operation, Planned } from "../../people/desk/operation.ts";
import type { Outcome, SecretOutput } from "../../people/desk/outcome.ts";
import { applying, type Plan, type Seen } from "../../people/desk/plan.ts";
import { may } from "../../serve/access/rights.ts";
import { projectPagePath } from "./paths.ts";
import type { Done, Secret } from "./route.ts";
import type { Form, Visit } from "./visit.ts";

/** What a form gives an operation, which may do without the rest. */
export type Filled<I extends Inputs> = Partial<Given<I>> & {
  readonly [K in keyof I as undefined extends Given<I>[K] ? never : K]: Given<I>[K];
};

/** What a page needs to carry out an operation. */
type Acting = Pick<Visit, "admin" | "form">;

/**
 * What an operation would do, for the page that asks about it. Its form carries `seen` in hidden fields of these names.
 */
export function planned<const I extends Inputs, P extends Plan>(
  { admin }: Pick<Visit, "admin">,
  operation: Planned<I, P>,
  given: Filled<I>,
): Promise<P> {
  return operation.plan(admin, given as Given<I>, silent);
}

/**
 * Runs an operation for a form. If it has a plan, the form shows it, and nothing is done unless it is as the form says.
 * @param to - the path of the page that then shows what the operation says
 */
export async function carryOut<const I extends Inputs>(
  visit: Acting,
  operation: Operation<I>,
  given: Filled<I>,
  to: string,
): Promise<Done> {
  const written: Change[] = [];
  const admin = { ...visit.admin, noteUndoable: (changes: readonly Change[]) => void written.push(...changes) };
  const done = goOn(to, await outcomeOf({ admin, form: visit.form }, operation, given));
  return { ...done, ...undosOf(admin, written) };
}

/** Leads to the page that undoes a write, in each environment where this person may. */
function undosOf({ rights }: Visit["admin"], writes: readonly Change[]): Pick<Done, "links"> {
  const undos = writes.flatMap(({ action, organization, project, environment, version }) => {
    if (!organization || !project || !environment) return [];
    const place = { organizationId: organization.id, projectId: project.id };
    if (!may(rights, "see", place, environment) || !may(rights, "write", place, environment)) return [];
    const [kind] = action.split(".");
    const where = `${organization.slug}/${project.slug}`;
    return [[environment, projectPagePath(where, "undo", { kind, environment, version })] as const];
  });
  if (undos.length === 0) return {};
  return { links: Object.fromEntries(undos.map(([at, to]) => [undos.length === 1 ? "Undo" : `Undo in ${at}`, to])) };
}

async function outcomeOf<const I extends Inputs>(
  { admin, form }: Acting,
  operation: Operation<I>,
  filled: Filled<I>,
): Promise<Outcome> {
  const given = filled as Given<I>;
  if (operation.plan === undefined) return operation.run(admin, given, silent);
  return applying(
    admin,
    (admin) => operation.plan(admin, given, silent),
    (now) => requireShown(form, now),
  );
}

/**
 * What a form showed of the things that a plan is for. The operation judges the versions.
 * @throws Refused `invalid` if one of them is not there, `conflict` if it is another thing
 */
export function requireShown(form: Form, now: Seen): Seen {
  const shown = Object.entries(now).map(([what, value]) => {
    const text = form.read(what);
    if (typeof value === "number") return [what, form.number(what)] as const;
    if (text === value) return [what, text] as const;
    throw new Refused("conflict", `The ${what} has changed since it was shown. Nothing was done: look at it again.`);
  });
  return Object.fromEntries(shown);
}

/**
 * Runs an operation that makes something with a secret, for a form of the page's script.
 * @param page - the path of the page of all such things; the page of each is below it, by its id
 */
export async function handOver<const I extends Inputs>(
  visit: Acting,
  operation: Operation<I>,
  given: Filled<I>,
  page: string,
): Promise<Secret> {
  const outcome = await outcomeOf(visit, operation, given);
  const { id } = outcome.document as { readonly id: string };
  const { secret, whereItWent } = outcome.shows as SecretOutput;
  const { to, notice } = goOn(`${page}/${id}`, outcome);
  return { secret: String(secret).trimEnd(), to, notice: `${notice} ${whereItWent?.(undefined) ?? ""}` };
}

/** Goes on to a page that shows what was done, and what a person is warned of. */
export function goOn(to: string, { sentence = "", warnings = [] }: Pick<Outcome, "sentence" | "warnings">): Done {
  return { to, notice: [sentence, ...firstLines(warnings)].join(" ") };
}

const silent: Interaction = { env: {}, report: () => {} };

/** A text of a form, for an operation that reads one. */
export function typedIn(text: string): ReadInput {
  const bytes = Buffer.from(text);
  async function* chunks() {
    yield bytes;
  }
  return { name: "", read: async () => bytes, chunks };
}
