import { exits, Problem, usageProblem } from "../../core/problem.ts";
import type { Words } from "../../people/desk/operation.ts";
import type { Plan } from "../../people/desk/plan.ts";
import { blockOf } from "./answer.ts";
import { readLine, unlessClosed, write } from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/** Asks whether to do what a plan says. @throws Problem unless the answer is yes */
export type Ask = (plan: Pick<Plan, "deed">) => Promise<void>;

/**
 * Asks on this terminal. Elsewhere than on a terminal, and with `--json`, the command needs `--yes`, or asks nobody if it
 * asks only if it can. What has no deed is not asked about.
 */
export function askAt(context: CommandContext, { asks }: Pick<Words, "asks">, yes: boolean): Ask {
  return async ({ deed }) => {
    if (yes || deed === undefined) return;
    const { stdin, stderr } = context.terminal;
    if (context.json || !stdin.isTTY || !stderr.isTTY) {
      if (asks === "if it can") return;
      throw usageProblem(`This would ${deed}. Nobody can be asked here, so it needs --yes.`);
    }
    const typed = await readLine(context.terminal, `This will ${deed}. Go on? [y/N] `);
    if (!/^y(?:es)?$/i.test(typed.trim())) throw new Problem(exits.failed, "not_confirmed", "Nothing was changed.");
  };
}

/** Shows what a person reads before they type a value. */
export async function showFirst(context: CommandContext, { shows, warnings = [] }: Pick<Plan, "shows" | "warnings">) {
  // With --json, stderr must be one document if the rest fails.
  if (context.json || shows === undefined || !("facts" in shows)) return;
  const { stderr } = context.terminal;
  await write(stderr, blockOf(context, stderr, shows)).catch(unlessClosed);
  for (const warning of warnings) context.say(warning);
}
