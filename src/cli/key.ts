import { Option } from "@commander-js/extra-typings";
import { resources, surfaces } from "../access/grant.ts";
import { createKey, type KeyRecord, listKeys, revokeKey, rotateKey, showKey } from "../admin/keys.ts";
import { environments } from "../names.ts";
import {
  answer,
  answerList,
  atDesk,
  choiceOption,
  listOption,
  noun,
  parseDuration,
  type Surroundings,
  verb,
} from "./command.ts";
import { formatTime, table } from "./terminal.ts";

/** `keyhole key …` */
export function keyCommand(here: Surroundings) {
  const create = verb(
    "create",
    "Create an API key. Its text is printed on stdout, this once.",
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource projects,variables,files > key.txt",
    "keyhole key create --org acme --surface ci_action --json",
  )
    .option("--org <org>", "the organization; may be left out where only one exists")
    .option("--name <name>", "what it is for")
    .addOption(choiceOption("--surface <list>", "what it may be used for (default: rest_api)", surfaces))
    .addOption(choiceOption("--resource <list>", "what it may read (default: projects,variables)", resources))
    .addOption(listOption("--project <list>", "slugs of the projects it reaches (default: all)"))
    .addOption(choiceOption("--env <list>", "the environments it reaches (default: all)", environments))
    .option("--expires-in <duration>", "30s, 15m, 24h, 90d (default: never)", (text) =>
      parseDuration("--expires-in", text),
    )
    .action(async (options) => {
      const { key, ...record } = await atDesk(here, (desk) =>
        createKey(desk, {
          organization: options.org,
          name: options.name,
          surfaces: options.surface,
          resources: options.resource,
          projects: options.project,
          environments: options.env,
          expiresInMs: options.expiresIn,
        }),
      );
      const { id, ...rest } = record;
      await answer(
        here,
        { id, key, ...rest },
        `${summary(record)}\nThe key is shown this once: keep it now.`,
        `${key}\n`,
      );
    });

  const list = verb(
    "list",
    "List the API keys; the keys themselves are stored nowhere.",
    "keyhole key list",
    "keyhole key list --org acme --json",
  )
    .option("--org <org>", "only this organization's")
    .action(async ({ org }) => {
      const keys = await atDesk(here, (desk) => listKeys(desk, org));
      const header = ["ID", "NAME", "ORG", "STATUS", "PROJECTS", "ENVIRONMENTS", "EXPIRES", "LAST USED"];
      const rows = keys.map((one) => [
        one.id,
        one.name,
        one.organization,
        one.status,
        reach(one.projects),
        reach(one.environments),
        formatTime(one.expiresAt),
        formatTime(one.lastUsedAt),
      ]);
      await answerList(here, keys, header, rows, "There are no keys yet: keyhole key create --org ORG makes one.");
    });

  const show = verb("show", "Show what an API key may do and when it was used.", "keyhole key show 0199a3c4")
    .argument("<id>", "the key's id, as listed")
    .action(async (id) => {
      const record = await atDesk(here, (desk) => showKey(desk, id));
      await answer(here, record, "", details(record));
    });

  const revoke = verb(
    "revoke",
    "Revoke an API key; the next request with it is already refused.",
    "keyhole key revoke 0199a3c4",
  )
    .argument("<id>", "the key's id, as listed")
    .action(async (id) => {
      const record = await atDesk(here, (desk) => revokeKey(desk, id));
      await answer(here, record, `Revoked key ${record.id} (${record.name}) of ${record.organization}.`);
    });

  const rotate = verb(
    "rotate",
    "Make a key that may do what this one may, and let this one expire. The new key is printed on stdout, this once.",
    "keyhole key rotate 0199a3c4 --overlap 24h",
    "keyhole key rotate 0199a3c4 --overlap 15m > key.txt",
  )
    .argument("<id>", "the key's id, as listed")
    .addOption(
      new Option("--overlap <duration>", "how long the old key stays good: 30s, 15m, 24h, 90d")
        .default(parseDuration("--overlap", "24h"), "24h")
        .argParser((text) => parseDuration("--overlap", text)),
    )
    .action(async (id, { overlap }) => {
      const { successor, predecessor } = await atDesk(here, (desk) => rotateKey(desk, id, overlap));
      const { id: successorId, key, ...rest } = successor;
      const { expiresAt } = predecessor;
      await answer(
        here,
        { id: successorId, key, ...rest, predecessor: { id, expiresAt } },
        `${summary(successor)}\nThe old key ${id} expires ${formatTime(expiresAt)}.\nThe key is shown this once: keep it now.`,
        `${key}\n`,
      );
    });

  return noun("key", "API keys for machines.")
    .addCommand(create)
    .addCommand(list)
    .addCommand(show)
    .addCommand(revoke)
    .addCommand(rotate);
}

/** The members of a scope; null is all of them. */
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

function details(record: KeyRecord): string {
  const rows = [
    ["ID", record.id],
    ["NAME", record.name],
    ["ORG", record.organization],
    ["STATUS", record.status],
    ["SURFACES", record.surfaces.join(",")],
    ["RESOURCES", record.resources.join(",")],
    ["PROJECTS", reach(record.projects)],
    ["ENVIRONMENTS", reach(record.environments)],
    ["CREATED", formatTime(record.createdAt)],
    ["EXPIRES", formatTime(record.expiresAt)],
    ["REVOKED", formatTime(record.revokedAt)],
    ["LAST USED", formatTime(record.lastUsedAt)],
  ];
  return table(rows[0] ?? [], rows.slice(1));
}
