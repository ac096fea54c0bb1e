import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import { environmentsOf } from "../../src/core/names.ts";
import { Refused } from "../../src/core/refused.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { RosterWatch, whoIs } from "../../src/people/desk/roster.ts";
import { unsupported } from "../../src/people/persons/given.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import type { Holding } from "../../src/serve/access/rights.ts";
import type { Person } from "../../src/serve/access/roster.ts";
import type { Database } from "../../src/store/database.ts";
import { grantRights, removePerson, revokeRights } from "../support/plans.ts";
import { seed } from "../support/seed.ts";
import { describeBoth, type World } from "../support/world.ts";

/*
 * Persons who give each other rights, take them away and leave, in random order, while time passes and somebody changes
 * the database. In the model a right is a fact, and one that a person gave has a chain of facts up to an operator's.
 */

const people = ["a", "b", "c"] as const;
type Name = (typeof people)[number];
const rights = ["see", "write", "grant"] as const;
type Right = (typeof rights)[number];
const places = ["all", "web", "api"] as const;
type Place = (typeof places)[number];

/** @param by - null for an operator; end - infinity for never */
type Fact = {
  readonly of: Name;
  readonly right: Right;
  readonly place: Place;
  readonly environment: string;
  readonly end: number;
  readonly by: Name | null;
};

type Step = {
  readonly deed: "give" | "take" | "remove" | "wait" | "attack";
  readonly actor: Name | null;
  readonly to: Name;
  readonly rights: readonly Right[];
  readonly place: Place;
  readonly mask: number;
  /** In hours. */
  readonly lasts: number | null;
  readonly given: "kept" | "taken" | undefined;
  readonly attack: number;
};

const anyStep: fc.Arbitrary<Step> = fc.record({
  deed: fc.constantFrom("give", "give", "give", "take", "take", "remove", "wait", "attack"),
  actor: fc.constantFrom(null, null, "a", "a", "a", "b", "b", "c"),
  to: fc.constantFrom("a", "b", "b", "c", "c"),
  rights: fc.constantFrom<Right[]>(["see"], ["write"], ["see", "write"], ["grant"], ["see", "write", "grant"]),
  place: fc.constantFrom(...places),
  mask: fc.constantFrom(1, 3, 7),
  lasts: fc.constantFrom(null, null, 2, 4, 8),
  given: fc.constantFrom(undefined, "kept", "kept", "taken", "taken"),
  attack: fc.nat(2),
});

const key = (fact: Fact) => JSON.stringify(Object.values(fact), (_, value) => (value === Infinity ? "never" : value));
const keys = (facts: readonly Fact[]) => facts.map(key).sort();
const covers = (wide: Place, narrow: Place) => wide === "all" || wide === narrow;

/** Whether a fact comes from an operator, by facts that last as long. @param path - those that must not support themselves */
function comesFromOperator(fact: Fact, all: readonly Fact[], path: readonly Fact[] = []): boolean {
  if (fact.by === null) return true;
  return [fact.right, "grant"].every((needed) =>
    all.some(
      (one) =>
        one.of === fact.by &&
        one.right === needed &&
        one.environment === fact.environment &&
        covers(one.place, fact.place) &&
        one.end >= fact.end &&
        ![...path, fact].includes(one) &&
        comesFromOperator(one, all, [...path, fact]),
    ),
  );
}

