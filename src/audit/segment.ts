import type { Environment } from "../names.ts";
import type { Actor, AuditAction, AuditEntry } from "./entry.ts";

/*
 * A segment: the audit entries of one commit, as one row. `entries` is JSON text with three members:
 *
 *   texts    every text of the entries once
 *   names    every list of returned names once
 *   entries  for each entry an array:
 *              0 actor's type   1 actor's id or name   2 organization id   3 organization   4 project id   5 project
 *              6 environment or null   7 action   8 client address   9 user agent          as positions in `texts`
 *              10 the names, as a position in `names`           11 the request id itself
 *              12 names added   13 changed   14 deleted         as positions in `names`, for a write only
 *
 * The mac, HMAC-SHA-256 under the audit key, covers this text as it is stored, what stands beside it in the row, and the
 * mac of the segment before it in its lane.
 */

/** A segment at its position in a lane: the chain of segments that one journal writes. */
export type Segment = {
  readonly lane: string;
  /** Entries are counted from 1 in each lane, without gaps. */
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly entries: string;
  readonly mac: Buffer;
};

/** The mac of a segment. @param previous - the mac of the segment before it in its lane; empty for the first */
export function segmentMac(auditKey: Uint8Array, previous: Uint8Array, segment: Omit<Segment, "mac">): Buffer {
  const { lane, firstSeq, lastSeq, at, entries } = segment;
  const before = ["keyhole audit v1", Buffer.from(previous).toString("hex"), lane, firstSeq, lastSeq, at];
  return new Bun.CryptoHasher("sha256", auditKey).update(JSON.stringify(before)).update(entries).digest() as Buffer;
}

/** Entries as a segment stores them. */
export function encodeEntries(entries: readonly AuditEntry[]): string {
  const texts = new Map<string, number>();
  const lists = new Map<string, number>();
  const rows = entries.map((entry) => [
    positionIn(texts, entry.actor.type),
    positionIn(texts, entry.actor.type === "key" ? entry.actor.id : entry.actor.name),
    positionIn(texts, entry.organizationId),
    positionIn(texts, entry.organization),
    positionIn(texts, entry.projectId),
    positionIn(texts, entry.project),
    entry.environment === null ? null : positionIn(texts, entry.environment),
    positionIn(texts, entry.action),
    positionIn(texts, entry.clientAddress),
    positionIn(texts, entry.userAgent),
    positionIn(lists, encodeNames(entry.names)),
    entry.requestId,
    ...(entry.write ? writtenLists.map((list) => positionIn(lists, encodeNames(entry.write?.[list] ?? []))) : []),
  ]);
  const names = [...lists.keys()].join(",");
  return `{"texts":${JSON.stringify([...texts.keys()])},"names":[${names}],"entries":${JSON.stringify(rows)}}`;
}

/** The entries of a segment; undefined if they are not as Keyhole writes them. */
export function decodeEntries({ firstSeq, lastSeq, entries: encoded }: Segment): AuditEntry[] | undefined {
  try {
    const { texts, names, entries } = JSON.parse(encoded) as Encoded;
    if (entries.length !== lastSeq - firstSeq + 1) return undefined;
    const textAt = (position: number | null) => text(texts[position as number]);
    const listAt = (position: number) => (names[position] as readonly unknown[]).map(text);
    return entries.map((row): AuditEntry => {
      const [type, who, organizationId, organization, projectId, project, environment, action, ...rest] = row;
      const [address, agent, list, requestId, added, changed, deleted] = rest;
      return {
        actor: actorOf(textAt(type), textAt(who)),
        organizationId: textAt(organizationId),
        organization: textAt(organization),
        projectId: textAt(projectId),
        project: textAt(project),
        environment: environment === null ? null : (textAt(environment) as Environment),
        action: textAt(action) as AuditAction,
        names: listAt(list),
        ...(added !== undefined && {
          write: { added: listAt(added), changed: listAt(changed as number), deleted: listAt(deleted as number) },
        }),
        requestId: text(requestId),
        clientAddress: textAt(address),
        userAgent: textAt(agent),
      };
    });
  } catch {
    return undefined;
  }
}

type Encoded = {
  readonly texts: readonly unknown[];
  readonly names: readonly (readonly unknown[])[];
  readonly entries: readonly EncodedEntry[];
};
type Position = number;
type EncodedEntry = readonly [
  ...[Position, Position, Position, Position, Position, Position, Position | null, Position, Position, Position],
  names: Position,
  requestId: string,
  added?: Position,
  changed?: Position,
  deleted?: Position,
];

const writtenLists = ["added", "changed", "deleted"] as const;

function actorOf(type: string, who: string): Actor {
  if (type === "key") return { type, id: who };
  if (type === "person") return { type, name: who };
  throw new TypeError("no actor");
}

function text(value: unknown): string {
  if (typeof value !== "string") throw new TypeError("no text");
  return value;
}

function positionIn(known: Map<string, number>, one: string): number {
  const position = known.get(one) ?? known.size;
  if (position === known.size) known.set(one, position);
  return position;
}

/** Reads of a remembered set share one list of names, so it is encoded once. */
function encodeNames(names: readonly string[]): string {
  const encoded = encodedNames.get(names) ?? JSON.stringify(names);
  encodedNames.set(names, encoded);
  return encoded;
}

const encodedNames = new WeakMap<readonly string[], string>();
