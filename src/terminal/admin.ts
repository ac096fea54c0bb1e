import { exits, Problem, usageProblem } from "../core/problem.ts";
import { readConfig } from "../core/settings.ts";
import { type AdminContext, adminContextOf, operator, rehearse } from "../desk/context.ts";
import { whoIs } from "../desk/roster.ts";
import { actorOf } from "../installation/actor.ts";
import { hostFailure } from "../installation/failure.ts";
import { type Installation, openInstallation } from "../installation/installation.ts";
import type { CommandContext } from "./command.ts";
import { holdNotes } from "./failure.ts";
import { readLine } from "./terminal.ts";

/**
 * Opens the installation that the environment names, runs `work` with it, and closes it.
 * @param begin - whether to make one if there is none
 */
export async function withAdmin<T>(
  context: CommandContext,
  work: (admin: AdminContext) => Promise<T>,
  begin = false,
): Promise<T> {
  return holdNotes(context, async (say) => {
    const { person } = context;
    const installation = await (person === undefined
      ? open(context, say, begin)
      : open(context, () => {}).catch(withhold));
    const who = person === undefined ? operator(actorOf(context.env)) : await whoIs(installation, person);
    const admin = adminContextOf(installation, who);
    return work(admin).finally(() => admin.close());
  });
}

async function open({ env }: CommandContext, say: (line: string) => void, begin = false): Promise<Installation> {
  return openInstallation(readConfig(env), say, begin);
}

/**
 * Tells a person over SSH that it failed, but not why: the reason names folders, hosts and settings of this machine.
 */
function withhold(cause: unknown): never {
  throw new Problem(exits.unavailable, "unavailable", hostFailure, { cause });
}

/**
 * Asks on a terminal before a command does what cannot be undone. Elsewhere, and with `--json`, the command needs
 * `--yes`. Call it last, after everything that may refuse the command.
 * @param deed - what it will do, such as `delete project acme/web`
 * @throws Problem unless the answer is yes
 */
export async function confirm(
  context: CommandContext,
  yes: boolean | undefined,
  deed: string,
  elsewhere: "needs --yes" | "goes on" = "needs --yes",
): Promise<void> {
  if (yes) return;
  const { stdin, stderr } = context.terminal;
  if (context.json || !stdin.isTTY || !stderr.isTTY) {
    if (elsewhere === "goes on") return;
    throw usageProblem(`This would ${deed}. Nobody can be asked here, so it needs --yes.`);
  }
  const typed = await readLine(context.terminal, `This will ${deed}. Go on? [y/N] `);
  if (!/^y(?:es)?$/i.test(typed.trim())) throw new Problem(exits.failed, "not_confirmed", "Nothing was changed.");
}

/**
 * Makes a change after {@link confirm}. It is rehearsed first, so that nobody is asked about a change that is refused.
 * @param change - gets what the rehearsal returned: the person has agreed to that
 * @param deed - says what the change will do, from the same; undefined if nobody needs to be asked
 */
export async function confirmChange<T>(
  context: CommandContext,
  admin: AdminContext,
  yes: boolean | undefined,
  change: (admin: AdminContext, agreed?: T) => Promise<T>,
  deed: (outcome: T) => string | undefined,
): Promise<T> {
  if (yes) return change(admin);
  const rehearsed = await rehearse(admin, change);
  const words = deed(rehearsed);
  if (words !== undefined) await confirm(context, yes, words);
  return change(admin, rehearsed);
}
