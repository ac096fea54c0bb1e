import { isDeepStrictEqual } from "node:util";
import { asc, eq, sql } from "drizzle-orm";
import { isIssuer, issuerRule } from "../../core/json-request.ts";
import { type Environment, environmentMask, environmentsOf, everyEnvironment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { formatTime, listed } from "../../core/words/text.ts";
import type { PersonActor } from "../../record/entry.ts";
import {
  endOf,
  everyRight,
  type Holding,
  hasSomewhere,
  inForce,
  isSamePlace,
  may,
  meets,
  merged,
  type ProjectPlace,
  type Right,
  reached,
} from "../../serve/access/rights.ts";
import { encodePersons, type Person, type SignInAs } from "../../serve/access/roster.ts";
import { clockOf } from "../../store/database.ts";
import { lockCommands } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { findOrganization } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { applying, type PlannedChange } from "../desk/plan.ts";
import { findProject, placeOf } from "../desk/projects.ts";
import { newestSealed, type PersonsAt, RosterWatch, writeRoster } from "../desk/roster.ts";
import { requireEnvironments, requireMembers, requireWord } from "../desk/validate.ts";
import { each, lastsUntil, mayGive, unsupported } from "./given.ts";

/*
 * The persons of an installation and their rights. Operators change them. Who has the right `grant` gives others what
 * they have themselves, where they have it and no longer, and takes away what they could give.
 */

export type PersonRecord = {
  readonly name: string;
  /** Its slug; null if the organization was deleted. */
  readonly organization: string | null;
  readonly signIn: SignInAs | null;
  readonly rights: readonly RightsInPlace[];
};

/** Rights in one place, for people. */
export type RightsInPlace = {
  readonly rights: readonly Right[];
  /** Its slug, or its id if it was deleted. */
  readonly organization: string;
  /** Its slug, or its id if it was deleted; null for every project. */
  readonly project: string | null;
  readonly environments: readonly Environment[];
  /** When they end, in epoch milliseconds; null if they never do. */
  readonly until: number | null;
  readonly ended: boolean;
  /** The name of the person who gave them; null if an operator did. */
  readonly by: string | null;
};

/** Rights in some places. Null means every project, future ones too, or every environment. */
export type Reach = {
  readonly rights: readonly string[];
  /** By default the person's own. */
  readonly organization?: string | undefined;
  readonly projects: readonly string[] | null;
  readonly environments: readonly string[] | null;
};

/** How persons are changed. */
type HowChanged = {
  /** Whether an operator takes the persons in the database as they are, though the audit does not vouch for them. */
  readonly asTheyAre?: boolean | undefined;
  /** What becomes of what somebody gave and can give no longer. If it is left out, the change is refused. */
  readonly given?: "kept" | "taken" | undefined;
};

/** A change of one person, before it is made. */
export type PersonPlan = PlannedChange<PersonRecord> & {
  /** The person as they would be, or were, as far as the caller is shown them. */
  readonly person: PersonRecord;
};

/** Adds a person without rights. */
export async function addPerson(
  admin: AdminContext,
  asked: {
    readonly name: string;
    readonly organization?: string | undefined;
    readonly signIn: SignInAs | null;
    /** Whether somebody who was removed may have had the name. */
    readonly again?: boolean | undefined;
  },
  how: HowChanged = {},
): Promise<PersonRecord> {
  const permit = Permit.operator(admin);
  const { name, signIn, again } = asked;
  requirePersonName(name);
  if (signIn !== null) requireSignIn(signIn);
  const { id: organizationId } = await findOrganization(admin, asked.organization);
  const isTaken = !again && (await wasGiven(admin, name));
  const change: PersonChange = (before, others) => {
    if (before !== undefined) throw new Refused("exists", `The person ${name} exists already.`);
    // A person who leaves is removed by one name.
    const same = signIn && others.find((one) => one.signIn && mayBeOne(one.signIn, signIn));
    if (same) throw new Refused("exists", `${signInText(signIn)} is the person ${same.name} already.`);
    if (isTaken) {
      const words = `There was a person ${name}, and authorized_keys may still let their key in as ${name}: delete that line, and then give --again.`;
      throw new Refused("exists", words);
    }
    return { name, organizationId, signIn, holdings: [] };
  };
  return applying(admin, (admin) => planPerson(admin, permit, name, how, change));
}

/** Whether somebody may sign in as both. A group without an issuer belongs to the issuer that the dashboard asks. */
function mayBeOne(a: SignInAs, b: SignInAs): boolean {
  const isOneIssuer = a.issuer === null || b.issuer === null || a.issuer === b.issuer;
  return isOneIssuer && isDeepStrictEqual({ ...a, issuer: null }, { ...b, issuer: null });
}

/** Whether some version of the persons, however old, has this name. */
async function wasGiven({ database }: AdminContext, name: string): Promise<boolean> {
  const { rosters: r } = database.tables;
  const text = JSON.stringify({ name }).slice(1, -1);
  const has = sql`${database.indexOf(r.listing, sql`${text}`)} > 0`;
  return (await database.db.select({ id: r.id }).from(r).where(has).limit(1)).length > 0;
}

/**
 * What it would do to give a person rights, beside those that they have. A right that they have in the very place ends
 * as this one does, but a person changes only what they gave.
 * @param endFrom - when it ends, if that is counted from a moment. If it is left out, never
 * @throws Refused `invalid` if it would have ended, `forbidden` if it is not theirs to give
 */
export function planGrant(
  admin: AdminContext,
  name: string,
  { endFrom, ...reach }: Reach & { readonly endFrom?: ((startMs: number) => number) | undefined },
  how: HowChanged = {},
): Promise<PersonPlan> {
  const change = ({ held, rights, places, at }: RightsChange) => {
    const until = endFrom?.(at);
    if (until !== undefined && until <= at) {
      throw new Refused("invalid", `${formatTime(until)} is past: the rights would have ended already.`);
    }
    const given = places.map((place) => ({
      ...place,
      rights,
      ...(until !== undefined && { until }),
      ...givenBy(admin),
    }));
    const isOurs = ({ by }: Holding) => admin.rights === "operator" || by?.[0] === admin.entries[0];
    const again = (one: Holding) => (isOurs(one) && rights.some((right) => one.rights.includes(right)) ? given : []);
    const kept = ofOneRight(held).map((one) => {
      const taken = again(one).find((more) => isSamePlace(one, more))?.environments ?? 0;
      return { ...one, environments: one.environments & ~taken };
    });
    return [...kept, ...given];
  };
  return planRights(admin, name, reach, how, true, change);
}

/** Who gives what this person gives. */
function givenBy({ rights, entries }: AdminContext): Pick<Holding, "by"> {
  return rights === "operator" ? {} : { by: entries };
}

/**
 * What it would do to take rights from a person. What was deleted is named by its id, as lists show it.
 * @throws Refused as {@link planGrant}; `invalid` to take from one project what the person may do in all
 */
export function planRevocation(admin: AdminContext, name: string, reach: Reach, how: HowChanged = {}) {
  const change = ({ held, rights, places }: RightsChange) =>
    places.reduce((left, place) => without(name, left, rights, place), ofOneRight(held));
  return planRights(admin, name, reach, how, false, change, ({ holdings }) => holdings);
}

/** The same rights, with one right in each holding. */
function ofOneRight(held: readonly Holding[]): Holding[] {
  return held.flatMap(({ rights, ...place }) => rights.map((right) => ({ ...place, rights: [right] })));
}

/** What a change of rights is asked for, and when. */
type RightsChange = {
  readonly held: readonly Holding[];
  readonly rights: readonly Right[];
  readonly places: readonly RightsPlace[];
  readonly at: number;
};

async function planRights(
  admin: AdminContext,
  name: string,
  reach: Reach,
  how: HowChanged,
  gives: boolean,
  change: (asked: RightsChange) => readonly Holding[],
  named: (person: Person) => readonly Holding[] = () => [],
): Promise<PersonPlan> {
  requireGrant(admin);
  const rights = requireMembers("right", everyRight, reach.rights);
  const { persons } = await readPersons(admin, how);
  const found = requirePerson(
    seenAmong(admin, persons).find((one) => one.name === name),
    name,
  );
  const places = await placesIn(admin, found, reach, named(found));
  const permits = places.map((place) => requirePermitToGive(admin, place));
  const become: PersonChange = (before, _, at) => {
    const person = requirePerson(before, name);
    return { ...person, holdings: merged(change({ held: person.holdings, rights, places, at })) };
  };
  const plan = await planPerson(admin, permits, name, how, become, gives);
  const project = places.map(({ organizationId, projectId }) => projectId ?? organizationId).join();
  return { ...plan, seen: { ...plan.seen, project } };
}

/** @throws Refused `forbidden` for somebody who may give rights nowhere */
function requireGrant({ rights }: AdminContext): void {
  if (hasSomewhere(rights, "grant")) return;
  const words = "Only an operator may do this, who holds the root key, or somebody with the right `grant`.";
  throw new Refused("forbidden", words);
}

/** What it would do to remove a person with all their rights. */
export async function planRemoval(admin: AdminContext, name: string, how: HowChanged = {}): Promise<PersonPlan> {
  return planPerson(admin, Permit.operator(admin), name, how, () => undefined);
}

/**
 * Persons of one organization or of all, by name: for operators, and for whoever may give rights. These see the persons of
 * their organizations, and the rights where they may give some.
 */
export async function listPersons(admin: AdminContext, organization?: string): Promise<PersonRecord[]> {
  requireGrant(admin);
  const only = organization === undefined ? undefined : (await findOrganization(admin, organization)).id;
  const slugs = await slugsOf(admin);
  const { persons, at } = await readPersons(admin);
  return seenAmong(admin, persons)
    .filter(({ organizationId }) => organizationId === (only ?? organizationId))
    .map((one) => shown(slugs, one, at));
}

/** The persons whom somebody who may give rights is shown. */
function seenAmong(admin: AdminContext, persons: readonly Person[]): Person[] {
  const seen = persons.map((one) => asSeen(admin, one));
  return seen.filter(({ organizationId, holdings }) => organizationId !== "" || holdings.length > 0);
}

/** A person as somebody who may give rights is shown them: without an organization or rights that are nothing to them. */
function asSeen({ rights }: AdminContext, person: Person): Person {
  if (rights === "operator") return person;
  const isTheirs = rights.some((one) => one.rights.includes("grant") && one.organizationId === person.organizationId);
  const holdings = each(person.holdings).filter((one) => meets(rights, "grant", one, one.environments));
  return { ...person, organizationId: isTheirs ? person.organizationId : "", holdings: merged(holdings) };
}

export async function showPerson(admin: AdminContext, name: string): Promise<PersonRecord> {
  const found = (await listPersons(admin)).find((one) => one.name === name);
  if (found === undefined) throw noPerson(name);
  return found;
}

/** Who asks, and what they may do. An operator may do everything. */
export type OwnRights = Pick<PersonActor, "name" | "from"> & {
  readonly rights: "operator" | readonly RightsInPlace[];
};

/** What the caller may do, with the rights in force. Rights from several entries, such as groups, are merged. */
export async function ownRights(admin: AdminContext): Promise<OwnRights> {
  const { actor, rights } = admin;
  const { name, from } = actor;
  if (rights === "operator") return { name, from, rights };
  // All of these are in force.
  return { name, from, rights: shownRights(await slugsOf(admin), merged(rights), 0) };
}

/**
 * Rights that end soon, soonest first, in places the caller may see. Each row has the rights of one person in one place
 * that end together, in the form of a list of keys.
 */
export async function listEndingRights(admin: AdminContext, withinMs: number) {
  const { persons, at } = await readPersons(admin);
  const slugs = await slugsOf(admin);
  const found = persons.flatMap(({ name, holdings }) =>
    inForce(holdings, at).flatMap((holding) => {
      const mask = environmentMask(...reached(admin.rights, ["see"], holding)) & holding.environments;
      if (endOf(holding) > at + withinMs || mask === 0) return [];
      return shownRights(slugs, [{ ...holding, environments: mask }], at).map((one) => ({
        name,
        rights: one.rights,
        organization: one.organization,
        projects: one.project === null ? null : [one.project],
        environments: mask === everyEnvironment ? null : one.environments,
        expiresAt: endOf(holding),
      }));
    }),
  );
  return found.sort((a, b) => a.expiresAt - b.expiresAt);
}

/** One person's rights in a project, as anybody with `see` there is shown them. */
export type PersonAccess = {
  readonly name: string;
  readonly signIn: SignInAs | null;
  /** In each environment that somebody may see. */
  readonly rightsIn: Readonly<Partial<Record<Environment, readonly Right[]>>>;
  /** When each of these rights ends, if it does. */
  readonly endsIn: Readonly<Partial<Record<Environment, Readonly<Partial<Record<Right, number>>>>>>;
};

/** The persons who have rights in a project, in one environment or in any that somebody may see. */
export async function personsWithAccess(admin: AdminContext, where: string, environment?: Environment) {
  const project = await findProject(admin, where, "see", environment && [environment]);
  const { persons, at } = await readPersons(admin);
  return persons.flatMap((one) => accessOf(one, at, placeOf(project), project.permit.environments));
}

/** One person's rights in each project where they have some, as far as somebody may see it, by its path. */
export async function accessOfPerson(
  admin: AdminContext,
  name: string,
): Promise<(PersonAccess & { readonly where: string })[]> {
  const { projects: p, organizations: o } = admin.database.tables;
  const { persons, at } = await readPersons(admin);
  const person = persons.find((one) => one.name === name);
  const projects = await admin.database.db
    .select({ projectId: p.id, organizationId: p.organizationId, where: sql<string>`${o.slug} || '/' || ${p.slug}` })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .orderBy(asc(o.slug), asc(p.slug));
  return projects.flatMap(({ where, ...place }) => {
    const seen = reached(admin.rights, ["see"], place);
    const found = person === undefined ? [] : accessOf(person, at, place, seen);
    return found.map((one) => ({ ...one, where }));
  });
}

/** @returns nothing for somebody without rights in these environments */
function accessOf(
  { name, signIn, holdings }: Person,
  at: number,
  place: ProjectPlace,
  among: readonly Environment[],
): PersonAccess[] {
  const held = inForce(holdings, at);
  const found = among.flatMap((one) => {
    const ends = everyRight.flatMap((right) => {
      const those = held.filter((holding) => may([holding], right, place, one));
      return those.length === 0 ? [] : [[right, Math.max(...those.map(endOf))] as const];
    });
    return ends.length === 0 ? [] : [[one, ends] as const];
  });
  if (found.length === 0) return [];
  const rightsIn = Object.fromEntries(found.map(([one, ends]) => [one, ends.map(([right]) => right)]));
  const ending = found.map(([one, ends]) => [one, Object.fromEntries(ends.filter(([, end]) => end < endOf({})))]);
  return [{ name, signIn, rightsIn, endsIn: Object.fromEntries(ending) }];
}

/** The persons in force. @throws Refused `conflict` if SQL changed them or put earlier ones back */
async function readPersons(admin: AdminContext, { asTheyAre }: HowChanged = {}): Promise<PersonsAt> {
  if (!asTheyAre) return new RosterWatch().current(admin);
  Permit.operator(admin);
  const { persons = [], version = 0 } = (await newestSealed(admin)) ?? {};
  return { persons, version, at: await clockOf(admin.database) };
}

/** What a person becomes; undefined if they are removed. */
type PersonChange = (before: Person | undefined, others: readonly Person[], at: number) => Person | undefined;

/**
 * What it would do to write the next version. In a transaction the lane's head is locked first, so that of two changes at
 * once the later sees the earlier. A change that gives or keeps a right is refused if the list changed since it was shown.
 * One that only takes is not, so nobody can hold it up.
 */
async function planPerson(
  admin: AdminContext,
  permits: Permit | readonly Permit[],
  name: string,
  how: HowChanged,
  change: PersonChange,
  gives = false,
): Promise<PersonPlan> {
  if (admin.isWithin) await lockCommands(admin);
  const { before, after, at, version } = await changed(admin, name, how, change);
  const listing = encodePersons(after);
  if (Buffer.byteLength(listing) > listingBytesMax) {
    throw new Refused("bound", `The persons and their rights take more than ${listingBytesMax / 1024} KiB.`);
  }
  const slugs = await slugsOf(admin);
  const found = requirePerson(
    [...after, ...before].find((one) => one.name === name),
    name,
  );
  const person = shown(slugs, asSeen(admin, found), at);
  const apply = () => {
    const differ = [...new Set([...before, ...after].map((one) => one.name))]
      .map((one) => [before, after].map((all) => all.find(({ name }) => name === one)))
      .filter(([old, now]) => old !== now);
    const lines = (one: Person | undefined) => (one === undefined ? [] : linesOf(shown(slugs, one, at)));
    const [old, now] = [0, 1].map((at) => differ.flatMap((one) => lines(one[at]))) as [string[], string[]];
    const write = {
      added: now.filter((line) => !old.includes(line)),
      changed: [],
      deleted: old.filter((line) => !now.includes(line)),
    };
    const others = differ.map(([old, now]) => (now ?? old)?.name as string).filter((one) => one !== name);
    return writing(admin, permits, async (admin) => [
      person,
      [{ ...(await writeRoster(admin, listing, name, ...others)), write }],
    ]);
  };
  const leaves = gives || how.given === "kept";
  return { seen: { person: name, ...(leaves && { people: version }) }, person, apply };
}

/** All persons before and after a change of one, by name, with what becomes of what that one gave. */
async function changed(admin: AdminContext, name: string, how: HowChanged, change: PersonChange) {
  const { persons: before, version, at } = await readPersons(admin, how);
  const old = before.find((one) => one.name === name);
  const others = before.filter((one) => one !== old);
  const now = change(old, others, at);
  if (now === undefined) requirePerson(old, name);
  const all = now === undefined ? others.map((one) => forgetting(name, one, at)) : [...others, now];
  requireMayChange(admin, before, all);
  const after = await settled(admin, name, how, all, at);
  requireMayChange(admin, before, after);
  return { before, after: after.toSorted((a, b) => (a.name < b.name ? -1 : 1)), version, at };
}

/** A person to whom nothing was given by somebody who is removed: the name may be another's later. */
function forgetting(name: string, person: Person, at: number): Person {
  if (!person.holdings.some(({ by }) => by?.includes(name))) return person;
  const holdings = person.holdings.map((one) =>
    one.by ? { ...one, by: one.by.filter((giver) => giver !== name) } : one,
  );
  return { ...person, holdings: merged(holdings.filter((one) => one.by?.length !== 0 || endOf(one) > at)) };
}

/** The persons after it was settled what becomes of what somebody gave. @throws Refused `invalid` if nobody said */
async function settled(
  admin: AdminContext,
  name: string,
  { given }: HowChanged,
  persons: readonly Person[],
  at: number,
): Promise<readonly Person[]> {
  const lost = unsupported(persons, at);
  if (lost.length === 0) return persons;
  if (lost.some((one) => admin.entries.includes(one.name))) throw notOneself();
  if (given === undefined) {
    const slugs = await slugsOf(admin);
    const lines = lost.map((one) => lineOf(one.name, shownRights(slugs, [one.right], at)[0] as RightsInPlace));
    const words = `${name} gave rights that nobody would answer for: ${listed(lines)}. Say what becomes of it: leave it, as given by you (--keep-given), or take it away, too (--with-given).`;
    throw new Refused("invalid", words, { field: "given" });
  }
  return persons.map((person) => {
    const theirs = lost.filter((one) => one.name === person.name).map(({ right }) => right);
    if (theirs.length === 0) return person;
    const isLost = (one: Holding) => theirs.some((right) => isDeepStrictEqual(one, right));
    const all = each(person.holdings).flatMap((one): Holding[] => {
      if (!isLost(one)) return [one];
      if (given === "taken") return [];
      const { by: _, ...right } = one;
      return [one.by?.length && !one.by.includes(name) ? one : { ...right, ...givenBy(admin) }];
    });
    return { ...person, holdings: merged(all) };
  });
}

/**
 * The one place that judges what somebody who is no operator gives and takes: each right that differs is theirs to give.
 * @throws Refused `forbidden`
 */
function requireMayChange(admin: AdminContext, before: readonly Person[], after: readonly Person[]): void {
  const { rights, entries } = admin;
  if (rights === "operator") return;
  const rightsOf = (all: readonly Person[]) =>
    new Map(
      all.flatMap(({ name, holdings }) => each(holdings).map((one) => [JSON.stringify([name, one]), { name, one }])),
    );
  const [old, now] = [rightsOf(before), rightsOf(after)];
  const differ = [...old, ...now].filter(([key]) => old.has(key) !== now.has(key)).map(([, given]) => given);
  if (differ.some(({ name }) => entries.includes(name))) throw notOneself();
  const beyond = differ.find(({ one }) => !mayGive(rights, one))?.one;
  if (beyond === undefined) return;
  const [right] = beyond.rights;
  if (right === "grant") throw new Refused("forbidden", "Only an operator gives and takes the right `grant`.");
  const [environment] = environmentsOf(beyond.environments) as [Environment];
  const until = Math.min(
    ...([right as Right, "grant"] as const).map((one) => lastsUntil(rights, one, beyond, environment)),
  );
  const words =
    until === 0
      ? `You do not have the right to ${right} there in ${environment}, so it is not yours to give or to take.`
      : `Your right to ${right} or to grant there in ${environment} ends ${formatTime(until)}: give --until no later, and leave what lasts longer to an operator.`;
  throw new Refused("forbidden", words);
}

function notOneself(): Refused {
  return new Refused("forbidden", "Others change your own rights: ask an operator.");
}

/** Enough for some thousand persons; every request of the dashboard reads it. */
const listingBytesMax = 1024 * 1024;

type RightsPlace = Omit<Holding, "rights" | "until" | "by">;

/**
 * The places that a command names.
 * @param held - rights in places that may be named by their ids if they were deleted
 */
async function placesIn(
  admin: AdminContext,
  person: Person,
  reach: Reach,
  held: readonly Holding[],
): Promise<RightsPlace[]> {
  const slugs = await slugsOf(admin);
  const gone = held.filter(({ organizationId, projectId }) => !slugs.has(projectId ?? organizationId));
  const environments = reach.environments === null ? everyEnvironment : requireEnvironments(reach.environments);
  const id = reach.organization ?? person.organizationId;
  const slug = reach.organization ?? slugs.get(id);
  const isGone = gone.some(({ organizationId }) => organizationId === id && !slugs.has(id));
  const organization = isGone ? { id, slug: id } : slug === undefined ? slug : await findOrganization(admin, slug);
  const home = () => {
    if (organization !== undefined) return organization;
    // It was deleted. The only other one there is would be another than is meant.
    const words = `${person.name} is of no organization here: name the one that you mean with --org.`;
    throw new Refused("invalid", words);
  };
  if (reach.projects === null) return [{ organizationId: home().id, projectId: null, environments }];
  if (reach.projects.length === 0) throw new Refused("invalid", "Name at least one project.");
  const places: RightsPlace[] = [];
  for (const project of new Set(reach.projects)) {
    const where = project.includes("/") ? project : `${home().slug}/${project}`;
    const isThere = (one: Holding) =>
      where === `${slugs.get(one.organizationId) ?? one.organizationId}/${one.projectId}`;
    const { organizationId, projectId } =
      gone.find(isThere) ?? placeOf(await findProject(admin, where, "grant", environmentsOf(environments)));
    places.push({ organizationId, projectId, environments });
  }
  return places;
}

/** @throws Refused `not_found` if somebody may not give rights there */
function requirePermitToGive(admin: AdminContext, place: RightsPlace): Permit {
  const permit = Permit.find(admin, ["grant"], place, environmentsOf(place.environments));
  if (permit !== undefined) return permit;
  const there = environmentsOf(place.environments).join(" and ");
  throw new Refused("not_found", `This takes the right to grant in all projects of the organization, in ${there}.`);
}

/** Takes rights in one place away. @param holdings - with one right each */
function without(name: string, holdings: readonly Holding[], rights: readonly Right[], taken: RightsPlace): Holding[] {
  return holdings.map((holding) => {
    const isAsked =
      rights.includes(holding.rights[0] as Right) &&
      holding.organizationId === taken.organizationId &&
      (holding.environments & taken.environments) !== 0;
    if (!isAsked || (taken.projectId !== null && ![null, taken.projectId].includes(holding.projectId))) return holding;
    if (taken.projectId !== null && holding.projectId === null) {
      const words = `${name} has the right to ${holding.rights[0]} in all projects: revoke that with --all-projects, and grant it where it is to stay.`;
      throw new Refused("invalid", words);
    }
    return { ...holding, environments: holding.environments & ~taken.environments };
  });
}

/** Of all organizations and projects, by their ids. */
type Slugs = ReadonlyMap<string, string>;

async function slugsOf({ database: { db, tables } }: AdminContext): Promise<Slugs> {
  const { organizations: o, projects: p } = tables;
  const organizations = await db.select({ id: o.id, slug: o.slug }).from(o);
  const projects = await db.select({ id: p.id, slug: p.slug }).from(p);
  return new Map([...organizations, ...projects].map(({ id, slug }) => [id, slug]));
}

function shown(slugs: Slugs, { name, organizationId, signIn, holdings }: Person, at: number): PersonRecord {
  return { name, organization: slugs.get(organizationId) ?? null, signIn, rights: shownRights(slugs, holdings, at) };
}

function shownRights(slugs: Slugs, holdings: readonly Holding[], at: number): RightsInPlace[] {
  return holdings.map((holding) => ({
    rights: holding.rights,
    organization: slugs.get(holding.organizationId) ?? holding.organizationId,
    project: holding.projectId && (slugs.get(holding.projectId) ?? holding.projectId),
    environments: environmentsOf(holding.environments),
    until: holding.until ?? null,
    ended: endOf(holding) <= at,
    by: holding.by?.[0] ?? null,
  }));
}

/** A person's rights as the audit records them: a line for the person, and one for each right in each place. */
function linesOf({ name, signIn, rights }: PersonRecord): string[] {
  const who = signIn === null ? name : `${name} ${signInText(signIn)}`;
  const lines = rights.flatMap((one) =>
    one.environments.flatMap((environment) =>
      one.rights.map((right) => lineOf(name, { ...one, rights: [right], environments: [environment] })),
    ),
  );
  return [who, ...lines];
}

/** A right in one environment. The line names its end, because nothing is written when a right ends. */
function lineOf(name: string, { rights, organization, project, environments, until, by }: RightsInPlace): string {
  const end = until === null ? "" : ` until ${formatTime(until)}`;
  return `${name} ${rights} ${organization}/${project ?? "*"} ${environments}${end}${by === null ? "" : ` by ${by}`}`;
}

/** By whom a person is signed in, in words. */
export function signInText(signIn: SignInAs): string {
  const at = signIn.issuer === null ? "" : ` at ${signIn.issuer}`;
  return "subject" in signIn ? `${signIn.subject}${at}` : `group ${signIn.group}${at}`;
}

/** The name of a person never looks like an account's, `user@host`. */
function requirePersonName(name: string): void {
  if (/^[a-z0-9][a-z0-9._-]{0,63}$/.test(name)) return;
  const words = `${JSON.stringify(name)} is not a person's name: use 1 to 64 of a-z, 0-9, ., _ and -, a letter or digit first.`;
  throw new Refused("invalid", words);
}

function requireSignIn(signIn: SignInAs): void {
  requireWord("The issuer", signIn.issuer ?? "x");
  if ("subject" in signIn) requireWord("The subject", signIn.subject);
  else requireWord("The group", signIn.group);
  if (signIn.issuer === null || isIssuer(signIn.issuer)) return;
  throw new Refused("invalid", `The issuer ${issuerRule}`);
}

function requirePerson(found: Person | undefined, name: string): Person {
  if (found === undefined) throw noPerson(name);
  return found;
}

function noPerson(name: string): Refused {
  return new Refused("not_found", `There is no person ${JSON.stringify(name)}: \`keyhole person list\` shows them.`);
}
