import { resources, surfaces } from "../access/grant.ts";
import type { AdminContext } from "../admin/context.ts";
import { createKey, type KeyRecord, listKeys, revokeKey, rotateKey, shortKeyIds, showKey } from "../admin/keys.ts";
import { environments } from "../names.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import { answer, answerList, noun, type Surroundings, toProblem, verb, wideOption, withAdmin } from "./command.ts";
import { choiceOption, parseDuration, parseList } from "./options.ts";
import { formatTime, hasColour, jsonLine, OutputClosed, table, write } from "./terminal.ts";

/** `keyhole key …` */
export function keyCommand(here: Surroundings) {
  const create = verb(
    "create",
    "Create an API key. It is printed on stdout once and cannot be shown again.",
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource variables,files --all-projects --env staging > key.txt",
  )
    .option("--org <org>", "the organization; optional if only one exists")
    .option("--name <name>", "what it is for")
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
    .option("--expires-in <duration>", "30s, 15m, 24h, 90d (default: never)", parseDuration)
    .action(async (options) => {
      const projects = reachOf("project", options.project, options.allProjects);
      const environments = reachOf("env", options.env, options.allEnvironments);
      await withAdmin(here, async (admin) => {
        const { id, key, ...rest } = await createKey(admin, {
          organization: options.org,
          name: options.name,
          surfaces: options.surface,
          resources: options.resource,
          projects,
          environments,
          expiresInMs: options.expiresIn,
        });
        await handOver(here, admin, { id, key, ...rest });
        if (!here.json) here.say(`${summary({ id, ...rest })}\nThe key is shown only once: store it now.`);
      });
    });

  const list = verb("list", "List the API keys. The keys themselves are stored nowhere.", "keyhole key list")
    .option("--org <org>", "only keys of this organization")
    .option(...wideOption)
    .action(async ({ org, wide }) => {
      const [keys, short] = await withAdmin(here, async (admin) => [
        await listKeys(admin, org),
        await shortKeyIds(admin),
      ]);
      const { ORG, SURFACES, RESOURCES, CREATED, REVOKED, ...first } = details;
      // The most important ones first.
      const columns = { ...first, ID: ({ id }: KeyRecord) => short(id), ORG, RESOURCES, SURFACES, CREATED, REVOKED };
      await answerList(here, keys, "There are no keys yet: run keyhole key create.", columns, wide);
    });

  const show = verb("show", "Show what an API key may do and when it was used.", "keyhole key show 0199a3c4")
    .argument("<id>", "the key's id, or its first 8 or more characters")
    .action(async (id) => {
      const record = await withAdmin(here, (admin) => showKey(admin, id));
      const rows = Object.entries(details).map(([name, cell]) => [name, cell(record)]);
      await answer(here, record, "", table(rows, undefined, hasColour(here.terminal.stdout, here.env)));
    });

  const revoke = verb(
    "revoke",
    "Revoke an API key. The next request with it is refused.",
    "keyhole key revoke 0199a3c4",
  )
    .argument("<id>", "the key's id, or its first 8 or more characters")
    .action(async (id) => {
      const record = await withAdmin(here, (admin) => revokeKey(admin, id));
      await answer(here, record, `Revoked key ${record.id} (${record.name}) of ${record.organization}.`);
    });

  const rotate = verb(
    "rotate",
    "Create a key with the same rights, and let the old one expire. The new key is printed on stdout once.",
    "keyhole key rotate 0199a3c4 --overlap 24h",
  )
    .argument("<id>", "the key's id, or its first 8 or more characters")
    .option("--overlap <duration>", "how long the old key stays valid (default: 24h)", parseDuration)
    .action(async (asked, { overlap = overlapMs }) => {
      await withAdmin(here, async (admin) => {
        const { successor, predecessor } = await rotateKey(admin, asked, overlap);
        const { id: successorId, key, ...rest } = successor;
        const { id, expiresAt } = predecessor;
        const expiry = `The old key ${id} expires ${formatTime(expiresAt)}.`;
        await handOver(here, admin, { id: successorId, key, ...rest, predecessor: { id, expiresAt } }, expiry);
        if (!here.json) here.say(`${summary(successor)}\n${expiry}\nThe new key is shown only once: store it now.`);
      });
    });

  return noun("key", "API keys for machines.", create, list, show, revoke, rotate);
}

const overlapMs = 86_400_000;

/** What a key reaches: a list, or null for all. One of the two must be given, so that nothing is reached by default. */
function reachOf<T extends string>(
  option: "project" | "env",
  list: T[] | undefined,
  all: true | undefined,
): T[] | null {
  const allOption = option === "project" ? "--all-projects" : "--all-environments";
  if ((list === undefined) !== (all === undefined)) return list ?? null;
  throw usageProblem(`Say what the key reaches: either --${option} with a list, or ${allOption}.`);
}

/** Prints a new key. If that fails, nobody has the key, and it is revoked. @throws Problem, which ends with `more` */
async function handOver(
  here: Surroundings,
  admin: AdminContext,
  document: { readonly id: string; readonly key: string; readonly [member: string]: unknown },
  more = "",
): Promise<void> {
  const { id, key } = document;
  await write(here.terminal.stdout, here.json ? jsonLine(document) : `${key}\n`).catch(async (error: unknown) => {
    const reason = error instanceof OutputClosed ? "Nobody reads the output." : toProblem(error).message;
    const done = await revokeKey(admin, id).then(
      () => `The new key ${id} was revoked, because nobody has its text.`,
      () => `The new key ${id} is valid, and nobody has its text: run keyhole key revoke ${id}.`,
    );
    throw new Problem(exits.failed, "unwritable", `${reason} ${done} ${more}`.trimEnd(), { cause: error });
  });
}

/** Projects or environments as text; null means all. */
function reach(scope: readonly string[] | null): string {
  return scope === null ? "all" : scope.join(",") || "none";
}

function summary(record: KeyRecord): string {
  const expiry = record.expiresAt === null ? "never expires" : `expires ${formatTime(record.expiresAt)}`;
  return [
    `Created key ${record.id} (${record.name}) for ${record.organization}; it ${expiry}.`,
    `Surfaces: ${record.surfaces.join(",")}. Resources: ${record.resources.join(",")}.`,
    `Projects: ${reach(record.projects)}. Environments: ${reach(record.environments)}.`,
  ].join("\n");
}

const details = {
  ID: (key: KeyRecord) => key.id,
  NAME: (key: KeyRecord) => key.name,
  ORG: (key: KeyRecord) => key.organization,
  STATUS: (key: KeyRecord) => key.status,
  SURFACES: (key: KeyRecord) => key.surfaces.join(","),
  RESOURCES: (key: KeyRecord) => key.resources.join(","),
  PROJECTS: (key: KeyRecord) => reach(key.projects),
  ENVIRONMENTS: (key: KeyRecord) => reach(key.environments),
  CREATED: (key: KeyRecord) => formatTime(key.createdAt),
  EXPIRES: (key: KeyRecord) => formatTime(key.expiresAt),
  REVOKED: (key: KeyRecord) => formatTime(key.revokedAt),
  "LAST USED": (key: KeyRecord) => formatTime(key.lastUsedAt),
};
