import { isDeepStrictEqual } from "node:util";
import { and, desc, eq, gt, lt, lte, sql } from "drizzle-orm";
import type { Holding } from "../access/rights.ts";
import { decodePersons, type Person, type StoredRoster, sealRoster } from "../access/roster.ts";
import { commandsLane, decodeEntries, type Segment, segmentMac } from "../audit/segment.ts";
import { isSameMac } from "../core/hash.ts";
import { Refused } from "../core/refused.ts";
import type { Db } from "../store/database.ts";
import type { Change } from "./changes.ts";
import type { KeyedDatabase, Who } from "./context.ts";
import type { Installation } from "./installation.ts";

/*
 * Which roster is in force. Each change of the roster is an entry in the lane of commands that names the random id of
 * the new version. The newest such entry says which version is in force, and from there to the head of the lane every
 * segment must follow the one before. So SQL can neither make a roster nor put an earlier one back, but by cutting off
 * the end of the lane with every later change, which `audit verify --checkpoint` shows.
 */

/** The persons in force. */
export type Roster = { readonly id: string; readonly version: number; readonly persons: readonly Person[] };

/** What was seen: up to where the lane was followed, which version it names up to there, and that version. */
type Seen = { readonly link: Link; readonly id: string; readonly roster?: Roster | undefined };

/** Follows the roster in force, and never goes back to an older one than it has given. */
export class RosterWatch {
  #seen: Seen | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(seen?: Seen) {
    this.#seen = seen;
  }

  /**
   * The roster in force; undefined if there never was one. If nothing was changed since the last call, it reads one
   * row.
   * @throws Refused `conflict` if the lane does not verify, or the version that it names is not as Keyhole wrote it
   */
  current(admin: KeyedDatabase): Promise<Roster | undefined> {
    // One after the other: a look that began earlier must not end later.
    const look = () => this.#look(admin);
    const found = this.#last.then(look, look);
    this.#last = found;
    return found;
  }

  /** Another that has seen the same. What it is shown in a transaction that is rolled back, this one never saw. */
  copy(): RosterWatch {
    return new RosterWatch(this.#seen);
  }

  async #look(admin: KeyedDatabase): Promise<Roster | undefined> {
    const head = await headOf(admin);
    const start = this.#seen ?? (await beginning(admin, head));
    if (start === undefined) return undefined;
    const followed = await follow(admin, start, head);
    // Before the version is read: what the lane named must not be unseen if the version is damaged.
    this.#seen = { ...start, ...followed };
    const roster = start.roster?.id === followed.id ? start.roster : await read(admin, followed.id);
    this.#seen = { ...followed, roster };
    return roster;
  }
}

/** The newest change of the roster that the lane names; undefined if there is none. */
async function beginning(admin: KeyedDatabase, head: Link | undefined): Promise<Seen | undefined> {
  const change = head && (await newestChange(admin, head.seq));
  return change && { link: await linkBefore(admin, change), id: "" };
}

async function follow(admin: KeyedDatabase, { link, id }: Seen, head: Link | undefined): Promise<Seen> {
  let { seq, mac } = link;
  let newest = id;
  while (head !== undefined && seq < head.seq) {
    const page = await segmentsFrom(admin, seq, head.seq);
    if (page.length === 0) throw notInForce(seq + 1);
    for (const segment of page) {
      const isNext = segment.firstSeq === seq + 1;
      if (!isNext || !segmentMac(admin.systemKeys.audit, mac, segment).equals(segment.mac)) throw notInForce(seq + 1);
      newest = versionIn(segment) ?? newest;
      [seq, mac] = [segment.lastSeq, segment.mac];
    }
  }
  if (head?.seq !== seq || !head.mac.equals(mac)) throw notInForce(seq + 1);
  return { link: { seq, mac }, id: newest };
}

/**
 * Who came over SSH, with the rights in force.
 * @throws Refused `forbidden` if there is no such person, `conflict` as {@link RosterWatch.current}
 */
export async function whoIs({ open, systemKeys }: Installation, name: string): Promise<Who> {
  const database = open("admin");
  const findByName = (persons: readonly Person[]) => {
    const person = persons.find((one) => one.name === name);
    if (person === undefined) throw new Refused("forbidden", `There is no person ${name}: ask an operator.`);
    return [person];
  };
  try {
    const { persons: _, ...rights } = await rightsInForce(new RosterWatch(), { database, systemKeys }, findByName);
    return { actor: { type: "person", name, from: "ssh" }, ...rights };
  } finally {
    await database.close();
  }
}

/**
 * The persons that `find` finds among those in force, with their rights together.
 * @throws Refused `conflict` as {@link RosterWatch.current}; and what `find` throws
 */
export async function rightsInForce(
  watch: RosterWatch,
  admin: KeyedDatabase,
  find: (persons: readonly Person[]) => readonly Person[],
): Promise<{ readonly persons: readonly Person[] } & Pick<Who, "rights" | "requireSameRights">> {
  const findWith = async (one: RosterWatch, reading: KeyedDatabase) =>
    find((await one.current(reading))?.persons ?? []);
  const persons = await findWith(watch, admin);
  const rights = rightsOf(persons);
  const requireSameRights = async (reading: KeyedDatabase) => {
    if (isDeepStrictEqual(rightsOf(await findWith(watch.copy(), reading)), rights)) return;
    throw new Refused("conflict", "Your rights have changed in between. Nothing was done: try again.");
  };
  return { persons, rights, requireSameRights };
}

