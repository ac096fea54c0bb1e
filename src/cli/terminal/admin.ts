import { HostRefused } from "../../core/refused.ts";
import { readConfig } from "../../core/settings/settings.ts";
import { type Consent, openInstallation } from "../../installation/installation.ts";
import { actorOf } from "../../people/desk/actor.ts";
import { type AdminContext, adminContextOf, operator } from "../../people/desk/context.ts";
import { whoIs } from "../../people/desk/roster.ts";
import { holdNotes } from "./failure.ts";
import type { CommandContext } from "./verb.ts";

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
      ? openInstallation(readConfig(context.env), say, consent)
      : Promise.try(() => openInstallation(readConfig(context.env), () => {}, {})).catch(withhold));
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

/** Whatever it is, such as a file that cannot be written, it is about this host, and nothing that a person asked for. */
function withhold(cause: unknown): never {
  throw new HostRefused("unavailable", "The installation could not be opened.", { cause });
}
