import { exits, Problem, usageProblem } from "../core/problem.ts";
import type { Interaction, Words } from "../desk/operation.ts";
import type { Facts } from "../desk/outcome.ts";
import { blockOf } from "./answer.ts";
import type { CommandContext } from "./command.ts";
import { readLine, unlessClosed, write } from "./terminal.ts";

/** How a command speaks with a person: on this terminal. */
export function interactionAt(
  context: CommandContext,
  { asks }: Pick<Words, "asks">,
  yes: boolean,
  report: Interaction["report"] = () => {},
): Interaction {
  return {
    env: context.env,
    // Elsewhere than on a terminal, and with `--json`, the command needs `--yes`, unless it goes on.
    agree: async (deed) => {
      if (yes) return;
      const { stdin, stderr } = context.terminal;
      if (context.json || !stdin.isTTY || !stderr.isTTY) {
        if (asks === "goes on") return;
        throw usageProblem(`This would ${deed}. Nobody can be asked here, so it needs --yes.`);
      }
      const typed = await readLine(context.terminal, `This will ${deed}. Go on? [y/N] `);
      if (!/^y(?:es)?$/i.test(typed.trim())) throw new Problem(exits.failed, "not_confirmed", "Nothing was changed.");
    },
    show: async (facts: Facts, warnings) => {
      // With --json, stderr must be one document if the rest fails.
      if (context.json) return;
      const { stderr } = context.terminal;
      await write(stderr, blockOf(context, stderr, facts)).catch(unlessClosed);
      for (const warning of warnings) context.say(warning);
    },
    report,
  };
}
