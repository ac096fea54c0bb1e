import { noRange, parseRange } from "../../core/addresses.ts";
import { environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { excerpt } from "../../core/visible.ts";
import { parseList } from "../../core/words/lists.ts";
import { Unfit, wholeNumber } from "../../core/words/parse.ts";
import { counted, formatTime, listed } from "../../core/words/text.ts";
import { parseDuration } from "../../core/words/times.ts";
import { resources, resourcesByDefault } from "../../kinds/people.ts";
import { rangesMax, rateMax, surfaces } from "../../serve/access/grant.ts";
import { shortIds } from "../desk/ids.ts";
import { choices, completed, flag, type Given, id, input, ofOrganization, wide } from "../desk/inputs.ts";
import { operation } from "../desk/operation.ts";
import { type Columns, done, list, noneYet, one, pick, textOf } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import {
  type CredentialType,
  isUnused,
  type KeyRecord,
  listKeys,
  type NewKey,
  neverEnds,
  revokeKey,
  showKey,
} from "./keys.ts";

/* What keys and trusts share: the inputs that say what one may do, and how a record is shown. */

/** What a new key or trust may do. */
export const grantInputs = {
  organization: completed(input("--org <org>", "the organization; optional if only one exists"), "organizations"),
  surfaces: choices(
    "--surface <list>",
    "what it may be used for (default: rest_api, for run, pull and the CI action)",
    surfaces,
  ),
  resources: choices("--resource <list>", `what it may read (default: ${resourcesByDefault})`, resources),
  projects: completed(
    input("--project <list>", "slugs of the projects it reaches; this or --all-projects is required", parseList),
    "projects",
  ),
  allProjects: flag("--all-projects", "it reaches every project, those created later too"),
  environments: choices(
    "--env <list>",
    "the environments it reaches; this or --all-environments is required",
    environments,
  ),
  allEnvironments: flag("--all-environments", "it reaches every environment"),
  expiresInMs: input("--expires-in <duration>", "30s, 15m, 24h, 90d (default: never)", parseDuration),
  rate: input(
    "--rate <n>",
    "how many times as many requests it may make, up to 100 (default: 1)",
    wholeNumber(1, rateMax),
  ),
  from: input(
    "--from <list>",
    `the addresses and ranges from which it may be used, up to ${rangesMax}; unix for the Unix socket (default: all)`,
    parseFrom,
  ),
};

function parseFrom(text: string): readonly string[] {
  const ranges = parseList(text).map((one) => {
    const range = parseRange(one);
    if (range !== undefined) return typeof range === "string" ? range : range.text;
    throw new Unfit(
      `takes addresses, ranges or unix, with commas, such as 10.1.0.0/16,2001:db8::1: ${JSON.stringify(one)} ${noRange}.`,
    );
  });
  if (ranges.length <= rangesMax) return [...new Set(ranges)];
  throw new Unfit(`takes at most ${rangesMax} addresses and ranges.`);
}

/** What somebody asks for. @throws Problem if they do not say what it reaches */
export function grantOf(given: Given<typeof grantInputs>): NewKey {
  const { organization, surfaces, resources, expiresInMs, rate, from } = given;
  return { organization, surfaces, resources, ...reachOf(given), expiresInMs, rate, from };
}

/** Two lists, or null for all. One of two options must be given, so that nothing is reached by default. */
export function reachOf<P, E>(given: {
  readonly projects: P[] | undefined;
  readonly allProjects: true | undefined;
  readonly environments: E[] | undefined;
  readonly allEnvironments: true | undefined;
}): { readonly projects: P[] | null; readonly environments: E[] | null } {
  const { projects, allProjects, environments, allEnvironments } = given;
  const requireOne = (option: string, listed: unknown, all: true | undefined) => {
    if ((listed === undefined) !== (all === undefined)) return;
    const name = option === "project" ? "--all-projects" : "--all-environments";
    throw usageProblem(`Say what it reaches: either --${option} with a list, or ${name}.`);
  };
  requireOne("project", projects, allProjects);
  requireOne("env", environments, allEnvironments);
  return { projects: projects ?? null, environments: environments ?? null };
}

/** The operations `list`, `show` and `revoke`, of keys or of trusts. @param more - columns that only this type has */
export function credentialOperations(
  type: CredentialType,
  words: {
    readonly list: string /** How to make the first one. */;
    readonly none: string;
    readonly show: string;
    readonly revoke: string;
  },
  more: Columns<KeyRecord> = {},
) {
  const first = pick(grantColumns, "ID", "NAME", "STATUS", "PROJECTS", "ENVIRONMENTS", "EXPIRES", "LAST USED");
  const listColumns = { ...first, ...more, ...pick(grantColumns, "ORG", "RESOURCES"), ...grantColumns };

  const listAll = operation({
    path: `${type} list`,
    about: `${words.list} ${lastUsedLags}`,
    examples: [`keyhole ${type} list --org acme`, `keyhole ${type} list --unused 90d`],
    right: ["see", "keys"],
    inputs: {
      organization: ofOrganization(`${type}s`),
      wide,
      unusedMs: input("--unused <duration>", `only active ${type}s that were not used for this long`, parseDuration),
      neverExpires: flag("--never-expires", `only active ${type}s that never expire`),
    },
    run: async (admin, { organization, unusedMs, neverExpires }) => {
      const isWanted = (key: KeyRecord) =>
        (unusedMs === undefined || isUnused(key, Date.now() - unusedMs)) && (!neverExpires || neverEnds(key));
      const all = await listKeys(admin, organization);
      const found = all.filter((key) => key.type === type && isWanted(key));
      const of = organization === undefined ? "" : ` of ${organization}`;
      const which = `active ${type}${of}${admin.rights === "operator" ? "" : " that you may see"}`;
      const ends = neverExpires ? `Every ${which} expires.` : noneYet(admin, `${type}s${of}`, words.none);
      const used = `No ${which}${neverExpires ? " without an end" : ""} has been unused for this long.`;
      const short = shortIds(organization === undefined ? all : await listKeys(admin));
      const columns = { ...listColumns, ID: (key: KeyRecord) => short(key.id) };
      const shown = list(found, columns, unusedMs === undefined ? ends : used);
      return neverExpires ? { ...shown, sentence: endless(all, type === "key" ? "trust" : "key") } : shown;
    },
  });

  const show = operation({
    path: `${type} show`,
    about: `${words.show} ${lastUsedLags}`,
    examples: [`keyhole ${type} show 0199a3c4`],
    right: ["see", "keys"],
    inputs: { id: id(type) },
    run: async (admin, { id }) => one(await showKey(admin, id, type), { ...grantColumns, ...more }),
  });

  const revoke = operation({
    path: `${type} revoke`,
    about: words.revoke,
    examples: [`keyhole ${type} revoke 0199a3c4`],
    right: rightTo(`${type}.revoke`),
    asks: "if it can",
    inputs: { id: id(type) },
    plan: async (admin, { id: asked }) => {
      const found = await showKey(admin, asked, type);
      const { id, name, organization } = found;
      return {
        deed: `revoke ${nameOf(found)} of ${organization}, for good`,
        seen: { [type]: id },
        document: { id, name, organization },
        apply: async () => done(await revokeKey(admin, id, type), `Revoked ${nameOf(found)} of ${organization}.`),
      };
    },
  });

  return { listAll, show, revoke } as const;
}

/** Says how many keys or trusts never expire, and how to list them; empty if all do. */
export function endless(keys: readonly KeyRecord[], type: CredentialType): string {
  const count = keys.filter((one) => one.type === type && neverEnds(one)).length;
  const never = count === 1 ? "never expires" : "never expire";
  return count === 0 ? "" : `${counted(count, type)} ${never}: keyhole ${type} list --never-expires`;
}

/** What a new key or trust may do, in three lines. */
export function summary(record: KeyRecord): string {
  const expiry = record.expiresAt === null ? "never expires" : `expires ${formatTime(record.expiresAt)}`;
  const what = record.status === "canary" ? "is a canary: every use of it is on record until it is revoked" : expiry;
  return [
    `Created ${nameOf(record)} for ${record.organization}; it ${what}.`,
    grantLine(record),
    `Projects: ${textOf(reach(record.projects))}. Environments: ${textOf(reach(record.environments))}.${record.rate === 1 ? "" : ` Rate: ${record.rate} times.`}`,
    ...(record.from === null ? [] : [`From: ${record.from}.`]),
  ].join("\n");
}

/** What a key or a trust is for. */
export function grantLine({ surfaces, resources }: Pick<KeyRecord, "surfaces" | "resources">): string {
  return `Surfaces: ${surfaces.join(",")}. Resources: ${resources.join(",")}.`;
}

/** The deed of something that cuts off keys and trusts: it names the active ones. `keys` are their ids. */
export function cuttingOff(deed: string, found: readonly KeyRecord[]) {
  const active = found.filter(({ status }) => status === "active");
  const words = active.length === 0 ? deed : `${deed}, and cut off ${listed(active.map(nameOf))}`;
  return { deed: words, keys: active.map(({ id }) => id).join(), active };
}

/** A key or a trust in messages, such as `key 0199a3c4-… (ci)`. */
export function nameOf({ type, id, name }: KeyRecord): string {
  return `${type} ${id} (${excerpt(name)})`;
}

/** Projects or environments; null means all. */
function reach(scope: readonly string[] | null) {
  return { words: scope?.length === 0 ? ["none"] : scope };
}

/** A server writes the uses of a key at most once a minute (`serve/access/key-uses.ts`). */
export const lastUsedLags = "LAST USED may be up to a minute behind.";

/** Everything that is shown of a key or a trust. */
export const grantColumns: Columns<KeyRecord> = {
  ID: (one) => one.id,
  NAME: (one) => ({ name: one.name }),
  ORG: (one) => one.organization,
  STATUS: (one) => one.status,
  SURFACES: (one) => ({ words: one.surfaces }),
  RESOURCES: (one) => ({ words: one.resources }),
  PROJECTS: (one) => reach(one.projects),
  ENVIRONMENTS: (one) => reach(one.environments),
  FROM: ({ from }) => (from === null ? "everywhere" : { words: from }),
  RATE: (one) => one.rate,
  CREATED: (one) => ({ at: one.createdAt }),
  EXPIRES: (one) => ({ at: one.expiresAt }),
  REVOKED: (one) => ({ at: one.revokedAt }),
  "LAST USED": (one) => ({ at: one.lastUsedAt }),
};

/** What matters of a key that has leaked. */
export const foundColumns = (short: (id: string) => string): Columns<KeyRecord> => ({
  ID: ({ id }) => short(id),
  ...pick(grantColumns, "NAME", "STATUS", "PROJECTS", "ENVIRONMENTS", "LAST USED", "ORG", "RESOURCES", "EXPIRES"),
});
