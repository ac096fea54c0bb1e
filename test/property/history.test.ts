/**
 * Random sequences of what people do to sets, against a model in memory: plain lists of versions, each with its items.
 */

import { beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import type { Environment } from "../../src/core/names.ts";
import type { FileEntry } from "../../src/kinds/files/entry.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { descriptorOf } from "../../src/kinds/people.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { openContent } from "../../src/people/editing/contents.ts";
import { openSet, openVersion } from "../../src/people/editing/open.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import {
  deleteProject,
  planRollback,
  planUndo,
  purgeHistory,
  renameProject,
  rollBack,
  setAccount,
  setVariables,
  undo,
} from "../support/plans.ts";
import { parts, seed } from "../support/seed.ts";
import { describeBoth, type World } from "../support/world.ts";

const kinds: readonly string[] = ["variables", "accounts", "files"];
const two: readonly Environment[] = ["staging", "production"];
const dayMs = 86_400_000;

/** The value is a text; of files the id of the content. */
type Item = { readonly value: string; readonly updatedAt: number };
type Items = ReadonlyMap<string, Item>;
type Version = { readonly version: number; readonly at: number; readonly by: string; readonly items: Items } & Readonly<
  Record<"added" | "changed" | "deleted", string[]>
>;

type Target = { readonly kind: string; readonly environment: Environment };
type Step =
  | (Target & { readonly do: "write"; readonly name: string; readonly value: string; readonly both: boolean })
  | (Target & { readonly do: "delete"; readonly name: string })
  | (Target & { readonly do: "rollback"; readonly back: number })
  | (Target & { readonly do: "undo"; readonly back: number })
  | (Target & { readonly do: "purge" })
  | { readonly do: "wait"; readonly days: number }
  | { readonly do: "rename" }
  | { readonly do: "rotate" };

const busy = { kind: "variables", environment: "staging" } as const;
const targets: readonly Target[] = kinds.flatMap((kind) => two.map((environment) => ({ kind, environment })));
/** One set is written more often, so that it has more versions than are kept. */
const any = { weight: 2, arbitrary: fc.constantFrom(...targets) };
const target = fc.oneof({ weight: 3, arbitrary: fc.constant(busy) }, any);
const name = fc.constantFrom("A", "B", "C");
const value = fc.constantFrom("x", "y", "z");
const on = <Do extends string, More>(verb: Do, more: { readonly [Name in keyof More]: fc.Arbitrary<More[Name]> }) =>
  fc.tuple(target, fc.record<More>(more)).map(([target, more]) => ({ do: verb, ...target, ...more }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 24, arbitrary: on("write", { name, value, both: fc.boolean() }) },
  { weight: 8, arbitrary: on("delete", { name }) },
  { weight: 16, arbitrary: on("rollback", { back: fc.nat(24) }) },
  { weight: 16, arbitrary: on("undo", { back: fc.nat(8) }) },
  { weight: 1, arbitrary: on("purge", {}) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), days: fc.constantFrom(1, 10, 45, 90) }) },
  { weight: 1, arbitrary: fc.constant({ do: "rename" as const }) },
  { weight: 1, arbitrary: fc.constant({ do: "rotate" as const }) },
);

const people = ["ann@host", "ben@host", "carla@host"];

function touched({ added, changed, deleted }: Version): string[] {
  return [...added, ...changed, ...deleted].sort();
}

function writerOf({ version, by }: Version) {
  return { version, by };
}

/** The sets of a project as they should be. */
class Model {
  nowMs: number;
  /** Who writes next. */
  by = "ann@host";
  readonly sets = new Map<string, Version[]>();

  constructor(nowMs: number) {
    this.nowMs = nowMs;
    const first = { version: 1, at: nowMs, by: this.by, added: [], changed: [], deleted: [], items: new Map() };
    for (const kind of kinds) for (const environment of two) this.sets.set(`${kind} ${environment}`, [first]);
  }

  /** Oldest first; the last one is current. */
  versions({ kind, environment }: Target): Version[] {
    return this.sets.get(`${kind} ${environment}`) as Version[];
  }

  items(target: Target): Items {
    return (this.versions(target).at(-1) as Version).items;
  }

