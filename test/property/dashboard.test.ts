/**
 * Two people at once, at random, through the pages: they load a form, later send it, and in between the other one may
 * have written. A model in memory says what each of them must be told, and what is stored in the end.
 *
 * And what each table shows to people of every reach: what they may know, and nothing of the rest as if it were known.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Environment, environmentMask, environments } from "../../src/core/names.ts";
import { joined } from "../../src/core/words/text.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { storedValue } from "../../src/kinds/variables/write.ts";
import type { AuditRecord } from "../../src/people/audit/audit.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { openSet } from "../../src/people/editing/open.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { everyRight, type Right } from "../../src/serve/access/rights.ts";
import { listAudit } from "../support/audit.ts";
import { cardsOf, type Fields, personsVisitor, tableOf, type Visitor, visitorOf } from "../support/pages.ts";
import { grantRights, setVariables } from "../support/plans.ts";
import { parts, seed } from "../support/seed.ts";
import { long } from "../support/server.ts";
import { describeBoth, type World } from "../support/world.ts";

/**
 * How many actions; KEYHOLE_TEST_LONG=1 runs them all. On PostgreSQL, where each request has a connection of its own,
 * enough to load and to send every form: what is decided is decided by the same code.
 */
const actionsMax = { sqlite: long ? 10_000 : 600, postgres: long ? 10_000 : 120 };
const perRun = 60;

const names = ["A", "B", "C", "D"];
const values = ["x", "two words", "line 1\nline 2", "<b>&amp;", "ü€𝄞"];

type Action =
  | { readonly do: "set"; readonly name: string; readonly values: Partial<Record<Environment, string>> }
  | { readonly do: "delete"; readonly name: string; readonly from: readonly Environment[] }
  | { readonly do: "paste"; readonly to: Environment; readonly text: Record<string, string>; readonly prune: boolean }
  | { readonly do: "promote"; readonly from: Environment; readonly to: Environment; readonly names: readonly string[] }
  | { readonly do: "undo"; readonly in: Environment; readonly back: number };

/** `load` shows a page to one of the two and keeps its form; `send` sends the form that this person loaded last. */
type Step = { readonly person: 0 | 1 } & ({ readonly load: Action } | { readonly send: true });

const environment = fc.constantFrom(...environments);
const name = fc.constantFrom(...names);
const value = fc.constantFrom(...values);
const letter = fc.constantFrom("x", "y", "z");
const on = <Do extends string, More>(verb: Do, more: { readonly [Name in keyof More]: fc.Arbitrary<More[Name]> }) =>
  fc.record({ do: fc.constant(verb), ...more });
const action = fc.oneof(
  on("set", { name, values: fc.dictionary(environment, value, { minKeys: 1, maxKeys: 3 }) }),
  on("delete", { name, from: fc.subarray([...environments], { minLength: 1 }) }),
  on("paste", { to: environment, text: fc.dictionary(name, letter, { minKeys: 1, maxKeys: 4 }), prune: fc.boolean() }),
  on("promote", { from: environment, to: environment, names: fc.subarray(names, { minLength: 1 }) }),
  on("undo", { in: environment, back: fc.integer({ min: 1, max: 4 }) }),
) as fc.Arbitrary<Action>;
const person = fc.constantFrom<0 | 1>(0, 1);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ person, load: action }),
  fc.record({ person, send: fc.constant(true as const) }),
);

type Items = ReadonlyMap<string, string>;

/** What is written to names; null deletes. */
type Change = ReadonlyMap<string, string | null>;

/** Each environment's versions, oldest first, and the names that each wrote: version 1 is empty. */
class Model {
  readonly #versions = new Map<Environment, Items[]>(environments.map((one) => [one, [new Map<string, string>()]]));
  readonly #written = new Map<Environment, (readonly string[])[]>(environments.map((one) => [one, [[]]]));

  version(of: Environment): number {
    return this.#of(of).length;
  }

  items(of: Environment, version = this.version(of)): Items {
    return this.#of(of)[version - 1] as Items;
  }

  write(of: Environment, change: Change): void {
    const items = [...this.items(of), ...change].filter(([name]) => change.get(name) !== null);
    this.#of(of).push(new Map(items as [string, string][]));
    this.#written.get(of)?.push([...change.keys()]);
  }

