import { exits, Problem } from "../core/problem.ts";
import { jsonLine } from "../core/visible.ts";
import { tryStat, writeWholeSync } from "../core/whole-file.ts";
import type { AdminContext } from "../desk/context.ts";
import { createKey, type KeyRecord, revokeKey, rotateKey } from "../people/keys.ts";
import { withAdmin } from "../terminal/admin.ts";
import { type CommandContext, noun } from "../terminal/command.ts";
import { toProblem } from "../terminal/failure.ts";
import { parseDuration } from "../terminal/options.ts";
import { formatTime, write } from "../terminal/terminal.ts";
import { idVerb } from "../terminal/verbs.ts";
import { credentialVerbs, grantOf, grantVerb, summary } from "./grant.ts";

export function keyCommand(context: CommandContext) {
  const create = grantVerb(
    "create",
    "Create an API key. It is printed on stdout once and cannot be shown again.",
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource variables,files --all-projects --env staging --out key.txt",
  )
    .option("--name <name>", "what it is for")
    .option(...outOption)
    .action(async ({ name, out, ...options }) => {
      const asked = { ...grantOf(options), name };
      requireFree(out);
      await withAdmin(context, async (admin) => {
        await handOver(context, admin, await createKey(admin, asked), out);
      });
    });

  const [list, show, revoke] = credentialVerbs(context, "key", {
    list: "List the API keys. The keys themselves are stored nowhere.",
    none: "There are no keys yet: run keyhole key create.",
    show: "Show what an API key may do and when it was used.",
    revoke: "Revoke an API key. The next request with it is refused.",
  });

  const rotate = idVerb(
    "key",
    "rotate",
    "Create a key with the same rights, and let the old one expire. The new key is printed on stdout once.",
    "keyhole key rotate 0199a3c4 --overlap 24h",
  )
    .option("--overlap <duration>", "how long the old key stays valid (default: 24h)", parseDuration)
    .option(...outOption)
    .action(async (asked, { overlap = overlapMs, out }) => {
      requireFree(out);
      await withAdmin(context, async (admin) => {
        const { successor, predecessor } = await rotateKey(admin, asked, overlap);
        await handOver(context, admin, successor, out, predecessor);
      });
    });

  return noun("key", "API keys for machines.", create, list, show, revoke, rotate);
}

const overlapMs = 86_400_000;

const outOption = ["--out <file>", "write the key to this new file, mode 0600, instead of stdout"] as const;

/** @throws Problem if the file exists. Call it before the key is made, or nobody would have the key. */
function requireFree(out: string | undefined): void {
  if (out === undefined || tryStat(out) === undefined) return;
  throw new Problem(exits.failed, "exists", `${out} is there already, and --out replaces no file: name another.`);
}

/**
 * Ends a command with a new key on stdout, or in the file `out`. If that fails, nobody has the key, and it is revoked.
 * @param old - the key in whose place it was made
 */
async function handOver(
  context: CommandContext,
  admin: AdminContext,
  made: KeyRecord & { readonly key: string },
  out: string | undefined,
  old?: KeyRecord,
): Promise<void> {
  const { id, key, ...rest } = made;
  const { stdout } = context.terminal;
  const predecessor = old && { id: old.id, expiresAt: old.expiresAt };
  const expiry = old && `The old key ${old.id} expires ${formatTime(old.expiresAt)}.`;
  const hand = async () => {
    if (out !== undefined) writeWholeSync("api-key", out, false, Buffer.from(`${key}\n`));
    const document = { id, ...(out === undefined ? { key } : { out }), ...rest, ...(old && { predecessor }) };
    if (context.json) return write(stdout, jsonLine(document));
    if (out === undefined) await write(stdout, `${key}\n`);
  };
  await hand().catch(async (error: unknown) => {
    const done = await revokeKey(admin, id).then(
      () => `The new key ${id} was revoked, because nobody has its text.`,
      () => `The new key ${id} is valid, and nobody has its text: run keyhole key revoke ${id}.`,
    );
    const words = [toProblem(error, context.person).message, done, expiry].filter(Boolean).join(" ");
    throw new Problem(exits.failed, "unwritable", words, { cause: error });
  });
  if (context.json) return;
  const what = old ? "The new key" : "The key";
  const where = out === undefined ? "is shown only once: store it now." : `is in ${out}, and nowhere else.`;
  context.say([summary(made), expiry, `${what} ${where}`].filter(Boolean).join("\n"));
}