  /** What a set becomes. Items that keep their value keep their time, unless they are `written`. */
  write(target: Target, wanted: ReadonlyMap<string, string>, written: readonly string[]): void {
    const versions = this.versions(target);
    const before = this.items(target);
    const items = new Map<string, Item>();
    const [added, changed]: [string[], string[]] = [[], []];
    for (const [name, value] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const old = before.get(name);
      const stays = old?.value === value && !written.includes(name);
      items.set(name, stays ? old : { value, updatedAt: this.nowMs });
      if (!stays) (old === undefined ? added : changed).push(name);
    }
    const deleted = [...before.keys()].filter((name) => !wanted.has(name));
    const version = (versions.at(-1)?.version ?? 0) + 1;
    versions.push({ version, at: this.nowMs, by: this.by, added, changed, deleted, items });
    const replacedAt = (index: number) => versions[index + 1]?.at ?? this.nowMs;
    const kept = versions.filter((_, i) => i >= versions.length - 21 || this.nowMs - replacedAt(i) < 90 * dayMs);
    versions.splice(0, versions.length, ...kept);
  }

  /** The ids of the contents that some version names. */
  contents(): Set<string> {
    const files = two.flatMap((environment) => this.versions({ kind: "files", environment }));
    return new Set(files.flatMap(({ items }) => [...items.values()].map(({ value }) => value)));
  }
}

/** A project, and what it should be. */
class Play {
  readonly #w: World;
  readonly #model: Model;
  readonly #organization: string;
  readonly #contents = new Map<string, string>();
  #steps = 0;
  #slug = "web";

  constructor(w: World, organization: string) {
    this.#w = w;
    this.#organization = organization;
    this.#model = new Model(1_700_000_000_000);
    w.clock.nowMs = this.#model.nowMs;
  }

  get where(): string {
    return `${this.#organization}/${this.#slug}`;
  }

  /** The person at work: each step is somebody else's. */
  get #admin(): AdminContext {
    return { ...this.#w.admin, actor: { type: "person", name: this.#model.by, from: "os" } };
  }

