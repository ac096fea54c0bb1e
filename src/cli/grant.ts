import { surfaces } from "../access/grant.ts";
import { environments } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { excerpt } from "../core/visible.ts";
import { resources, resourcesByDefault } from "../kinds/kind.ts";
import {
  type CredentialType,
  isUnused,
  type KeyRecord,
  listKeys,
  type NewKey,
  neverEnds,
  revokeKey,
  shortKeyIds,
  showKey,
} from "../people/keys.ts";
import { listed } from "../people/rotation.ts";
import { confirm, withAdmin } from "../terminal/admin.ts";
import { answer, type Columns } from "../terminal/answer.ts";
import { type CommandContext, verb } from "../terminal/command.ts";
import { choiceOption, parseDuration, parseList } from "../terminal/options.ts";
import { listRecords, type Records, showRecord } from "../terminal/records.ts";
import { formatTime } from "../terminal/terminal.ts";
import { idVerb, listVerb, yesOption } from "../terminal/verbs.ts";

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
    .addOption(choiceOption("--resource <list>", `what it may read (default: ${resourcesByDefault})`, resources))
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

/** A list, or null for all. One of the two options must be given, so that a key reaches nothing by default. */
export function reachOf(option: "project" | "env", list: string[] | undefined, all: true | undefined): string[] | null {
  const allOption = option === "project" ? "--all-projects" : "--all-environments";
  if ((list === undefined) !== (all === undefined)) return list ?? null;
  throw usageProblem(`Say what it reaches: either --${option} with a list, or ${allOption}.`);
}

/** The commands `list`, `show` and `revoke`, of keys or of trusts. @param more - columns that only this type has */
export function credentialVerbs(
  context: CommandContext,
  type: CredentialType,
  words: { readonly list: string; readonly none: string; readonly show: string; readonly revoke: string },
  more: Columns<KeyRecord> = {},
) {
  const { ORG, RESOURCES, SURFACES, CREATED, REVOKED, ...first } = grantColumns;
  const records: Records<KeyRecord> = {
    list: (admin, organization) => listKeys(admin, organization, type),
    show: (admin, id) => showKey(admin, id, type),
    shortIds: shortKeyIds,
    columns: { ...grantColumns, ...more },
    listed: { ...first, ...more, ORG, RESOURCES, SURFACES, CREATED, REVOKED },
  };
  const list = listVerb(type, words.list, `keyhole ${type} list --org acme`, `keyhole ${type} list --unused 90d`)
    .option("--unused <duration>", `only active ${type}s that were not used for this long`, parseDuration)
    .option("--never-expires", `only active ${type}s that never expire`)
    .action(({ unused, neverExpires, ...options }) => {
      const isWanted = (one: KeyRecord) =>
        (unused === undefined || isUnused(one, Date.now() - unused)) && (!neverExpires || neverEnds(one));
      const unneeded = neverExpires
        ? `Every active ${type} expires`
        : `No active ${type} has been unused for this long`;
      const none = unused === undefined && !neverExpires ? words.none : `${unneeded}.`;
      return listRecords(context, records, options, none, isWanted);
    });
  const show = idVerb(type, "show", words.show, `keyhole ${type} show 0199a3c4`).action(async (id) => {
    await showRecord(context, records, id);
  });
  const revoke = idVerb(type, "revoke", words.revoke, `keyhole ${type} revoke 0199a3c4`)
    .option(...yesOption)
    .action(async (asked, { yes }) => {
      const record = await withAdmin(context, async (admin) => {
        const found = await records.show(admin, asked);
        // A revocation must never hang or fail because nobody answers.
        await confirm(context, yes, `revoke ${nameOf(found)} of ${found.organization}, for good`, "goes on");
        return revokeKey(admin, found.id, type);
      });
      await answer(context, record, `Revoked ${nameOf(record)} of ${record.organization}.`);
    });
  return [list, show, revoke] as const;
}

/** What a new key or trust may do, in three lines. */
export function summary(record: KeyRecord): string {
  const expiry = record.expiresAt === null ? "never expires" : `expires ${formatTime(record.expiresAt)}`;
  return [
    `Created ${nameOf(record)} for ${record.organization}; it ${expiry}.`,
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

/** Everything that is shown of a key or a trust. */
const grantColumns = {
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
