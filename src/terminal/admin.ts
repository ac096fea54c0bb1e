import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings.ts";
import { type AdminContext, adminContextOf, operator } from "../desk/context.ts";
import { whoIs } from "../desk/roster.ts";
import { actorOf } from "../installation/actor.ts";
import { hostFailure } from "../installation/failure.ts";
import { type Installation, openInstallation } from "../installation/installation.ts";
import type { CommandContext } from "./command.ts";
import { holdNotes } from "./failure.ts";

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
    const run = async () => {
      // An operator's command must go on: it may be the one that accepts the database.
      if (person !== undefined) await admin.checkpoint.requireServed(admin.database);
      return work(admin);
    };
    return run().finally(() => admin.close());
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
