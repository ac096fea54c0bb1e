import { Argument } from "@commander-js/extra-typings";
import { type KeyRecord, listAccess, listExpiring } from "../admin/keys.ts";
import { environments } from "../names.ts";
import { answerList, type Columns, counted, type Surroundings, verb, withAdmin } from "./command.ts";
import { parseDuration } from "./options.ts";
import { projectVerb } from "./project.ts";
import { formatTime } from "./terminal.ts";

/** `keyhole access ORG/PROJECT [ENV]` */
export function accessCommand(here: Surroundings) {
  return projectVerb(
    "access",
    "List the keys that can read something of a project, or of one of its environments.",
    "keyhole access acme/web production",
  )
    .addArgument(new Argument("[env]", "only this environment").choices(environments))
    .action(async (project, environment) => {
      const keys = await withAdmin(here, (admin) => listAccess(admin, project, environment));
      const place = environment === undefined ? project : `${project} in ${environment}`;
      await answerList(here, keys, `No valid key reaches ${place}.`, columns);
    });
}

/** `keyhole expiring` */
export function expiringCommand(here: Surroundings) {
  return verb("expiring", "List the keys that expire soon, the next one first.", "keyhole expiring --within 14d")
    .option("--within <duration>", "how soon (default: 30d)", parseDuration)
    .action(async ({ within = monthMs }) => {
      const keys = await withAdmin(here, (admin) => listExpiring(admin, within));
      await answerList(here, keys, `No key expires within ${counted(Math.ceil(within / dayMs), "day")}.`, {
        ORG: (one) => one.organization,
        ...columns,
      });
    });
}

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;

const columns: Columns<KeyRecord> = {
  ID: (one) => one.id,
  NAME: (one) => one.name,
  RESOURCES: (one) => one.resources.join(","),
  ENVIRONMENTS: (one) => one.environments?.join(",") ?? "all",
  EXPIRES: (one) => formatTime(one.expiresAt),
  "LAST USED": (one) => formatTime(one.lastUsedAt),
};
