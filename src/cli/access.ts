import { Argument } from "@commander-js/extra-typings";
import { type Environment, environments } from "../core/names.ts";
import { counted, formatTime } from "../core/text.ts";
import { excerpt } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import type { Columns } from "../desk/outcome.ts";
import { type DueVariable, listDueVariables } from "../kinds/variables/write.ts";
import {
  type CredentialType,
  type KeyAccess,
  type KeyRecord,
  listAccess,
  listExpiring,
  listKeys,
  neverEnds,
  shortKeyIds,
} from "../people/keys.ts";
import { type PersonAccess, personsWithAccess } from "../people/persons.ts";
import { personGets } from "../people/readers.ts";

import { type CommandContext, verb } from "../terminal/command.ts";
import { parseDuration } from "../terminal/options.ts";
import { listFound } from "../terminal/records.ts";

import { projectVerb, wideOption } from "../terminal/verbs.ts";

/** `keyhole access ORG/PROJECT [ENV]` */
export function accessCommand(context: CommandContext) {
  return projectVerb(
    "access",
    "List the keys, trusts and persons that can do something in a project, or in one of its environments.",
    "keyhole access acme/web production",
  )
    .addArgument(new Argument("[env]", "only this environment").choices(environments))
    .option(...wideOption)
    .action((project, environment, { wide }) => {
      const where = environment === undefined ? project : `${project} in ${environment}`;
      const none = `No valid key or trust, and no person, reaches ${where}.`;
      const find = async (admin: AdminContext): Promise<Access[]> => [
        ...(await listAccess(admin, project, environment)).map(byKinds),
        ...(await personsWithAccess(admin, project, environment)).flatMap(byRights),
      ];
      return listFound(context, wide, find, none, async (admin) => accessColumns(await shortKeyIds(admin)));
    });
}

type Access = ReturnType<typeof byKinds> | ReturnType<typeof byRights>[number];

function byKinds({ gets, ...key }: KeyAccess) {
  return { ...key, reads: Object.values(gets).includes("values") };
}

/** A person, once for the environments in which they have the same rights. */
function byRights({ rightsIn, ...person }: PersonAccess) {
  const places = environments.filter((environment) => rightsIn[environment]);
  return [...Map.groupBy(places, (environment) => rightsIn[environment]?.join(","))].map(([, alike]) => {
    const rights = rightsIn[alike[0] as Environment] ?? [];
    const reads = personGets(rights) === "values";
    return { type: "person" as const, ...person, rights, environments: alike, reads };
  });
}

function accessColumns(short: (id: string) => string): Columns<Access> {
  return {
    ID: (one) => (one.type === "person" ? "-" : short(one.id)),
    NAME: (one) => excerpt(one.name),
    "MAY READ OR DO": (one) => (one.type === "person" ? one.rights : one.resources).join(","),
    READS: (one) => (one.reads ? "yes" : "no"),
    ENVIRONMENTS: (one) => one.environments?.join(",") ?? "all",
    EXPIRES: (one) => (one.type === "person" ? "-" : formatTime(one.expiresAt)),
    "LAST USED": (one) => (one.type === "person" ? "-" : formatTime(one.lastUsedAt)),
    TYPE: (one) => one.type,
  };
}

export function expiringCommand(context: CommandContext) {
  return verb(
    "expiring",
    "List the keys and trusts that expire soon, and the variables to rotate soon or overdue: the next one first.",
    "keyhole expiring --within 14d",
  )
    .option("--within <duration>", "how soon (default: 30d)", parseDuration)
    .option(...wideOption)
    .action(async ({ within = monthMs, wide }) => {
      let endless: KeyRecord[] = [];
      const find = async (admin: AdminContext) => {
        endless = (await listKeys(admin)).filter(neverEnds);
        return findExpiring(admin, within);
      };
      const none = `Nothing expires or is to be rotated within ${counted(Math.ceil(within / dayMs), "day")}.`;
      await listFound(context, wide, find, none, async (admin) => expiringColumns(await shortKeyIds(admin)));
      for (const type of ["key", "trust"] as const) {
        const count = endless.filter((one) => one.type === type).length;
        const never = count === 1 ? "never expires" : "never expire";
        if (count > 0) context.say(`${counted(count, type)} ${never}: keyhole ${type} list --never-expires`);
      }
    });
}

async function findExpiring(admin: AdminContext, withinMs: number): Promise<Expiring[]> {
  const keys = (await listExpiring(admin, withinMs)).map((one) => ({ kind: one.type, ...one }));
  const variables = (await listDueVariables(admin, withinMs)).map((one) => ({ kind: "variable" as const, ...one }));
  return [...keys, ...variables].sort((a, b) => endOf(a) - endOf(b));
}

type Expiring = ({ readonly kind: CredentialType } & KeyRecord) | ({ readonly kind: "variable" } & DueVariable);

function endOf(one: Expiring): number {
  return one.kind === "variable" ? one.dueAt : (one.expiresAt ?? 0);
}

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