/** What a step makes of the facts; undefined if it is refused. */
function modelOf(facts: readonly Fact[], step: Step, now: number): readonly Fact[] | undefined {
  const { deed, actor, to, place } = step;
  const environments = environmentsOf(step.mask) as readonly string[];
  const isHeld = (right: Right, at: Fact, end: number) =>
    facts.some(
      (one) =>
        one.of === actor &&
        one.right === right &&
        one.environment === at.environment &&
        covers(one.place, at.place) &&
        one.end > now &&
        one.end >= end,
    );
  const asked = step.rights.flatMap((right) =>
    environments.map(
      (environment): Fact => ({
        of: to,
        right,
        place,
        environment,
        end: step.lasts === null ? Infinity : now + step.lasts,
        by: actor,
      }),
    ),
  );
  const isAsked = (fact: Fact) =>
    fact.of === to && step.rights.includes(fact.right) && environments.includes(fact.environment);
  if (actor !== null && deed === "remove") return undefined;
  if (actor !== null && !asked.every((one) => isHeld("grant", one, 0))) return undefined;
  let next: readonly Fact[];
  if (deed === "give") {
    const isReplaced = (fact: Fact) => isAsked(fact) && fact.place === place && (actor === null || fact.by === actor);
    next = [...facts.filter((fact) => !isReplaced(fact)), ...asked];
  } else if (deed === "take") {
    if (place !== "all" && facts.some((fact) => isAsked(fact) && fact.place === "all")) return undefined;
    next = facts.filter((fact) => !(isAsked(fact) && covers(place, fact.place)));
  } else {
    next = facts.filter((fact) => fact.of !== to);
    // What had ended is nobody's, and whoever gave it is gone.
    next = next.filter((fact) => fact.by !== to || fact.end > now);
  }
  const isGivers = (one: Fact) =>
    one.right !== "grant" && isHeld(one.right, one, one.end) && isHeld("grant", one, one.end);
  const isTheirs = (changed: readonly Fact[]) => {
    const [before, after] = [new Set(keys(facts)), new Set(keys(changed))];
    const differ = [...facts, ...changed].filter((fact) => before.has(key(fact)) !== after.has(key(fact)));
    return actor === null || differ.every((one) => one.of !== actor && isGivers(one));
  };
  if (!isTheirs(next)) return undefined;
  const alive = next.filter((fact) => fact.end > now);
  const lost = alive.filter((fact) => !comesFromOperator(fact, alive));
  if (lost.length > 0) {
    if (step.given === undefined || lost.some((fact) => fact.of === actor)) return undefined;
    const isLost = new Set(lost);
    const kept = (fact: Fact) => (fact.by === to ? { ...fact, by: actor } : fact);
    next = next.flatMap((fact) => (!isLost.has(fact) ? [fact] : step.given === "kept" ? [kept(fact)] : []));
  }
  // One giver's right in one place has one end, the latest.
  next = next.filter(
    (one) =>
      !next.some(
        (other) =>
          key({ ...other, end: 0 }) === key({ ...one, end: 0 }) &&
          (other.end > one.end || (other.end === one.end && next.indexOf(other) < next.indexOf(one))),
      ),
  );
  return isTheirs(next) ? next : undefined;
}

/** A database whose clock says what `now` returns. */
function withClock(database: Database, now: () => number): Database {
  return {
    ...database,
    db: database.db,
    get nowMs() {
      return sql<number>`${sql.raw(String(now()))}`;
    },
  };
}

const hour = 3_600_000;

test("two persons keep no right by giving it to each other", () => {
  const place = { organizationId: "o", projectId: null, environments: 7 };
  const person = (name: string, ...holdings: Holding[]) => ({ name, organizationId: "o", signIn: null, holdings });
  const grant = { ...place, rights: ["grant"] } as const;
  const write = (by: string) => ({ ...place, rights: ["write"], by: [by] }) as const;
  const both = [person("a", grant, write("b")), person("b", grant, write("a"))];
  expect(unsupported(both, 0)).toHaveLength(6);
  const operators = { ...place, rights: ["write"], until: 5 } as const;
  expect(unsupported([person("a", grant, write("b"), operators), both[1] as Person], 0)).toHaveLength(6);
  const lasting = { ...operators, until: Infinity };
  expect(unsupported([person("a", grant, write("b"), lasting), both[1] as Person], 0)).toEqual([]);
});

describeBoth("persons with `grant`", (w, dialect) => {
  test("give and take what the model says, and no right lasts beyond one's own", async () => {
    const count = { done: 0, byPersons: 0, refused: 0, settled: 0, attacks: 0 };
    let start = Date.now() + 1000 * hour;
    await fc.assert(
      fc.asyncProperty(fc.array(anyStep, { minLength: 8, maxLength: 16 }), async (steps) => {
        start += 1000 * hour;
        const run = await Run.begin(w, start);
        let [facts, hours]: [readonly Fact[], number] = [[], 0];
        for (const step of [...opening, ...steps]) {
          if (step.deed === "wait") hours += 1;
          run.now = start + hours * hour;
          if (step.deed === "wait") continue;
          if (step.deed === "attack") {
            count.attacks += await attacked(w, run, step.attack);
            continue;
          }
          const expected = modelOf(facts, step, hours);
          const isDone = await run.do(step);
          expect([step, isDone]).toEqual([step, expected !== undefined]);
          count[isDone ? "done" : "refused"] += 1;
          if (isDone && step.actor !== null) count.byPersons += 1;
          if (expected && !modelOf(facts, { ...step, given: undefined }, hours)) count.settled += 1;
          facts = expected ?? facts;
          expect(keys(await run.facts(start))).toEqual(keys(facts));
          const alive = facts.filter(({ end }) => end > hours);
          expect(alive.filter((fact) => !comesFromOperator(fact, alive))).toEqual([]);
        }
      }),
      { numRuns: dialect === "sqlite" ? 40 : 12, seed, endOnFailure: true },
    );
    const seldom = Object.entries(count).filter(([, times]) => times < 5);
    expect(seldom).toEqual([]);
  });
});

/** Two persons who may give, and have given. */
const opening: readonly Step[] = [
  { to: "a", place: "all", lasts: null },
  { to: "b", place: "web", lasts: 8 },
  { to: "c", place: "web", lasts: 4, actor: "b", rights: ["see"] } as const,
  { to: "b", place: "api", lasts: null, actor: "a", rights: ["write"] } as const,
].map((step) => ({ deed: "give", actor: null, rights, mask: 7, given: undefined, attack: 0, ...step }) as Step);