  async take(step: Step): Promise<void> {
    const [w, model] = [this.#w, this.#model];
    w.clock.nowMs = model.nowMs += 1000;
    model.by = people[this.#steps++ % people.length] as string;
    switch (step.do) {
      case "write":
        return this.#write(step, step.name, step.value, step.both);
      case "delete":
        return this.#delete(step, step.name);
      case "rollback":
        return this.#rollBack(step, step.back);
      case "undo":
        return this.#undo(step, step.back);
      case "purge": {
        const versions = model.versions(step);
        const { kind, environment } = step;
        const { removed } = await purgeHistory(w.admin, { where: this.where, environment, kind });
        expect(removed).toBe(versions.length - 1);
        versions.splice(0, versions.length - 1);
        return;
      }
      case "wait":
        w.clock.nowMs = model.nowMs += step.days * dayMs;
        return;
      case "rename": {
        const slug = this.#slug === "web" ? "shop" : "web";
        await renameProject(w.admin, this.where, { slug });
        this.#slug = slug;
        return;
      }
      case "rotate": {
        const { broken, deletedKeys } = await rotateData(w.admin, this.where);
        expect({ broken, deletedKeys }).toEqual({ broken: [], deletedKeys: 1 });
      }
    }
  }

  async #write(target: Target, name: string, value: string, both: boolean): Promise<void> {
    const { kind } = target;
    const environments = both && kind !== "variables" ? two : [target.environment];
    const [admin, model] = [this.#admin, this.#model];
    let stored = value;
    if (kind === "variables") await setVariables(admin, this.where, target.environment, [{ name, value }]);
    else if (kind === "accounts") await setAccount(admin, this.where, name, environments, { updatedAt: value });
    else {
      const mode = value === "x" ? "0400" : undefined;
      stored = (await putFile(admin, this.where, { path: name, environments, content: Buffer.from(value), mode })).id;
      this.#contents.set(stored, value);
    }
    for (const environment of two) {
      const items = this.#valuesOf({ kind, environment });
      // An account is in exactly the environments that it was written to.
      if (environments.includes(environment)) items.set(name, stored);
      else if (kind !== "accounts" || !items.delete(name)) continue;
      model.write({ kind, environment }, items, [name]);
    }
  }

  async #delete(target: Target, name: string): Promise<void> {
    const { kind, environment } = target;
    const admin = this.#admin;
    const where = this.where;
    const targets = (kind === "accounts" ? two : [environment])
      .map((environment) => ({ kind, environment }))
      .filter((one) => this.#model.items(one).has(name));
    const deleted =
      kind === "variables"
        ? deleteVariable(admin, where, environment, name)
        : kind === "accounts"
          ? deleteAccount(admin, where, name)
          : deleteFile(admin, where, name, [environment]);
    if (targets.length === 0) return void (await expect(deleted).rejects.toMatchObject({ kind: "not_found" }));
    await deleted;
    for (const one of targets) {
      const items = this.#valuesOf(one);
      items.delete(name);
      this.#model.write(one, items, []);
    }
  }

  async #rollBack(target: Target, back: number): Promise<void> {
    const { kind, environment } = target;
    const admin = this.#admin;
    const versions = this.#model.versions(target);
    const current = versions.at(-1) as Version;
    const to = Math.max(1, current.version - back);
    const old = versions.find(({ version }) => version === to);
    const planned = planRollback(admin, { where: this.where, environment, kind }, to);
    if (old === undefined || old === current) {
      return void (await expect(planned).rejects.toMatchObject({ kind: old ? "invalid" : "not_found" }));
    }
    const plan = await planned;
    const { version } = await rollBack(admin, { where: this.where, environment, kind }, plan);
    this.#model.write(target, new Map([...old.items].map(([name, { value }]) => [name, value])), []);
    const { added, changed, deleted } = versions.at(-1) as Version;
    const between = versions.slice(0, -1).filter((one) => one.version > to);
    expect(plan).toMatchObject({ from: current.version, to, added, changed, deleted, between: between.map(writerOf) });
    expect(version).toBe(current.version + 1);
  }

  async #undo(target: Target, back: number): Promise<void> {
    const { kind, environment } = target;
    const versions = this.#model.versions(target);
    const current = versions.at(-1) as Version;
    const number = Math.max(1, current.version - back);
    const at = versions.findIndex(({ version }) => version === number);
    const [before, undone, later] = [versions[at - 1], versions[at], versions.slice(at + 1)];
    const names = undone === undefined ? [] : touched(undone);
    const left = names.flatMap((name) => {
      const writer = later.findLast((one) => touched(one).includes(name));
      return writer === undefined ? [] : [{ name, ...writerOf(writer) }];
    });
    const rest = names.filter((name) => !left.some((one) => one.name === name));
    const planned = planUndo(this.#admin, { where: this.where, environment, kind }, number);
    const isUnknown = before === undefined && rest.some((name) => !undone?.added.includes(name));
    if (undone === undefined || rest.length === 0 || isUnknown) {
      const refused = undone !== undefined && rest.length === 0 ? "invalid" : "not_found";
      return void (await expect(planned).rejects.toMatchObject({ kind: refused }));
    }
    const plan = await planned;
    const { version } = await undo(this.#admin, { where: this.where, environment, kind }, plan);
    const items = this.#valuesOf(target);
    for (const name of rest) {
      const old = undone.added.includes(name) ? undefined : before?.items.get(name);
      if (old === undefined) items.delete(name);
      else items.set(name, old.value);
    }
    this.#model.write(target, items, rest);
    const { added, changed, deleted } = versions.at(-1) as Version;
    const expected = { from: current.version, version: number, by: undone.by, added, changed, deleted, left };
    expect(plan).toMatchObject(expected);
    expect(version).toBe(current.version + 1);
  }

  #valuesOf(target: Target): Map<string, string> {
    return new Map([...this.#model.items(target)].map(([name, { value }]) => [name, value]));
  }

  /** The sets that these steps were about have the history and the items that they should have. */
  async check(steps: readonly Step[]): Promise<void> {
    const { admin } = this.#w;
    const project = await findProject(admin, this.where, "write");
    const touched = new Map(steps.flatMap((one) => ("kind" in one ? [[`${one.kind} ${one.environment}`, one]] : [])));
    for (const { kind, environment } of touched.values()) {
      const versions = this.#model.versions({ kind, environment });
      const actor = (name: string) => ({ type: "person", name });
      const expected = versions.map(({ items: _, by, ...version }) => ({ ...version, actor: actor(by) }));
      const { versions: listed, warnings } = await listHistory(admin, { where: this.where, environment, kind });
      expect({ listed, warnings }).toEqual({ listed: expected.reverse() as never, warnings: [] });
      const items = await this.#stored(project, { kind, environment });
      expect(items).toEqual(Object.fromEntries(this.#model.items({ kind, environment })));
    }
  }

  /** The same of every set, with the items of every version; and that nothing is left once the project is deleted. */
  async end(): Promise<void> {
    const { admin, run } = this.#w;
    await this.check(targets.map((target) => ({ ...target, do: "purge" })));
    const project = await findProject(admin, this.where, "write");
    for (const target of targets) {
      for (const { version, items } of this.#model.versions(target).slice(0, -1)) {
        expect(await this.#stored(project, target, version)).toEqual(Object.fromEntries(items));
      }
    }
    const contents = await run("select id from file_contents where project_id = ?", [project.id]);
    expect(new Set(contents.map(({ id }) => id))).toEqual(this.#model.contents());
    expect(await run("select generation from data_keys where project_id = ?", [project.id])).toHaveLength(1);
    await deleteProject(admin, this.where);
    expect(await run("select version from set_versions where project_id = ?", [project.id])).toEqual([]);
    expect(await run("select id from file_contents where project_id = ?", [project.id])).toEqual([]);
  }

  async #stored(
    project: Awaited<ReturnType<typeof findProject>>,
    { kind, environment }: Target,
    version?: number,
  ): Promise<Record<string, Item>> {
    const { admin } = this.#w;
    const of = { project, descriptor: descriptorOf(kind), environment };
    const set = version === undefined ? await openSet(admin, of) : await openVersion(admin, of, version);
    const found: Record<string, Item> = {};
    for (const [name, { entry, value: stored }] of set.items) {
      const { updatedAt } = entry;
      const value = JSON.parse(stored?.shown() ?? "null");
      if (kind === "variables") {
        expect(value).toEqual({ key: name, value: value.value, updatedAt });
        found[name] = { value: value.value, updatedAt };
      } else if (kind === "accounts") {
        found[name] = { value: value.updatedAt, updatedAt };
      } else {
        const { id, mode } = entry as FileEntry;
        const content = await openContent(admin, project.id, entry as FileEntry);
        expect(content?.toString("utf8")).toBe(this.#contents.get(id));
        expect(mode).toBe(this.#contents.get(id) === "x" ? "0400" : "0600");
        found[name] = { value: id, updatedAt };
      }
    }
    return found;
  }
}

const sequences = "random sequences of several people's writes, rollbacks, undos, purges, renames and rotations";
describeBoth(sequences, (w, dialect) => {
  beforeAll(async () => {
    // The disk is not what is tested here.
    const { db } = w.admin.database;
    if (dialect === "sqlite") (db as unknown as { run(text: unknown): void }).run(sql`PRAGMA synchronous = OFF`);
  });

  const name = "leave what the model says: each version with its items, its writer and names, and no content too many";
  test.each(parts(dialect === "sqlite" ? projects : 2))(`${name}, project %i`, async (part) => {
    const play = new Play(w, (await w.organization()).slug);
    await createProject(w.admin, play.where, {});
    // A sequence goes on from where the one before it ended, so that there is history; so none can be shrunk.
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 2 }), async (steps) => {
        for (const one of steps) await play.take(one);
        await play.check(steps);
      }),
      { numRuns: 50, endOnFailure: true, seed: seed + part },
    );
    await play.end();
  });
});

/** Each sees 50 sequences. KEYHOLE_TEST_LONG=1 runs the number that takes minutes. */
const projects = process.env["KEYHOLE_TEST_LONG"] === "1" ? 200 : 20;
