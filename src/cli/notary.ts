import { usageProblem } from "../core/problem.ts";
import { readConfig } from "../core/settings/settings.ts";
import { openInstallation } from "../installation/installation.ts";
import { openUpgraded } from "../serve/process/await-upgrade.ts";
import { boundedOutput, openLog } from "../serve/process/log.ts";
import { runNotary } from "../serve/process/notary-process.ts";
import { startWatchdog } from "../serve/process/watchdog.ts";
import { harden } from "./harden.ts";
import { type CommandContext, verb } from "./terminal/verb.ts";

/** `keyhole notary`: keeps the tree over the audit until it is told to stop. */
export function notaryCommand(context: CommandContext) {
  return verb(
    "notary",
    "Keep the tree over the audit, beside servers on PostgreSQL.",
    "DATABASE_URL=postgres://keyhole_notary@db/keyhole KEYHOLE_ROOT_KEY_FILE=/run/secrets/root.key keyhole notary",
  ).action(async () => {
    const config = readConfig(context.env);
    if (config.postgres === undefined) {
      throw usageProblem(
        "keyhole notary needs PostgreSQL (DATABASE_URL): an embedded database has its notary in serve.",
      );
    }
    const { stdout } = context.terminal;
    const pretty = stdout.isTTY;
    const { log, flush } = openLog(boundedOutput(stdout), { pretty, now: Date.now });
    startWatchdog(pretty);
    harden();
    const open = () => openInstallation(config, context.say, {});
    const installation = await openUpgraded(config, false, open, log, context.say);
    if (installation === undefined) return flush();
    await runNotary(config, installation, log, context.say);
    flush();
  });
}