  /** Whether one of these names was written after a version. */
  isWrittenSince(of: Environment, version: number, names: Iterable<string>): boolean {
    const since = new Set(this.#written.get(of)?.slice(version).flat());
    return [...names].some((name) => since.has(name));
  }

  #of(environment: Environment): Items[] {
    return this.#versions.get(environment) as Items[];
  }
}

/** A form that a person has filled in, and what sending it does unless somebody wrote the same names since `seen`. */
type Loaded = {
  readonly action: string;
  readonly fields: Fields;
  readonly seen: Readonly<Record<Environment, number>>;
  /** Undefined if it is not what the page showed any more. */
  readonly changes: () => readonly (readonly [Environment, Change])[] | undefined;
};

class Play {
  readonly #w: World;
  readonly #where: string;
  readonly #people: readonly Visitor[];
  readonly #model = new Model();
  readonly #loaded: (Loaded | undefined)[] = [undefined, undefined];

  constructor(w: World, where: string, people: readonly Visitor[]) {
    this.#w = w;
    this.#where = where;
    this.#people = people;
  }

  async take(step: Step): Promise<void> {
    const visitor = this.#people[step.person] as Visitor;
    if ("load" in step) {
      this.#loaded[step.person] = await this.#load(visitor, step.load);
      return;
    }
    const loaded = this.#loaded[step.person];
    if (loaded === undefined) return;
    this.#loaded[step.person] = undefined;
    const answer = await visitor.send(loaded.action, loaded.fields);
    const changes = loaded.changes();
    const isOurs = ([of, change]: readonly [Environment, Change]) =>
      !this.#model.isWrittenSince(of, loaded.seen[of], change.keys());
    if (!changes?.every(isOurs)) {
      // What is gone is not found.
      expect([404, 409]).toContain(answer.status);
      return;
    }
    expect(answer).toMatchObject({ status: 200, to: expect.any(String) });
    for (const [of, change] of changes) if (change.size > 0) this.#model.write(of, change);
  }

