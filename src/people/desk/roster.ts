import { isDeepStrictEqual } from "node:util";
import { desc, eq } from "drizzle-orm";
import { isSameMac } from "../../core/hash.ts";
import { Refused } from "../../core/refused.ts";
import type { Installation } from "../../installation/installation.ts";
import { isWhole, rosterAction } from "../../record/head.ts";
import { commandsLane } from "../../record/segment.ts";
import { laneEnd } from "../../record/store/lane-end.ts";
import { inForce } from "../../serve/access/rights.ts";
import { decodePersons, type Person, type StoredRoster, sealRoster } from "../../serve/access/roster.ts";
import { clockOf } from "../../store/database.ts";
import { type Change, notBefore } from "./changes.ts";
import type { KeyedDatabase, Who } from "./context.ts";

/*
 * Which roster is in force. Each change of the roster is an entry in the lane of commands that names the random id of
 * the new version, and the head of the lane carries that id under its seal. The version in the head is in force if the
 * head is sealed and the lane ends there. So SQL cannot make a roster. To put an earlier one back, SQL must cut off the
 * end of the lane with every later change, which `audit verify --checkpoint` shows.
 */

/** The persons in force. */
export type Roster = { readonly id: string; readonly version: number; readonly persons: readonly Person[] };

/**
 * Persons, and the moment at which they were read, by which the ends of their rights are judged: by the database's
 * clock, and not before the last change on record. So a clock that is set back a little gives no right back that ended
 * before that change.
 */
export type PersonsAt = Pick<Roster, "persons" | "version"> & { readonly at: number };

/** Finds the roster in force. It never returns an older one than before. */
export class RosterWatch {
  #given: Roster | undefined;

  /**
   * The roster in force; no persons if there never was one. If it is the last one that was given, only the end of the
   * lane is read.
   * @throws Refused `conflict` if the end of the lane, or the version that it names, is not as Keyhole wrote it
   */
  async current(admin: KeyedDatabase): Promise<PersonsAt> {
    const before = this.#given;
    const [end, now] = await Promise.all([laneEnd(admin.database, commandsLane), clockOf(admin.database)]);
    if (!isWhole(admin.systemKeys.audit, end)) throw distrust(`the end of the lane ${commandsLane} was changed`);
    const id = end.head?.roster ?? undefined;
    const roster = id === before?.id ? before : id === undefined ? undefined : await read(admin, id);
    if (versionOf(roster) < versionOf(before)) throw distrust("an earlier version was put back");
    if (versionOf(roster) > versionOf(this.#given)) this.#given = roster;
    return {
      persons: roster?.persons ?? [],
      version: versionOf(roster),
      at: end.head === null ? now : notBefore(end.head, now),
    };
  }
}

function versionOf(roster: Roster | undefined): number {
  return roster?.version ?? 0;
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
  const inForce = rightsInForce(new RosterWatch(), { database, systemKeys }, findByName);
  return { actor: { type: "person", name, from: "ssh" }, ...(await inForce.finally(() => database.close())) };
}

/**
 * The entries that `find` finds among those in force, with their rights together.
 * @throws Refused `conflict` as {@link RosterWatch.current}; and what `find` throws
 */
export async function rightsInForce(
  watch: RosterWatch,
  admin: KeyedDatabase,
  find: (persons: readonly Person[]) => readonly Person[],
): Promise<Pick<Who, "entries" | "isOfGroup" | "rights" | "requireSameRights">> {
  const findNow = async (reading: KeyedDatabase) => {
    const { persons: all, at } = await watch.current(reading);
    const persons = find(all);
    return {
      entries: persons.map(({ name }) => name),
      isOfGroup: "group" in (persons[0]?.signIn ?? {}),
      rights: inForce(
        persons.flatMap(({ holdings }) => holdings),
        at,
      ),
    };
  };
  const { rights, ...own } = await findNow(admin);
  const requireSameRights = async (reading: KeyedDatabase) => {
    if (isDeepStrictEqual((await findNow(reading)).rights, rights)) return;
    throw new Refused("conflict", "Your rights have changed in between. Nothing was done: try again.");
  };
  return { ...own, rights, requireSameRights };
}

/**
 * Stores the next version, in the transaction that puts it on record.
 * @param names - of the persons that differ
 * @returns the change to put on record
 */
export async function writeRoster(admin: KeyedDatabase, listing: string, ...names: string[]): Promise<Change> {
  const { rosters: r } = admin.database.tables;
  const { db } = admin.database;
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

function opened({ systemKeys }: KeyedDatabase, { mac, ...stored }: StoredRoster & { readonly mac: Buffer }) {
  if (!isSameMac(mac, sealRoster(systemKeys.grant, stored))) return undefined;
  return { id: stored.id, version: stored.version, persons: decodePersons(stored.listing) };
}

function distrust(why: string): Refused {
  const words = `The list of people failed verification: ${why}. Somebody changed the database by other means than Keyhole. An operator sees more with \`keyhole audit verify\` and \`keyhole person list\`.`;
  return new Refused("conflict", words);
}
