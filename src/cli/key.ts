import type { AdminContext } from "../admin/context.ts";
import { createKey, type KeyRecord, listKeys, revokeKey, rotateKey, shortKeyIds, showKey } from "../admin/keys.ts";
import { exits, Problem } from "../problem.ts";
import {
  answer,
  answerList,
  answerOne,
  confirm,
  noun,
  type Surroundings,
  toProblem,
  verb,
  wideOption,
  withAdmin,
  yesOption,
} from "./command.ts";
import { grantColumns, grantOf, grantVerb, nameOf, summary } from "./grant.ts";
import { parseDuration } from "./options.ts";
import { excerpt, formatTime, jsonLine, OutputClosed, write } from "./terminal.ts";

/** `keyhole key …` */
export function keyCommand(here: Surroundings) {
  const create = grantVerb(
    "create",
    "Create an API key. It is printed on stdout once and cannot be shown again.",
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource variables,files --all-projects --env staging > key.txt",
  )
    .option("--name <name>", "what it is for")
    .action(async ({ name, ...options }) => {
      const asked = { ...grantOf(options), name };
      await withAdmin(here, async (admin) => {
        const { id, key, ...rest } = await createKey(admin, asked);
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
      const { ORG, SURFACES, RESOURCES, CREATED, REVOKED, ...first } = grantColumns;
      // The most important ones first.
      const columns = { ...first, ID: ({ id }: KeyRecord) => short(id), ORG, RESOURCES, SURFACES, CREATED, REVOKED };
      await answerList(here, keys, "There are no keys yet: run keyhole key create.", columns, wide);
    });

  const show = verb("show", "Show what an API key may do and when it was used.", "keyhole key show 0199a3c4")
    .argument("<id>", "the key's id, or its first 8 or more characters")
    .action(async (id) => {
      const record = await withAdmin(here, (admin) => showKey(admin, id));
      await answerOne(here, record, record, grantColumns);
    });

  const revoke = verb(
    "revoke",
    "Revoke an API key. The next request with it is refused.",
    "keyhole key revoke 0199a3c4",
  )
    .argument("<id>", "the key's id, or its first 8 or more characters")
    .option(...yesOption)
    .action(async (asked, { yes }) => {
      const record = await withAdmin(here, async (admin) => {
        const found = await showKey(admin, asked);
        // A revocation must never hang or fail because nobody answers.
        await confirm(here, yes, `revoke ${nameOf(found)} of ${found.organization}, for good`, "goes on");
        return revokeKey(admin, found.id);
      });
      await answer(here, record, `Revoked key ${record.id} (${excerpt(record.name)}) of ${record.organization}.`);
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