  /** Loads the page of an action. Undefined if the page offers nothing, since it would change nothing. */
  async #load(visitor: Visitor, action: Action): Promise<Loaded | undefined> {
    const page = `/p/${this.#where}`;
    const again = { again: this.#where };
    const versions = environments.map((one) => [one, this.#model.version(one)]);
    const seen = Object.fromEntries(versions) as Record<Environment, number>;
    if (action.do === "set") {
      const set = `${page}/variables/set`;
      const form = await visitor.form(`${set}?name=${action.name}`, set);
      const given = Object.entries(action.values) as [Environment, string][];
      const fields = Object.fromEntries(given.map(([environment, value]) => [`value.${environment}`, value]));
      const changes = () => given.map(([at, value]) => [at, new Map([[action.name, value]])] as const);
      return { action: set, fields: { ...form, ...fields, again: action.name }, seen, changes };
    }
    if (action.do === "delete") {
      const from = action.from.filter((environment) => this.#model.items(environment).has(action.name));
      if (from.length === 0) return undefined;
      const form = await visitor.form(`${page}/variables/set?name=${action.name}`, `${page}/variables/delete`);
      const changes = () => from.map((environment) => [environment, new Map([[action.name, null]])] as const);
      return { action: `${page}/variables/delete`, fields: { ...form, from, again: action.name }, seen, changes };
    }
    if (action.do === "paste") {
      const lines = Object.entries(action.text).map(([name, value]) => `${name}=${value}\n`);
      const paste = `${page}/variables/paste`;
      const pasted = { environment: action.to, text: lines.join(""), ...(action.prune && { prune: "yes" }) };
      const { to = "" } = await visitor.send(paste, { ...(await visitor.form(paste, paste)), ...pasted });
      const change = (): Change => {
        const gone = [...this.#model.items(action.to).keys()].filter((name) => action.prune && !(name in action.text));
        return new Map([...Object.entries(action.text), ...gone.map((name) => [name, null] as const)]);
      };
      const form = await this.#offered(visitor, to, to, this.#differing(action.to, change()));
      const plan = () => {
        const isThere = (name: string) => this.#model.items(action.to).has(name);
        const named = [...this.#differing(action.to, change())].map(([name, value]) => [
          name,
          value === null,
          isThere(name),
        ]);
        return JSON.stringify(named.sort());
      };
      const planned = plan();
      const changes = () => (plan() === planned ? [[action.to, change()] as const] : undefined);
      return form && { action: to, fields: { ...form, ...again }, seen, changes };
    }
    if (action.do === "promote") {
      const { from, to: target, names } = action;
      const source = this.#model.items(from);
      const change = (among: readonly string[]): Change =>
        this.#differing(target, new Map(among.map((name) => [name, this.#model.items(from).get(name) ?? null])));
      const copied = [...change(names.filter((name) => source.has(name))).keys()];
      if (from === target || copied.length === 0) return undefined;
      const query = new URLSearchParams({ from, to: target });
      const promote = `${page}/variables/promote`;
      const form = await visitor.form(`${promote}?${query}`, promote);
      const { to = "" } = await visitor.send(promote, { ...form, names: copied });
      const apply = await this.#offered(visitor, to, to, change(copied));
      const changes = () =>
        this.#model.isWrittenSince(from, seen[from], copied) ? undefined : [[target, change(copied)] as const];
      return apply && { action: to, fields: { ...apply, ...again }, seen, changes };
    }
    const to = seen[action.in] - action.back;
    if (to < 1) return undefined;
    const query = new URLSearchParams({ kind: "variables", environment: action.in, to: String(to) });
    const [before, after] = [this.#model.items(action.in), this.#model.items(action.in, to)];
    const both = [...new Set([...before.keys(), ...after.keys()])];
    const change = this.#differing(action.in, new Map(both.map((name) => [name, after.get(name) ?? null])));
    const form = await this.#offered(visitor, `${page}/undo?${query}`, `${page}/undo`, change);
    const changes = () =>
      this.#model.version(action.in) === seen[action.in] ? [[action.in, change] as const] : undefined;
    return form && { action: `${page}/undo`, fields: { ...form, ...again }, seen, changes };
  }

  /** The part of a change that makes something else of what is there. */
  #differing(environment: Environment, change: Change): Change {
    const items = this.#model.items(environment);
    return new Map([...change].filter(([name, value]) => (items.get(name) ?? null) !== value));
  }

  /** The form of a page that shows what it would do. There is none exactly if that is nothing. */
  async #offered(visitor: Visitor, path: string, action: string, change: Change): Promise<Fields | undefined> {
    const form = await visitor.form(path, action);
    expect([path, form === undefined]).toEqual([path, change.size === 0]);
    return form;
  }

  /** What is stored is the model's, and the grid says so. */
  async compare(): Promise<void> {
    const project = await findProject(this.#w.admin, this.#where, "write");
    for (const environment of environments) {
      const { items, version } = await openSet(this.#w.admin, { project, descriptor: variables, environment });
      const stored = new Map([...items].map(([name, item]) => [name, storedValue(item)]));
      expect(Object.fromEntries(stored)).toEqual(Object.fromEntries(this.#model.items(environment)));
      expect(version).toBe(this.#model.version(environment));
    }
    const grid = `/p/${this.#where}/variables`;
    const visitor = this.#people[0] as Visitor;
    const asked = await visitor.hidden(grid, `${grid}/compare`);
    const html = asked["project"]
      ? await (await visitor.submit(`${grid}/compare`, asked)).text()
      : (await visitor.page(grid)).html;
    for (const name of names) {
      const there = environments.filter((environment) => this.#model.items(environment).has(name));
      const row = new RegExp(`<tr><th[^>]*>(?:(?!</tr>).)*name=${name}"(?:(?!</tr>).)*</tr>`).exec(html)?.[0] ?? "";
      const cells = [...row.matchAll(/<td class="(\w+)/g)].map(([, cell]) => cell);
      if (there.length === 0) expect([name, cells]).toEqual([name, []]);
      else expect([name, cells.filter((cell) => cell === "no").length]).toEqual([name, 3 - there.length]);
      const different = new Set(there.map((environment) => this.#model.items(environment).get(name)));
      const letters = there.length > 1 ? "abc".slice(0, different.size) : "";
      expect([name, [...new Set(cells)].filter((cell = "") => "abc".includes(cell)).join("")]).toEqual([name, letters]);
    }
  }
}

describeBoth("two people at once, at random, through the pages", (w, dialect) => {
  test.each(parts(Math.round(actionsMax[dialect] / perRun)))(
    "each writes what their page showed, or is refused, and nothing else is stored, run %i",
    async (run) => {
      const people = [await visitorOf(w, "ana@host"), await visitorOf(w, "bo@host")];
      const { where } = await w.place();
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: perRun, maxLength: perRun }), async (steps) => {
          const play = new Play(w, where, people);
          for (const one of steps) await play.take(one);
          await play.compare();
        }),
        { seed: seed + run, numRuns: 1, endOnFailure: true },
      );
      expect(people.flatMap(({ reported }) => reported)).toEqual([]);
    },
  );
});

/** Somebody's rights, or a key's reach, in `web`, in `other`, or in all projects. */
type Where = "web" | "other" | "all";
type Held = { readonly rights: readonly Right[]; readonly mask: number; readonly where: Where };
type Keyed = { readonly mask: number; readonly where: Where; readonly surface: "rest_api" | "mcp_server" };
type Tabled = {
  readonly persons: readonly (readonly Held[])[];
  readonly keys: readonly Keyed[];
  /** Of each item, in which environments of `web` it is. */
  readonly items: readonly number[];
  /** Where the viewers may read the audit, of whom the first sees development, the second staging, the third both … */
  readonly audits: readonly number[];
};

const mask = fc.integer({ min: 1, max: 7 });
const reach = fc.constantFrom<Where>("web", "other", "all");
const tabled: fc.Arbitrary<Tabled> = fc.record({
  persons: fc.array(
    fc.array(fc.record({ rights: fc.subarray([...everyRight], { minLength: 1 }), mask, where: reach }), {
      minLength: 1,
      maxLength: 2,
    }),
    { minLength: 2, maxLength: 3 },
  ),
  keys: fc.array(
    fc.record({ mask, where: reach, surface: fc.constantFrom<Keyed["surface"]>("rest_api", "mcp_server") }),
    { minLength: 3, maxLength: 5 },
  ),
  items: fc.array(mask, { minLength: 3, maxLength: 5 }),
  audits: fc.array(fc.integer({ min: 0, max: 7 }), { minLength: 7, maxLength: 7 }),
});

const of = (held: number) => environments.filter((environment) => (held & environmentMask(environment)) !== 0);
const reachOf = ({ mask, where }: Pick<Held, "mask" | "where">) => ({
  projects: where === "all" ? null : [where],
  environments: of(mask),
});

/** What pages must say of `web` to somebody with these rights. */
class Tables {
  readonly #persons: ReadonlyMap<string, readonly Held[]>;
  readonly #world: Tabled;
  readonly #organization: string;

  constructor(persons: ReadonlyMap<string, readonly Held[]>, world: Tabled, organization: string) {
    this.#persons = persons;
    this.#world = world;
    this.#organization = organization;
  }

  keyName(at: number): string {
    return `key-${at}-${this.#organization}`;
  }

  rightsIn(held: readonly Held[], environment: Environment): Right[] {
    const there = held.filter(({ mask, where }) => where !== "other" && of(mask).includes(environment));
    return everyRight.filter((right) => there.some(({ rights }) => rights.includes(right)));
  }

  /** The persons of the page of who can read it. @param columns - the environments that are asked about and seen */
  persons(columns: readonly Environment[]): Record<string, string>[] {
    const rows = [...this.#persons].map(([Name, held]): Record<string, string> => {
      return { Name, ...each(columns, (one) => inWords(this.rightsIn(held, one))) };
    });
    return rows.filter((row) => columns.some((one) => row[one] !== ""));
  }

  /** Its keys. @param asked - in any of these; @param columns - the environments that are seen */
  keys(asked: readonly Environment[], columns: readonly Environment[]): Record<string, string>[] {
    return this.#world.keys.flatMap(({ mask, where, surface }, at) => {
      if (where === "other" || !of(mask).some((one) => asked.includes(one))) return [];
      const gets = surface === "rest_api" ? "● values" : "○ names";
      return [{ Name: this.keyName(at), ...each(columns, (one) => (of(mask).includes(one) ? gets : "")) }];
    });
  }

  /** The names of the keys that somebody may know of at all. */
  keysOf(held: readonly Held[]): string[] {
    const meets = (a: Held, b: Keyed) =>
      (a.where === b.where || "all" === a.where || "all" === b.where) && a.mask & b.mask;
    const seeing = held.filter(({ rights }) => rights.includes("see") || rights.includes("keys"));
    return this.#world.keys.flatMap((key, at) => (seeing.some((one) => meets(one, key)) ? [this.keyName(at)] : []));
  }

  /** Who reads a value, as the page of an item says. */
  readers(environment: Environment): string {
    const persons = [...this.#persons].filter(([, held]) => this.rightsIn(held, environment).includes("reveal"));
    const keys = this.keys([environment], [environment]).filter((row) => row[environment] === "● values");
    const all = [...persons.map(([name]) => name), ...keys.map((row) => `key ${row["Name"]}`)];
    return all.join("; ") || "Nobody but operators.";
  }

  /** The items of a grid. */
  items(seen: readonly Environment[]): Record<string, string>[] {
    const rows = this.#world.items.map((mask, at): Record<string, string> => {
      return { Name: `ITEM_${at}`, ...each(seen, (one) => (of(mask).includes(one) ? "TIME" : "missing")) };
    });
    return rows.filter((row) => seen.some((one) => row[one] === "TIME"));
  }
}

/** As pages say rights: those that many people have together have words of their own. */
function inWords(rights: readonly Right[]): string {
  const text = rights.join(", ");
  if (rights.length === everyRight.length) return "● all rights";
  return text.replace(/^see(, reveal)?(, write)?/, (_, reveal?: string, write = "") => {
    if (reveal === undefined) return `○ names${write}`;
    return write === "" ? "● reads" : "● reads and writes";
  });
}

function each(columns: readonly Environment[], cell: (environment: Environment) => string): Record<string, string> {
  return Object.fromEntries(columns.map((one) => [one, cell(one)]));
}

/** What the pages say to somebody. */
async function told(visitor: Visitor, where: string, items: number) {
  const get = async (page: string) => visitor.page(page);
  const only = (rows: Record<string, string>[] | undefined, ...left: string[]) =>
    (rows ?? [])
      .map((row) => Object.fromEntries(Object.entries(row).filter(([heading]) => !left.includes(heading))))
      .sort((a, b) => ((a["Name"] ?? "") < (b["Name"] ?? "") ? -1 : 1));
  const access = await Array.fromAsync(["", ...environments], async (environment) => {
    const { status, ...page } = await get(`/p/${where}/access?environment=${environment}`);
    const html = page.html.replace(/<small class="brief">.*?<\/small>/gs, ""); // on a phone, in place of the other cells
    const persons = only(tableOf(html, /^The persons with rights/), "Signs in as");
    const keys = only(tableOf(html, /^The keys and trusts/), "Type", "Status", "Expires", "Last used", "Values of");
    const none = [...html.matchAll(/class="empty">([^.<]*\.)/g)].map(([, sentence]) => sentence);
    return [status, persons, keys, none];
  });
  const cards = await Array.fromAsync({ length: items }, async (_, at) => {
    const { status, html } = await get(`/p/${where}/variables/item?name=ITEM_${at}`);
    const shown = cardsOf(html).map((card) => [card["environment"], card["Who can read it"], card["Who read it last"]]);
    return [status, /You may see [a-z ]+ alone\./.test(html), shown];
  });
  const project = tableOf((await get("/projects")).html, /^Projects$/)?.find((row) => row["Project"] === where);
  const found = tableOf((await get("/find?q=ITEM_")).html, /^What has it/)?.filter((row) => row["Project"] === where);
  const named = ["/", "/keys?show=canaries", "/requests"];
  const pages = await Array.fromAsync(named, async (page) => (await get(page)).html);
  const counted = tableOf((await get(`/audit?project=${where}`)).html, /^Who, what and how often$/);
  return {
    access,
    grid: only(tableOf((await get(`/p/${where}/variables`)).html, /^The variables of/), "Last read"),
    cards,
    keys: only(tableOf((await get("/keys")).html, /^Keys and trusts/)).flatMap(
      ({ Name = "" }) => (Name.endsWith(`-${where.split("/")[0]}`) ? [Name] : []), // an operator sees all of them
    ),
    project: [project?.["variables"], project?.["Missing in production"]],
    found: only(found).map((row) => [row["Name"], row["Where it is"]?.match(/development|staging|production/g)]),
    speaksForAll: pages.map((html) => !html.includes("What you may not see is not counted.")),
    counted: counted?.reduce((sum, row) => sum + Number(row["Times"]), 0),
  };
}

describeBoth("every table, for people of every reach and under every filter", (w, dialect) => {
  test.each(parts(dialect === "sqlite" ? 2 : 1))("says what they may know, run %i", async (run) => {
    const [world] = fc.sample(tabled, { seed: seed + run, numRuns: 1 }) as [Tabled];
    const { organization, where } = await w.place();
    await w.project(organization, "other", { variables: { staging: { ITEM_OF_OTHER: "1" } } });
    for (const environment of environments) {
      const names = world.items.flatMap((mask, at) => (of(mask).includes(environment) ? [`ITEM_${at}`] : []));
      const entries = names.map((name) => ({ name, value: name }));
      await setVariables(w.admin, where, environment, entries);
    }
    const persons = new Map<string, readonly Held[]>();
    const model = new Tables(persons, world, organization.slug);
    for (const environment of of(world.items[0] ?? 0)) await revealVariable(w.admin, where, environment, "ITEM_0");
    await revokeKey(w.admin, (await w.key(organization)).id);
    for (const [at, { surface, mask, where }] of world.keys.entries()) {
      const reach = { environments: of(mask), ...(where !== "all" && { projects: [where] }) };
      await w.key(organization, { ...reach, name: model.keyName(at), surfaces: [surface] });
    }
    const add = async (title: string, held: readonly Held[]) => {
      const name = `${title}-${organization.slug}`;
      const signIn = { issuer: "https://id.example", subject: name };
      await addPerson(w.admin, { name, organization: organization.slug, signIn });
      for (const one of held) await grantRights(w.admin, name, { rights: one.rights, ...reachOf(one) });
      persons.set(name, held);
      return personsVisitor(w, signIn);
    };
    for (const [at, held] of world.persons.entries()) await add(`p${at}`, held);
    const viewers: (readonly [Visitor, readonly Held[]])[] = [
      [await visitorOf(w), [{ rights: everyRight, mask: 7, where: "all" }]],
    ];
    for (const [at, audit] of world.audits.entries()) {
      const more: Held[] = audit === 0 ? [] : [{ rights: ["audit"], mask: audit, where: "web" }];
      const held: Held[] = [{ rights: ["see"], mask: at + 1, where: "web" }, ...more];
      viewers.push([await add(`see${at + 1}`, held), held]);
    }
    const entries = await listAudit(w.admin, { project: where, limit: 1000 });
    for (const [visitor, held] of viewers) {
      const mayIn = (right: Right) => environments.filter((one) => model.rightsIn(held, one).includes(right));
      const [seen, audited] = [mayIn("see"), mayIn("audit")];
      const nobody = `Nobody, as far as ${audited.length === 3 ? "the audit goes back" : "you may know"}.`;
      const access = ["" as const, ...environments].map((filter) => {
        const asked = filter === "" ? seen : [filter];
        if (asked.some((one) => !seen.includes(one))) return [404, [], [], []];
        const there = asked.length === 3 ? "" : ` in ${joined(asked)}`;
        const [persons, keys] = [model.persons(asked), model.keys(asked, seen)];
        const none = [
          ...(keys.length === 0 ? [`No valid key or trust reaches ${where}${there}.`] : []),
          ...(persons.length === 0 ? [`Nobody has rights here${there}.`] : []),
        ];
        return [200, persons, keys, none];
      });
      const cards = world.items.map((mask, at) => {
        const there = of(mask);
        if (!seen.some((one) => there.includes(one))) return [404, false, []];
        const shown = seen.map((one) => {
          if (!there.includes(one)) return [one, undefined, undefined];
          const read = at === 0 ? `${w.admin.actor.name}, TIME` : nobody;
          return [one, model.readers(one), audited.includes(one) ? read : undefined];
        });
        return [200, seen.length < 3, shown];
      });
      const grid = model.items(seen);
      const missing = grid.filter((row) => row["production"] === "missing").length;
      const isCounted = ({ environment }: AuditRecord) =>
        environment === null ? audited.length === 3 : audited.includes(environment as Environment);
      const count = entries.filter(isCounted).length;
      expect([held, await told(visitor, where, world.items.length)]).toEqual([
        held,
        {
          access,
          grid,
          cards,
          keys: model.keysOf(held),
          project: [String(grid.length), missing > 0 ? String(missing) : ""],
          found: grid.map((row) => [row["Name"], seen.filter((one) => row[one] === "TIME")]),
          counted: count === 0 ? undefined : count,
          speaksForAll: Array(3).fill(visitor === viewers[0]?.[0]),
        },
      ] as never);
    }
  });
});
