import { dayMs } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { counted, formatTime, joined } from "../../core/words/text.ts";
import { parseDuration } from "../../core/words/times.ts";
import type { AdminContext } from "../desk/context.ts";
import { flag, formOnly, id, input, out, typed, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { list, type Outcome } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { textsOf, unreadProblem, unreadWords } from "../leaks/texts.ts";
import {
  credentialOperations,
  foundColumns,
  grantInputs,
  grantOf,
  lastUsedLags,
  nameOf,
  summary,
} from "./credentials.ts";
import { findKeysIn } from "./found-keys.ts";
import {
  createKey,
  identifyKeys,
  type KeyRecord,
  type NewKey,
  requireSeesKeys,
  revokeKey,
  rotateKey,
  shortKeyIds,
  showKey,
} from "./keys.ts";

const outKey = { ...out, help: "write the key to this new file, mode 0600, instead of stdout" };

const canary = flag("--canary", "bait: it opens nothing, and every use of it is on record");

const projectIds = formOnly<NonNullable<NewKey["projectIds"]>>();

export const create = operation({
  path: "key create",
  about: "Create an API key. It is printed on stdout once and cannot be shown again.",
  examples: [
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource variables,files --all-projects --env staging --out key.txt",
    "keyhole key create --org acme --name old-deploy --project web --env production --canary",
  ],
  right: rightTo("key.create"),
  inputs: { ...grantInputs, name: input("--name <name>", "what it is for"), canary, out: outKey, projectIds },
  check: (given) => grantOf(given),
  run: async (admin, { name, projectIds, canary, ...given }) =>
    handedOver(await createKey(admin, { ...grantOf(given), name, projectIds, canary })),
});

export const { listAll, show, revoke } = credentialOperations("key", {
  list: "List the API keys. The keys themselves are stored nowhere.",
  none: "run keyhole key create.",
  show: "Show what an API key may do and when it was used.",
  revoke: "Revoke an API key. The next request with it is refused.",
});

export const rotate = operation({
  path: "key rotate",
  about: "Create a key with the same rights, and let the old one expire. The new key is printed on stdout once.",
  examples: ["keyhole key rotate 0199a3c4 --overlap 24h"],
  right: rightTo("key.rotate"),
  inputs: {
    id: id("key"),
    overlapMs: input("--overlap <duration>", "how long the old key stays valid (default: 24h)", parseDuration),
    out: outKey,
  },
  plan: async (admin, { id: asked, overlapMs = dayMs }) => {
    const found = await showKey(admin, asked, "key");
    const { id, name } = found;
    return {
      seen: seenKey(found),
      differs: async () => {
        const words = `The key ${id} was rotated since it was shown: look at it again. Nothing was changed.`;
        throw new Refused("conflict", words);
      },
      document: { id, name },
      sentence: `Nothing was changed. It would make a new key in place of key ${id} (${excerpt(name)}).`,
      apply: async () => {
        const { successor, predecessor } = await rotateKey(admin, id, overlapMs);
        return handedOver(successor, predecessor);
      },
    };
  },
});

/** What somebody sees of a key that they rotate. */
export function seenKey({ id, expiresAt }: KeyRecord) {
  return { key: id, expiresAt: expiresAt ?? 0 };
}

export const find = operation({
  path: "key find",
  about:
    "Say which keys a leaked text on stdin holds, such as a log, a diff or a chat: where they reach, and when they were used. No key is printed.",
  examples: ["keyhole key find < build.log", "git log -p | keyhole key find --revoke"],
  right: ["see", "keys"],
  asks: "if it can",
  isLong: true,
  inputs: {
    text: typed({ bytesMax: Number.POSITIVE_INFINITY }),
    revoke: flag("--revoke", "revoke those that are active. The next request with them is refused"),
    wide,
  },
  plan: async (admin, { text, revoke: ends }) => {
    requireSeesKeys(admin); // before anything is read
    // Somebody over SSH could make the host unpack without end.
    const isHere = admin.rights === "operator";
    const { texts, unread } = await findKeysIn(textsOf("stdin", () => text.chunks(), isHere));
    const found = await identifyKeys(admin, texts);
    const active = ends ? found.filter(({ status }) => status === "active") : [];
    const others = texts.length - found.length;
    const deed = active.length > 0 ? `revoke ${joined(active.map(nameOf))}, for good` : undefined;
    const words = `${counted(others, "more text has", "more texts have")} the form of a key of Keyhole`;
    const none = others > 0 ? [`${words}, and none is a key that you may see.`] : [];
    const warnings = [...unreadWords(unread), ...none];
    const sentence = `Nothing was changed.${deed === undefined ? "" : ` It would ${deed}.`}`;
    const document = { keys: found, others, unread };
    const seen = { keys: active.map(({ id }) => id).join() };
    return { deed, seen, document, warnings, sentence, apply: () => findOrRevoke(admin, document, active, warnings) };
  },
});

/** Revokes the active ones, each by itself: that one of them is not theirs to revoke must not keep the others. */
async function findOrRevoke(
  admin: AdminContext,
  {
    keys: found,
    others,
    unread,
  }: { keys: KeyRecord[]; others: number; unread: Awaited<ReturnType<typeof findKeysIn>>["unread"] },
  active: readonly KeyRecord[],
  warnings: readonly string[],
): Promise<Outcome> {
  const revoked = await revokeEach(admin, active);
  const now = found.map((key) => revoked.find(({ id }) => id === key.id) ?? key);
  const reads = now.length > 0 && `${lastUsedLags} Each read of values is in keyhole audit list --key ID.`;
  const ended = revoked.length > 0 && `Revoked ${joined(revoked.map(nameOf))}.`;
  const sentence = [reads, ended].filter(Boolean).join("\n");
  const document = { keys: now, others, unread };
  const columns = foundColumns(await shortKeyIds(admin));
  const ends = unread.length > 0 && unreadProblem(unread.length);
  const none = "The text holds no key that you may see.";
  return { ...list(now, columns, none), document, warnings, sentence, ...(ends && { ends }) };
}

/** Revokes what somebody may revoke. @throws Refused at the end, with the keys that are still valid */
async function revokeEach(admin: AdminContext, active: readonly KeyRecord[]): Promise<KeyRecord[]> {
  const revoked: KeyRecord[] = [];
  const left: string[] = [];
  for (const key of active) {
    try {
      revoked.push(await revokeKey(admin, key.id, "key"));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      left.push(`${nameOf(key)} is still valid: ${error.message}`);
    }
  }
  if (left.length === 0) return revoked;
  const done = revoked.length > 0 ? [`Revoked ${joined(revoked.map(nameOf))}.`] : [];
  throw new Refused("not_found", [...left, ...done].join("\n"));
}

/** A new key. If nobody gets it, it is revoked. @param old - the key in whose place it was made */
function handedOver(made: KeyRecord & { readonly key: string }, old?: KeyRecord): Outcome {
  const { id, key, ...rest } = made;
  const what = old ? "The new key" : "The key";
  const expiry = old && `The old key ${old.id} expires ${formatTime(old.expiresAt)}.`;
  const ifLost = async (admin: AdminContext) => {
    const fate = await revokeKey(admin, id).then(
      () => `The new key ${id} was revoked, because nobody has its text.`,
      () => `The new key ${id} is valid, and nobody has its text: run keyhole key revoke ${id}.`,
    );
    return [fate, expiry].filter(Boolean).join(" ");
  };
  return {
    // The key has its place in the document: it follows the id.
    document: { id, key: undefined, ...rest, ...(old && { predecessor: { id: old.id, expiresAt: old.expiresAt } }) },
    sentence: [summary(made), expiry].filter(Boolean).join("\n"),
    shows: {
      secret: `${key}\n`,
      what,
      field: { key },
      whereItWent: (path) =>
        `${what} ${path === undefined ? "is shown only once: store it now" : `is in ${path}, and nowhere else`}.`,
      ifLost,
    },
  };
}

export const keys: Operations = {
  about: "API keys for machines.",
  rows: [create, listAll, show, revoke, rotate, find],
};
