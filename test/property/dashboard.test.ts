/**
 * Two people at once, at random, through the pages: they load a form, later send it, and in between the other one may
 * have written. A model in memory says what each of them must be told, and what is stored in the end.
 */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { type Environment, environments } from "../../src/core/names.ts";
import { findProject } from "../../src/desk/projects.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { storedValue } from "../../src/kinds/variables/write.ts";
import { openSet } from "../../src/sets/open.ts";
import { type Fields, type Visitor, visitorOf } from "../support/pages.ts";
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

/** Each environment's versions, oldest first: version 1 is empty. */
class Model {
  readonly #versions = new Map<Environment, Items[]>(environments.map((one) => [one, [new Map<string, string>()]]));

  version(of: Environment): number {
    return this.#of(of).length;
  }

  items(of: Environment, version = this.version(of)): Items {
    return this.#of(of)[version - 1] as Items;
  }

  write(of: Environment, items: Items): void {
    this.#of(of).push(items);
  }

  #of(environment: Environment): Items[] {
    return this.#versions.get(environment) as Items[];
  }
}

/** A form that a person has filled in, and what sending it does unless somebody wrote one of the `seen` versions. */
type Loaded = {
  readonly action: string;
  readonly fields: Fields;
  readonly seen: ReadonlyMap<Environment, number>;
  readonly writes: ReadonlyMap<Environment, Items>;
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
    const isStale = [...loaded.seen].some(([environment, version]) => this.#model.version(environment) !== version);
    if (isStale) {
      expect(answer).toMatchObject({ status: 409, error: expect.stringContaining("Nothing was") });
      return;
    }
    expect(answer).toMatchObject({ status: 200, to: expect.any(String) });
    for (const [environment, items] of loaded.writes) this.#model.write(environment, items);
  }

  /** Loads the page of an action. Undefined if the page offers nothing, since it would change nothing. */
  async #load(visitor: Visitor, action: Action): Promise<Loaded | undefined> {
    const page = `/p/${this.#where}`;
    const again = { again: this.#where };
    if (action.do === "set") {
      const form = await visitor.form(`${page}/variables/set?name=${action.name}`, `${page}/variables/set`);
      const given = Object.entries(action.values) as [Environment, string][];
      const fields = Object.fromEntries(given.map(([environment, value]) => [`value.${environment}`, value]));
      const writes = given.map(
        ([environment, value]) => [environment, this.#with(environment, { [action.name]: value })] as const,
      );
      return {
        action: `${page}/variables/set`,
        fields: { ...form, ...fields, again: action.name },
        ...this.#of(writes),
      };
    }
    if (action.do === "delete") {
      const from = action.from.filter((environment) => this.#model.items(environment).has(action.name));
      if (from.length === 0) return undefined;
      const form = await visitor.form(`${page}/variables/set?name=${action.name}`, `${page}/variables/delete`);
      const writes = from.map((environment) => [environment, this.#without(environment, [action.name])] as const);
      return { action: `${page}/variables/delete`, fields: { ...form, from, again: action.name }, ...this.#of(writes) };
    }
    if (action.do === "paste") {
      const text = Object.entries(action.text)
        .map(([name, value]) => `${name}=${value}\n`)
        .join("");
      const paste = `${page}/variables/paste`;
      const pasted = { environment: action.to, text, ...(action.prune && { prune: "yes" }) };
      const { to = "" } = await visitor.send(paste, { ...(await visitor.form(paste, paste)), ...pasted });
      const items = action.prune ? new Map(Object.entries(action.text)) : this.#with(action.to, action.text);
      const apply = await this.#offered(visitor, to, to, [action.to, items]);
      if (apply === undefined) return undefined;
      return { action: to, fields: { ...apply, ...again }, ...this.#of([[action.to, items]]) };
    }
    if (action.do === "promote") {
      const source = this.#model.items(action.from);
      const there = this.#model.items(action.to);
      const copied = action.names.filter((name) => source.has(name) && source.get(name) !== there.get(name));
      if (action.from === action.to || copied.length === 0) return undefined;
      const query = new URLSearchParams({ from: action.from, to: action.to });
      const promote = `${page}/variables/promote`;
      const form = await visitor.form(`${promote}?${query}`, promote);
      const items = this.#with(action.to, Object.fromEntries(copied.map((name) => [name, source.get(name) as string])));
      const { writes, seen } = this.#of([[action.to, items]]);
      const both = new Map([...seen, [action.from, this.#model.version(action.from)]]);
      const { to = "" } = await visitor.send(promote, { ...form, names: copied });
      const apply = await this.#offered(visitor, to, to, [action.to, items]);
      return apply && { action: to, fields: { ...apply, ...again }, writes, seen: both };
    }
    const to = this.#model.version(action.in) - action.back;
    if (to < 1) return undefined;
    const query = new URLSearchParams({ kind: "variables", environment: action.in, to: String(to) });
    const write = [action.in, this.#model.items(action.in, to)] as const;
    const form = await this.#offered(visitor, `${page}/undo?${query}`, `${page}/undo`, write);
    return form && { action: `${page}/undo`, fields: { ...form, ...again }, ...this.#of([write]) };
  }

  /** The form of a page that shows what it would do. There is none exactly if that is nothing. */
  async #offered(
    visitor: Visitor,
    path: string,
    action: string,
    [environment, items]: readonly [Environment, Items],
  ): Promise<Fields | undefined> {
    const before = this.#model.items(environment);
    const isSame = items.size === before.size && [...items].every(([name, value]) => before.get(name) === value);
    const form = await visitor.form(path, action);
    expect([path, form === undefined]).toEqual([path, isSame]);
    return form;
  }

  #of(writes: readonly (readonly [Environment, Items])[]): Pick<Loaded, "seen" | "writes"> {
    const seen = new Map(writes.map(([environment]) => [environment, this.#model.version(environment)]));
    return { seen, writes: new Map(writes) };
  }

  #with(environment: Environment, given: Readonly<Record<string, string>>): Items {
    return new Map([...this.#model.items(environment), ...Object.entries(given)]);
  }

  #without(environment: Environment, gone: readonly string[]): Items {
    return new Map([...this.#model.items(environment)].filter(([name]) => !gone.includes(name)));
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
    const { html } = await (this.#people[0] as Visitor).page(`/p/${this.#where}/variables`);
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
