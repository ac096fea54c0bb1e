import { attempt } from "../core/attempt.ts";
import type { Environment, TokenWords } from "../core/names.ts";
import { type Actor, type AuditAction, type AuditEntry, canaryActions, type PersonActor } from "./entry.ts";

/*
 * A segment: the audit entries of one commit, as one row. `texts` is a JSON array that has every text of the entries
 * once. Filters read this column only. `entries` is a JSON object with two members:
 *
 *   names    every list of names once
 *   entries  for each entry an array:
 *              0 actor's type   1 actor's id or name   2 organization id   3 organization   4 project id   5 project
 *              6 environment or null   7 action   8 client address   9 user agent          as positions in `texts`
 *              10 the names, as a position in `names`           11 the request id itself
 *              12 names added   13 changed   14 deleted         as positions in `names`, for a write only, else null
 *              15 JSON, as a position in `texts`: of a trust, what the token says; of a person, where the name comes
 *                 from, unless it is the account that ran the command; null if it has none and there is a 16
 *              16 the version of the set that a write made; null if it has none and there is a 17
 *              17 1 for a read that asked for these names; null if it did not and there is an 18
 *              18 those of the names that are canaries, as a position in `names`
 *            An entry ends with the last of these that it has.
 *
 * The mac, HMAC-SHA-256 under the audit key, covers both texts as they are stored, the other columns of the row,
 * and the mac of the segment before it in its lane.
 */

/** A segment at its position in a lane: the chain of segments that one journal writes. */
export type Segment = {
  readonly lane: string;
  /** Entries are counted from 1 in each lane, without gaps. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly texts: string;
  readonly entries: string;
  readonly mac: Buffer;
};

/** The lane that all commands share. */
export const commandsLane = "commands";

/** The mac of a segment. @param previous - the mac of the segment before it in its lane; empty for the first */
export function segmentMac(auditKey: Uint8Array, previous: Uint8Array, segment: Omit<Segment, "mac">): Buffer {
  const { lane, firstSeq, lastSeq, at, texts, entries } = segment;
  const before = ["keyhole audit v1", Buffer.from(previous).toString("hex"), lane, firstSeq, lastSeq, at, texts.length];
  const mac = new Bun.CryptoHasher("sha256", auditKey).update(JSON.stringify(before)).update(texts).update(entries);
  return mac.digest() as Buffer;
}

/** Entries as a segment stores them. */
export function encodeEntries(entries: readonly AuditEntry[]): Pick<Segment, "texts" | "entries"> {
  const texts = new Map<string, number>();
  const lists = new Map<string, number>();
  const textAt = (text: string) => texts.getOrInsert(text, texts.size);
  const listAt = (names: readonly string[]) => lists.getOrInsert(encodeNames(names), lists.size);
  const rows = entries.map((entry) => {
    const { actor, organizationId, organization, projectId, project, environment, action } = entry;
    const who = actor.type === "person" ? actor.name : actor.id;
    return [
      ...[actor.type, who, organizationId, organization, projectId, project].map(textAt),
      environment === null ? null : textAt(environment),
      ...[action, entry.clientAddress, entry.userAgent].map(textAt),
      listAt(entry.names),
      entry.requestId,
      ...endOf(entry, textAt, listAt),
    ];
  });
  // So that a filter for the id of a key or trust finds what was done to it too.
  for (const { action, names } of entries) if (/^(key|trust|people)\./.test(action)) for (const id of names) textAt(id);
  // So that a filter for this action finds the reads of canaries.
  if (entries.some(({ canaries }) => canaries !== undefined)) textAt(canaryActions[1]);
  const names = [...lists.keys()].join(",");
  return {
    texts: JSON.stringify([...texts.keys()]),
    entries: `{"names":[${names}],"entries":${JSON.stringify(rows)}}`,
  };
}

/** The entries of a segment; undefined if they are not as Keyhole writes them. */
export function decodeEntries({ firstSeq, lastSeq, ...encoded }: Segment): AuditEntry[] | undefined {
  return attempt(() => {
    const texts = JSON.parse(encoded.texts) as readonly unknown[];
    const { names, entries } = JSON.parse(encoded.entries) as Encoded;
    if (entries.length !== lastSeq - firstSeq + 1) return undefined;
    const textAt = (position: unknown) => text(texts[position as number]);
    const listAt = (position: unknown) => (names[position as number] as readonly unknown[]).map(text);
    return entries.map((row): AuditEntry => {
      const [type, who, organizationId, organization, projectId, project, environment, action, ...rest] = row;
      const [address, agent, list, requestId, added = null, changed, deleted, ...end] = rest;
      const [moreAt, version, byName, canaries] = end;
      const more = moreAt ?? undefined;
      return {
        actor: actorOf(textAt(type), textAt(who), more === undefined ? undefined : textAt(more)),
        organizationId: textAt(organizationId),
        organization: textAt(organization),
        projectId: textAt(projectId),
        project: textAt(project),
        environment: environment === null ? null : (textAt(environment) as Environment),
        action: textAt(action) as AuditAction,
        names: listAt(list),
        ...(added !== null && { write: { added: listAt(added), changed: listAt(changed), deleted: listAt(deleted) } }),
        ...(version != null && { version: count(version) }),
        ...(byName === 1 && { byName: true }),
        ...(canaries !== undefined && { canaries: listAt(canaries) }),
        requestId: text(requestId),
        clientAddress: textAt(address),
        userAgent: textAt(agent),
        ...(more !== undefined && textAt(type) === "trust" && { token: wordsOf(textAt(more)) }),
      };
    });
  });
}

type Encoded = Readonly<Record<"names" | "entries", readonly (readonly unknown[])[]>>;

const writtenLists = ["added", "changed", "deleted"] as const;

/** What comes behind the first 12, up to the last that the entry has. In JSON, undefined is null there. */
function endOf(
  { actor, write, token, version, byName, canaries }: AuditEntry,
  textAt: (text: string) => number,
  listAt: (names: readonly string[]) => number,
) {
  const more = actor.type === "person" ? (actor.from === "os" ? undefined : actor.from) : token;
  const end = [
    ...writtenLists.map((list) => write && listAt(write[list])),
    more && textAt(JSON.stringify(more)),
    version,
    byName && 1,
    canaries && listAt(canaries),
  ];
  return end.slice(0, end.findLastIndex((one) => one !== undefined) + 1);
}
function actorOf(type: string, who: string, more: string | undefined): Actor {
  if (type === "key" || type === "trust") return { type, id: who };
  if (type === "person") return { type, name: who, from: more === undefined ? "os" : originOf(more) };
  throw new TypeError("no actor");
}

function originOf(encoded: string): PersonActor["from"] {
  const from = JSON.parse(encoded) as "ssh" | Record<"issuer" | "subject", unknown>;
  return from === "ssh" ? from : { issuer: text(from.issuer), subject: text(from.subject) };
}

function wordsOf(encoded: string): TokenWords {
  const { jti, sub, run } = JSON.parse(encoded) as Record<keyof TokenWords, unknown>;
  return { jti: text(jti), sub: text(sub), run: text(run) };
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("no text");
  return value;
}

function count(value: unknown): number {
  if (!Number.isSafeInteger(value)) throw new TypeError("no number");
  return value as number;
}

/** Reads of a remembered set share one list of names, so it is encoded once. */
function encodeNames(names: readonly string[]): string {
  return encodedNames.getOrInsertComputed(names, () => JSON.stringify(names));
}

const encodedNames = new WeakMap<readonly string[], string>();
