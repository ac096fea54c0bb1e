import { Argument } from "@commander-js/extra-typings";
import { environments } from "../core/names.ts";
import { type DueVariable, listDueVariables } from "../kinds/variables/write.ts";
import { type CredentialType, type KeyRecord, listAccess, listExpiring, shortKeyIds } from "../people/keys.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answerList, type Columns, counted, wideOption } from "../terminal/answer.ts";
import { type Surroundings, verb } from "../terminal/command.ts";
import { parseDuration } from "../terminal/options.ts";
import { projectVerb } from "../terminal/project-verbs.ts";
import { excerpt, formatTime } from "../terminal/terminal.ts";

/** `keyhole access ORG/PROJECT [ENV]` */
export function accessCommand(here: Surroundings) {
  return projectVerb(
    "access",
    "List the keys and trusts that can read something of a project, or of one of its environments.",
    "keyhole access acme/web production",
  )
    .addArgument(new Argument("[env]", "only this environment").choices(environments))
    .option(...wideOption)
    .action(async (project, environment, { wide }) => {
      const [keys, short] = await withAdmin(here, async (admin) => [
        await listAccess(admin, project, environment),
        await shortKeyIds(admin),
      ]);
      const place = environment === undefined ? project : `${project} in ${environment}`;
      await answerList(here, keys, `No valid key or trust reaches ${place}.`, accessColumns(short), wide);
    });
}

function accessColumns(short: (id: string) => string): Columns<KeyRecord> {
  return {
    ID: (one) => short(one.id),
    NAME: (one) => excerpt(one.name),
    RESOURCES: (one) => one.resources.join(","),
    ENVIRONMENTS: (one) => one.environments?.join(",") ?? "all",
    EXPIRES: (one) => formatTime(one.expiresAt),
    "LAST USED": (one) => formatTime(one.lastUsedAt),
    TYPE: (one) => one.type,
  };
}

/** `keyhole expiring` */
export function expiringCommand(here: Surroundings) {
  return verb(
    "expiring",
    "List the keys and trusts that expire soon, and the variables to rotate by then or overdue: the next one first.",
    "keyhole expiring --within 14d",
  )
    .option("--within <duration>", "how soon (default: 30d)", parseDuration)
    .option(...wideOption)
    .action(async ({ within = monthMs, wide }) => {
      const [keys, variables, short] = await withAdmin(here, async (admin) => [
        await listExpiring(admin, within),
        await listDueVariables(admin, within),
        await shortKeyIds(admin),
      ]);
      const found: Expiring[] = [
        ...keys.map((one) => ({ kind: one.type, ...one })),
        ...variables.map((one) => ({ kind: "variable" as const, ...one })),
      ];
      found.sort((a, b) => endOf(a) - endOf(b));
      const noneMessage = `Nothing expires or is to be rotated within ${counted(Math.ceil(within / dayMs), "day")}.`;
      await answerList(here, found, noneMessage, expiringColumns(short), wide);
    });
}

type Expiring = ({ readonly kind: CredentialType } & KeyRecord) | ({ readonly kind: "variable" } & DueVariable);

function endOf(one: Expiring): number {
  return one.kind === "variable" ? one.dueAt : (one.expiresAt ?? 0);
}

/** The most important ones first. */
function expiringColumns(short: (id: string) => string): Columns<Expiring> {
  return {
    WHAT: (one) => (one.kind === "variable" ? "variable" : `${one.kind} ${short(one.id)}`),
    NAME: (one) => excerpt(one.name),
    ENDS: (one) =>
      one.kind === "variable"
        ? `${one.rotateBy}${one.status === "overdue" ? " overdue" : ""}`
        : formatTime(one.expiresAt),
    PROJECTS: (one) => (one.kind === "variable" ? one.project : (one.projects?.join(",") ?? "all")),
    ENVIRONMENTS: (one) => (one.kind === "variable" ? one.environment : (one.environments?.join(",") ?? "all")),
    ORG: (one) => one.organization,
    RESOURCES: (one) => (one.kind === "variable" ? "-" : one.resources.join(",")),
    "LAST USED": (one) => formatTime(one.kind === "variable" ? null : one.lastUsedAt),
  };
}

const dayMs = 86_400_000;
const monthMs = 30 * dayMs;