function rightsOf(persons: readonly Person[]): readonly Holding[] {
  return persons.flatMap(({ holdings }) => holdings);
}

/** The last entry of a segment in the lane, and that segment's mac. */
type Link = { readonly seq: number; readonly mac: Buffer };

const rosterAction = "people.write";

/**
 * Stores the next version, in the transaction that puts it on record.
 * @param names - of the persons that differ
 * @returns the change to put on record
 */
export async function writeRoster(admin: KeyedDatabase, db: Db, listing: string, ...names: string[]): Promise<Change> {
  const { rosters: r } = admin.database.tables;
  const [last] = await db.select({ version: r.version }).from(r).orderBy(desc(r.version)).limit(1);
  const stored = { id: Bun.randomUUIDv7(), version: (last?.version ?? 0) + 1, listing };
  await db.insert(r).values({ ...stored, mac: sealRoster(admin.systemKeys.grant, stored) });
  return { action: rosterAction, organization: null, names: [stored.id, ...names] };
}

/** The newest version in the table whose seal is right, whatever the lane says; undefined if there is none. */
export async function newestSealed(admin: KeyedDatabase): Promise<Roster | undefined> {
  const { rosters: r } = admin.database.tables;
  const rows = await admin.database.db.select().from(r).orderBy(desc(r.version));
  return rows.map((row) => opened(admin, row)).find((roster) => roster !== undefined);
}

async function read(admin: KeyedDatabase, id: string): Promise<Roster> {
  const { rosters: r } = admin.database.tables;
  const [row] = await admin.database.db.select().from(r).where(eq(r.id, id));
  const roster = row && opened(admin, row);
  if (roster === undefined) throw distrust("the version in force was deleted or changed");
  return roster;
}

function opened(
  { systemKeys }: KeyedDatabase,
  { mac, ...stored }: StoredRoster & { readonly mac: Buffer },
): Roster | undefined {
  if (!isSameMac(mac, sealRoster(systemKeys.grant, stored))) return undefined;
  return { id: stored.id, version: stored.version, persons: decodePersons(stored.listing) };
}

async function headOf({ database }: KeyedDatabase): Promise<Link | undefined> {
  const { auditHeads: h } = database.tables;
  const [head] = await database.db.select({ seq: h.seq, mac: h.mac }).from(h).where(eq(h.lane, commandsLane));
  return head;
}

/** The newest segment up to an entry that has a change of the roster. */
async function newestChange({ database }: KeyedDatabase, upTo: number): Promise<Segment | undefined> {
  const { auditSegments: s } = database.tables;
  const names = sql`${database.indexOf(s.texts, sql`${JSON.stringify(rosterAction)}`)} > 0`;
  for (let before = upTo + 1; ; ) {
    const [segment] = await database.db
      .select()
      .from(s)
      .where(and(eq(s.lane, commandsLane), lt(s.firstSeq, before), names))
      .orderBy(desc(s.firstSeq))
      .limit(1);
    if (segment === undefined || versionIn(segment) !== undefined) return segment;
    // The word was a name, such as that of an account.
    before = segment.firstSeq;
  }
}

/** The newest version of the roster that a segment names. */
function versionIn(segment: Segment): string | undefined {
  return decodeEntries(segment)?.findLast(({ action }) => action === rosterAction)?.names[0];
}

/** What a segment follows, as the database has it: its own mac shows whether that is true. */
async function linkBefore({ database }: KeyedDatabase, { firstSeq }: Segment): Promise<Link> {
  const { auditSegments: s, auditCheckpoints: c } = database.tables;
  const seq = firstSeq - 1;
  if (seq === 0) return { seq, mac: Buffer.alloc(0) };
  const [before] = await database.db
    .select({ mac: s.mac })
    .from(s)
    .where(and(eq(s.lane, commandsLane), lte(s.firstSeq, seq), eq(s.lastSeq, seq)));
  const [dropped] = await database.db
    .select({ mac: c.mac })
    .from(c)
    .where(and(eq(c.lane, commandsLane), eq(c.seq, seq)));
  const mac = before?.mac ?? dropped?.mac;
  if (mac === undefined) throw notInForce(seq);
  return { seq, mac };
}

const pageSize = 256;

function segmentsFrom({ database }: KeyedDatabase, after: number, upTo: number): Promise<Segment[]> {
  const { auditSegments: s } = database.tables;
  return database.db
    .select()
    .from(s)
    .where(and(eq(s.lane, commandsLane), gt(s.firstSeq, after), lte(s.firstSeq, upTo)))
    .orderBy(s.firstSeq, s.at)
    .limit(pageSize);
}

function notInForce(seq: number): Refused {
  return distrust(`the audit does not verify at ${commandsLane}:${seq}`);
}

function distrust(why: string): Refused {
  return new Refused(
    "conflict",
    `The persons and their rights are not believed: ${why}. Somebody changed the database by other means than Keyhole. An operator sees more with \`keyhole audit verify\` and \`keyhole person list\`.`,
  );
}
