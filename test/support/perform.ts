import type { AdminContext } from "../../src/people/desk/context.ts";
import { carryOutShown, type Operation } from "../../src/people/desk/operation.ts";
import type { Outcome } from "../../src/people/desk/outcome.ts";
import type { Plan } from "../../src/people/desk/plan.ts";

/** Runs a row as a command does. @param agree - what happens while its question stands */
export async function performed(
  row: Operation,
  admin: AdminContext,
  given: object,
  agree: (plan: Plan) => unknown = () => {},
): Promise<Outcome> {
  const person = { env: {}, report: () => {} };
  if (row.plan === undefined) return row.run(admin, given as never, person);
  const plan = await row.plan(admin, given as never, person);
  if (plan.deed !== undefined || row.showsFirst) await agree(plan);
  return carryOutShown(admin, row, given as never, person, plan);
}
