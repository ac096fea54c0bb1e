import { parseDuration } from "../core/parse.ts";
import { formatTime } from "../core/text.ts";
import type { AdminContext } from "../desk/context.ts";
import { id, input, ofForm, out } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import type { Outcome } from "../desk/outcome.ts";
import { createKey, type KeyRecord, type NewKey, revokeKey, rotateKey } from "../people/keys.ts";
import { credentialOperations, grantInputs, grantOf, summary } from "./credentials.ts";

const outKey = { ...out, help: "write the key to this new file, mode 0600, instead of stdout" };

const projectIds = ofForm<NonNullable<NewKey["projectIds"]>>();

export const create = operation({
  path: "key create",
  about: "Create an API key. It is printed on stdout once and cannot be shown again.",
  examples: [
    "keyhole key create --org acme --name ci --project web --env production --expires-in 90d",
    "keyhole key create --org acme --resource variables,files --all-projects --env staging --out key.txt",
  ],
  right: "keys",
  inputs: { ...grantInputs, name: input("--name <name>", "what it is for"), out: outKey, projectIds },
  check: (given) => grantOf(given),
  run: async (admin, { name, projectIds, ...given }) =>
    handedOver(await createKey(admin, { ...grantOf(given), name, projectIds })),
});

export const { listAll, show, revoke } = credentialOperations("key", {
  list: "List the API keys. The keys themselves are stored nowhere.",
  none: "There are no keys yet: run keyhole key create.",
  show: "Show what an API key may do and when it was used.",
  revoke: "Revoke an API key. The next request with it is refused.",
});

export const rotate = operation({
  path: "key rotate",
  about: "Create a key with the same rights, and let the old one expire. The new key is printed on stdout once.",
  examples: ["keyhole key rotate 0199a3c4 --overlap 24h"],
  right: "keys",
  inputs: {
    id: id("key"),
    overlapMs: input("--overlap <duration>", "how long the old key stays valid (default: 24h)", parseDuration),
    out: outKey,
    seen: ofForm<Pick<KeyRecord, "expiresAt">>(),
  },
  run: async (admin, { id, overlapMs = dayMs, seen }) => {
    const { successor, predecessor } = await rotateKey(admin, id, overlapMs, seen);
    return handedOver(successor, predecessor);
  },
});

const dayMs = 86_400_000;

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
      advice: (path) =>
        `${what} ${path === undefined ? "is shown only once: store it now" : `is in ${path}, and nowhere else`}.`,
      ifLost,
    },
  };
}

export const keys: Operations = { about: "API keys for machines.", rows: [create, listAll, show, revoke, rotate] };
