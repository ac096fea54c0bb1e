import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings.ts";
import { type AdminContext, adminContextOf, operator } from "../desk/context.ts";
import { whoIs } from "../desk/roster.ts";
import { actorOf } from "../installation/actor.ts";
import { hostFailure } from "../installation/failure.ts";
import { type Consent, type Installation, openInstallation } from "../installation/installation.ts";
import type { CommandContext } from "./command.ts";
import { holdNotes } from "./failure.ts";

/**
 * Opens the installation that the environment names, runs `work` with it, and closes it.
 * @param consent - what opening it may change
 */
export async function withAdmin<T>(
  context: CommandContext,
  work: (admin: AdminContext) => Promise<T>,
  consent: Consent = {},
): Promise<T> {
  return holdNotes(context, async (say) => {
    const { person } = context;
    const installation = await (person === undefined
      ? open(context, say, consent)
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

async function open(
  { env }: CommandContext,
  say: (line: string) => void,
  consent: Consent = {},
): Promise<Installation> {
  return openInstallation(readConfig(env), say, consent);
}

/**
 * Tells a person over SSH that it failed, but not why: the reason names folders, hosts and settings of this machine.
 */
function withhold(cause: unknown): never {
  throw new Problem(exits.unavailable, "unavailable", hostFailure, { cause });
}
