import { resources, surfaces } from "../access/grant.ts";
import { environments } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import type { KeyRecord, NewKey } from "../people/keys.ts";
import { listed } from "../people/rotation.ts";
import { verb } from "../terminal/command.ts";
import { choiceOption, parseDuration, parseList } from "../terminal/options.ts";
import { excerpt, formatTime } from "../terminal/terminal.ts";

/* What the commands of keys and of trusts share: the options that say what one may do, and how a record is shown. */

/** A command that creates a key or a trust, with the options they both have. */
export function grantVerb(...description: Parameters<typeof verb>) {
  return verb(...description)
    .option("--org <org>", "the organization; optional if only one exists")
    .addOption(
      choiceOption(
        "--surface <list>",
        "what it may be used for (default: rest_api, for run, pull and the CI action)",
        surfaces,
      ),
    )
    .addOption(choiceOption("--resource <list>", "what it may read (default: projects,variables)", resources))
    .option("--project <list>", "slugs of the projects it reaches; this or --all-projects is required", parseList)
    .option("--all-projects", "it reaches every project, those created later too")
    .addOption(
      choiceOption("--env <list>", "the environments it reaches; this or --all-environments is required", environments),
    )
    .option("--all-environments", "it reaches every environment")
    .option("--expires-in <duration>", "30s, 15m, 24h, 90d (default: never)", parseDuration);
}

/** What the options of a {@link grantVerb} ask for. @throws Problem if they do not say what it reaches */
export function grantOf(options: ReturnType<ReturnType<typeof grantVerb>["opts"]>): NewKey {
  return {
    organization: options.org,
    surfaces: options.surface,
    resources: options.resource,
    projects: reachOf("project", options.project, options.allProjects),
    environments: reachOf("env", options.env, options.allEnvironments),
    expiresInMs: options.expiresIn,
  };
}

/** What it reaches: a list, or null for all. One of the two must be given, so that nothing is reached by default. */
function reachOf<T extends string>(
  option: "project" | "env",
  list: T[] | undefined,
  all: true | undefined,
): T[] | null {
  const allOption = option === "project" ? "--all-projects" : "--all-environments";
  if ((list === undefined) !== (all === undefined)) return list ?? null;
  throw usageProblem(`Say what it reaches: either --${option} with a list, or ${allOption}.`);
}

/** What a new key or trust may do, in three lines. */
export function summary(record: KeyRecord): string {
  const expiry = record.expiresAt === null ? "never expires" : `expires ${formatTime(record.expiresAt)}`;
  return [
    `Created ${record.type} ${record.id} (${excerpt(record.name)}) for ${record.organization}; it ${expiry}.`,
    `Surfaces: ${record.surfaces.join(",")}. Resources: ${record.resources.join(",")}.`,
    `Projects: ${reach(record.projects)}. Environments: ${reach(record.environments)}.`,
  ].join("\n");
}

/** The end of a question: names the active keys and trusts that a change cuts off. Empty if there are none. */
export function cuttingOff(records: readonly KeyRecord[]): string {
  const active = records.filter(({ status }) => status === "active");
  return active.length === 0 ? "" : `, and cut off ${listed(active.map(nameOf))}`;
}

/** A key or a trust in messages, such as `key 0199a3c4-… (ci)`. */
export function nameOf({ type, id, name }: KeyRecord): string {
  return `${type} ${id} (${excerpt(name)})`;
}

/** Projects or environments as text; null means all. */
function reach(scope: readonly string[] | null): string {
  return scope === null ? "all" : scope.join(",") || "none";
}

/** Everything that is shown of a key or a trust, by the header of its column. */
export const grantColumns = {
  ID: (one: KeyRecord) => one.id,
  NAME: (one: KeyRecord) => excerpt(one.name),
  ORG: (one: KeyRecord) => one.organization,
  STATUS: (one: KeyRecord) => one.status,
  SURFACES: (one: KeyRecord) => one.surfaces.join(","),
  RESOURCES: (one: KeyRecord) => one.resources.join(","),
  PROJECTS: (one: KeyRecord) => reach(one.projects),
  ENVIRONMENTS: (one: KeyRecord) => reach(one.environments),
  CREATED: (one: KeyRecord) => formatTime(one.createdAt),
  EXPIRES: (one: KeyRecord) => formatTime(one.expiresAt),
  REVOKED: (one: KeyRecord) => formatTime(one.revokedAt),
  "LAST USED": (one: KeyRecord) => formatTime(one.lastUsedAt),
};