/** An organization with persons of its own, at a time of its own. */
class Run {
  readonly #w: World;
  readonly #organization: { readonly id: string; readonly slug: string };
  readonly #projects: ReadonlyMap<string, Place>;
  now: number;

  private constructor(
    w: World,
    now: number,
    organization: { readonly id: string; readonly slug: string },
    projects: ReadonlyMap<string, Place>,
  ) {
    this.#w = w;
    this.now = now;
    this.#organization = organization;
    this.#projects = projects;
  }

  static async begin(w: World, now: number): Promise<Run> {
    const organization = await w.organization();
    const projects = new Map<string, Place>();
    for (const slug of ["web", "api"] as const) projects.set((await w.project(organization, slug)).id, slug);
    const run = new Run(w, now, organization, projects);
    for (const one of people) await run.#add(one);
    return run;
  }

  get operator(): AdminContext {
    const { admin } = this.#w;
    return { ...admin, now: () => this.now, database: withClock(admin.database, () => this.now) };
  }

  nameOf(one: Name): string {
    return `${one}-${this.#organization.slug}`;
  }

  /** Who comes through the door. */
  async as(one: Name): Promise<AdminContext> {
    const { installation } = this.#w;
    const open: typeof installation.open = (use) => withClock(installation.open(use), () => this.now);
    return { ...this.operator, ...(await whoIs({ ...installation, open }, this.nameOf(one))) };
  }

  #add(one: Name) {
    const asked = { name: this.nameOf(one), organization: this.#organization.slug, signIn: null, again: true };
    return addPerson(this.operator, asked);
  }

  /** @returns false if it was refused */
  async do({ deed, actor, to, rights, place, mask, lasts, given }: Step): Promise<boolean> {
    const admin = actor === null ? this.operator : await this.as(actor);
    const projects = place === "all" ? null : [place];
    const reach = { rights, organization: this.#organization.slug, projects, environments: environmentsOf(mask) };
    const endFrom = lasts === null ? undefined : (startMs: number) => startMs + lasts * hour;
    const name = this.nameOf(to);
    try {
      if (deed === "give") await grantRights(admin, name, { ...reach, endFrom }, { given });
      else if (deed === "take") await revokeRights(admin, name, reach, { given });
      else {
        await removePerson(admin, name, { given });
        await this.#add(to);
      }
      return true;
    } catch (error) {
      if (error instanceof Refused && ["invalid", "forbidden", "not_found"].includes(error.kind)) return false;
      throw error;
    }
  }

  /** What is in force, with ends in hours. */
  async facts(start: number): Promise<Fact[]> {
    const { persons } = await new RosterWatch().current(this.operator);
    const nameless = (name: string) => people.find((one) => this.nameOf(one) === name) as Name;
    const ours = persons.filter(({ organizationId }) => organizationId === this.#organization.id);
    return ours.flatMap(({ name, holdings }) =>
      holdings.flatMap(({ rights, projectId, environments, until, by }) =>
        environmentsOf(environments).flatMap((environment) =>
          rights.map((right) => ({
            of: nameless(name),
            right: right as Right,
            place: projectId === null ? "all" : (this.#projects.get(projectId) as Place),
            environment,
            end: until === undefined ? Infinity : (until - start) / hour,
            by: by === undefined ? null : nameless(by[0] as string),
          })),
        ),
      ),
    );
  }
}

/** Changes the newest list with SQL: nobody comes in with it. Then puts it right. */
async function attacked(w: World, run: Run, kind: number): Promise<number> {
  const newest = "version = (select max(version) from rosters)";
  const [kept, before] = await w.run("select * from rosters order by version desc limit 2");
  if (kept === undefined || before === undefined) return 0;
  const edits = [
    ["update rosters set listing = replace(listing, ?, ?) where version = ?", ["see", "reveal", kept["version"]]],
    ["update rosters set listing = ?, mac = ? where version = ?", [before["listing"], before["mac"], kept["version"]]],
    [`delete from rosters where ${newest}`, []],
  ] as const;
  const [text, values] = edits[kind] as (typeof edits)[number];
  await w.run(text, [...values]);
  const distrust = { kind: "conflict", message: expect.stringContaining("failed verification") };
  await expect(run.as("a")).rejects.toMatchObject(distrust);
  await expect(grantRights(run.operator, run.nameOf("a"), everything)).rejects.toMatchObject(distrust);
  await w.run("delete from rosters where version = ?", [kept["version"]]);
  const row = ["id", "version", "listing", "mac"].map((column) => kept[column]);
  await w.run("insert into rosters (id, version, listing, mac) values (?, ?, ?, ?)", row);
  return 1;
}

const everything = { rights, projects: null, environments: null };
