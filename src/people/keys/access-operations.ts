import { dayMs, environments } from "../../core/names.ts";
import { whoStillReads } from "../../core/words/machines-only.ts";
import { counted, formatTime } from "../../core/words/text.ts";
import { parseDuration } from "../../core/words/times.ts";
import { listDueVariables } from "../../kinds/variables/write.ts";
import type { AdminContext } from "../desk/context.ts";
import { shortIds } from "../desk/ids.ts";
import { choice, input, project, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, list } from "../desk/outcome.ts";
import { listEndingRights, type PersonAccess, personsWithAccess } from "../persons/persons.ts";
import { endless, lastUsedLags } from "./credentials.ts";
import { type KeyAccess, type KeyRecord, listAccess, listExpiring, listKeys, shortKeyIds } from "./keys.ts";
import { namesForMachines, personGets } from "./readers.ts";

const listAll = operation({
  path: "access",
  about: `List the keys, trusts and persons that can do something in a project, or in one of its environments. ${lastUsedLags}`,
  examples: ["keyhole access acme/web production"],
  right: "see",
  inputs: { project, environment: choice("[env]", "only this environment", environments), wide },
  run: async (admin, { project, environment }) => {
    const where = environment === undefined ? project : `${project} in ${environment}`;
    const found: Access[] = [
      ...(await listAccess(admin, project, environment)).map(byKinds),
      ...(await personsWithAccess(admin, project, environment)).flatMap(byRights),
    ];
    const short = await shortKeyIds(admin);
    const columns: Columns<Access> = {
      ID: (one) => (one.type === "person" ? "-" : short(one.id)),
      NAME: ({ name }) => ({ name }),
      "MAY READ OR DO": (one) => {
        if (one.type === "person") return one.rights.join(",");
        return one.status === "canary" ? "nothing: a canary" : one.resources.join(",");
      },
      READS: (one) => (one.reads ? "yes" : "no"),
      ENVIRONMENTS: (one) => one.environments?.join(",") ?? "all",
      EXPIRES: (one) => ({ at: one.expiresAt }),
      "LAST USED": (one) => ({ at: one.type === "person" ? null : one.lastUsedAt }),
      FROM: (one) => {
        if (one.type === "person") return "-";
        return one.from?.join(",") ?? "everywhere";
      },
      TYPE: (one) => one.type,
    };
    const listed = list(found, columns, `No valid key or trust, and no person, reaches ${where}.`);
    const hidden = await namesForMachines(admin, project, environment);
    const sentence = `For machines only: ${hidden.join(", ")}. Of each of them: ${whoStillReads}.`;
    return { ...listed, sentence: hidden.length === 0 ? "" : sentence };
  },
});

type Access = ReturnType<typeof byKinds> | ReturnType<typeof byRights>[number];

function byKinds({ gets, ...key }: KeyAccess) {
  return { ...key, reads: Object.values(gets).includes("values") };
}

/** A person, once for the environments in which they have the same rights until the same moment. */
function byRights({ rightsIn, endsIn, ...person }: PersonAccess) {
  const found = environments.flatMap((environment) => {
    const ends = Map.groupBy(rightsIn[environment] ?? [], (right) => endsIn[environment]?.[right] ?? null);
    return [...ends].map(([expiresAt, rights]) => ({ environment, rights, expiresAt }));
  });
  return [...Map.groupBy(found, ({ rights, expiresAt }) => JSON.stringify([rights, expiresAt]))].map(([, alike]) => {
    const { rights, expiresAt } = alike[0] as (typeof found)[number];
    const reads = personGets(rights) === "values";
    const among = alike.map(({ environment }) => environment);
    return { type: "person" as const, ...person, rights, environments: among, expiresAt, reads };
  });
}

const listEnds = operation({
  path: "expiring",
  about: `List the keys, trusts and persons' rights that end soon, and the variables to rotate soon or overdue: the next one first. ${lastUsedLags}`,
  examples: ["keyhole expiring --within 14d"],
  right: ["see", "keys"],
  inputs: { withinMs: input("--within <duration>", "how soon (default: 30d)", parseDuration), wide },
  run: async (admin, { withinMs = monthMs }) => {
    const which = admin.rights === "operator" ? "Nothing" : "Nothing that you may see";
    const none = `${which} expires or is to be rotated within ${counted(Math.ceil(withinMs / dayMs), "day")}.`;
    const keys = await listKeys(admin);
    const found = await findExpiring(admin, keys, withinMs);
    const sentences = (["key", "trust"] as const).map((type) => endless(keys, type)).filter(Boolean);
    const short = shortIds(keys);
    const columns: Columns<Expiring> = {
      WHAT: (one) => ("id" in one ? `${one.kind} ${short(one.id)}` : one.kind),
      NAME: ({ name }) => ({ name }),
      ENDS: (one) =>
        one.kind === "variable"
          ? `${one.rotateBy}${one.status === "overdue" ? " overdue" : ""}`
          : formatTime(one.expiresAt),
      PROJECTS: (one) => (one.kind === "variable" ? one.project : (one.projects?.join(",") ?? "all")),
      ENVIRONMENTS: (one) => (one.kind === "variable" ? one.environment : (one.environments?.join(",") ?? "all")),
      ORG: (one) => one.organization ?? "-",
      RESOURCES: (one) => {
        if (one.kind === "variable") return "-";
        return (one.kind === "person" ? one.rights : one.resources).join(",");
      },
      "LAST USED": (one) => ({ at: "lastUsedAt" in one ? one.lastUsedAt : null }),
    };
    return { ...list(found, columns, none), sentence: sentences.join("\n") };
  },
});

async function findExpiring(admin: AdminContext, all: KeyRecord[], withinMs: number) {
  const keys = (await listExpiring(admin, withinMs, all)).map((one) => ({ kind: one.type, ...one }));
  const variables = (await listDueVariables(admin, withinMs)).map((one) => ({ kind: "variable" as const, ...one }));
  const rights = (await listEndingRights(admin, withinMs)).map((one) => ({ kind: "person" as const, ...one }));
  const found = [...keys, ...variables, ...rights];
  const endOf = (one: (typeof found)[number]) => (one.kind === "variable" ? one.dueAt : (one.expiresAt ?? 0));
  return found.sort((a, b) => endOf(a) - endOf(b));
}

type Expiring = Awaited<ReturnType<typeof findExpiring>>[number];

const monthMs = 30 * dayMs;

export const access: Operations = { rows: [listAll] };
export const expiring: Operations = { rows: [listEnds] };
