import { eq } from "drizzle-orm";
import { compareBytes, type Environment, isVariableName, variableValueBytesMax } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { AdminContext } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { requireEnvironment, requireText } from "../../desk/validate.ts";
import { type NewItem, openSet, openValues, writeSets } from "../../sets/write.ts";
import { writingProject } from "../../sets/write-project.ts";
import { isMarked } from "../../store/expiry.ts";
import { dueAtOf, type VariableEntry, variables } from "./entry.ts";

export type NewVariable = {
  readonly name: string;
  readonly value: string | Uint8Array;
  /** The day to rotate it by, or null for none. If left out, an earlier day stays unless the value changes. */
  readonly rotateBy?: string | null;
};
export type VariableRecord = { readonly name: string; readonly updatedAt: number; readonly rotateBy?: string };

export type WriteOptions = {
  /** Whether the environment's other variables are deleted. */
  readonly prune?: boolean;
  /** The variables that a person agreed to delete; the write is refused if it would delete another one. */
  readonly agreed?: readonly string[];
};

/** What a write did, or would do. Names are in byte order. */
export type VariablesWrite = {
  readonly added: readonly string[];
  /** How many existed before, those with the same value included. */
  readonly updated: number;
  /** Those of them that get another value. */
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
  /** What a person must be warned of. */
  readonly warnings: readonly string[];
};

/**
 * Writes variables of one environment: all of them, or on any failure none.
 * @throws Refused `invalid`, `bound`, `not_found`, `ambiguous`, `conflict` if the set does not verify
 */
export async function setVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  entries: readonly NewVariable[],
  { prune = false, agreed }: WriteOptions = {},
): Promise<VariablesWrite> {
  const target = requireEnvironment(environment);
  const given = validateVariables(entries);
  return writingProject(admin, where, variables, async (project) => {
    const before = await openSet(admin, project.db, project, variables, target);
    const values = openValues(project, variables, before);
    const marks = new Map(before.entries.map(({ key, rotateBy }) => [key, rotateBy]));
    const changes = new Map<string, NewItem<VariableEntry> | null>();
    const changed: string[] = [];
    for (const [key, { value, rotateBy: mark }] of given) {
      const old = values.get(key);
      const isSame = old !== undefined && valueIn(old) === value;
      if (old !== undefined && !isSame) changed.push(key);
      const rotateBy = mark === undefined && isSame ? marks.get(key) : mark;
      changes.set(key, variableItem(key, value, project.now, rotateBy));
    }
    for (const value of values.values()) value.fill(0);
    const pruned = prune ? before.names.filter((name) => !given.has(name)) : [];
    const mayGo = new Set(agreed ?? pruned);
    const surprise = pruned.find((name) => !mayGo.has(name));
    if (surprise !== undefined) {
      throw new Refused("conflict", `${surprise} was added meanwhile. Nothing was written: run the command again.`);
    }
    for (const name of pruned) changes.set(name, null);
    const writes = await writeSets(admin, project, variables, new Map([[target, changes]]));
    const { added = [], replaced = [], total = 0 } = writes.get(target) ?? {};
    const result = {
      added: added.toSorted(compareBytes),
      updated: replaced.length,
      changed: changed.sort(compareBytes),
      deleted: pruned,
      warnings: variables.warningsOf(where, target, total),
    };
    return [result, writes];
  });
}

/** The value in an item of a set of variables. */
function valueIn(item: Buffer): string {
  return (JSON.parse(item.toString("utf8")) as { readonly value: string }).value;
}

/** A variable as a set holds it. */
export function variableItem(
  key: string,
  value: string,
  updatedAt: number,
  rotateBy?: string | null,
): NewItem<VariableEntry> {
  const entry = { key, updatedAt, ...(rotateBy && { rotateBy }) };
  return { entry, value: Buffer.from(JSON.stringify({ key, value, updatedAt })) };
}

/** Names and times of one environment, in byte order. @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` */
export async function listVariables(
  admin: AdminContext,
  where: string,
  environment: string,
): Promise<VariableRecord[]> {
  const target = requireEnvironment(environment);
  const project = await findProject(admin, where);
  const { entries } = await openSet(admin, admin.database.db, project, variables, target);
  return entries.map(({ key: name, updatedAt, rotateBy }) => ({ name, updatedAt, ...(rotateBy && { rotateBy }) }));
}

/** A variable that is marked for rotation. */
export type DueVariable = {
  /** Slugs. */
  readonly organization: string;
  readonly project: string;
  readonly environment: Environment;
  readonly name: string;
  readonly rotateBy: string;
  /** The end of that day, in epoch milliseconds. */
  readonly dueAt: number;
  readonly status: "due" | "overdue";
};

/** The variables of all projects that are due within this time, or overdue. @throws Refused `conflict` as `openSet` */
export async function listDueVariables(admin: AdminContext, withinMs: number): Promise<DueVariable[]> {
  const { sets: s, projects: p, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ id: p.id, slug: p.slug, organization: o, environment: s.environment })
    .from(s)
    .innerJoin(p, eq(p.id, s.projectId))
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(isMarked(admin.database));
  const now = admin.now();
  const found: DueVariable[] = [];
  for (const { environment, ...project } of rows) {
    const { entries } = await openSet(admin, admin.database.db, project, variables, environment);
    const place = { organization: project.organization.slug, project: project.slug, environment };
    for (const { key: name, rotateBy } of entries) {
      if (rotateBy === undefined) continue;
      const dueAt = dueAtOf(rotateBy);
      const status = dueAt <= now ? "overdue" : "due";
      if (dueAt <= now + withinMs) found.push({ ...place, name, rotateBy, dueAt, status });
    }
  }
  return found;
}

/** Deletes one variable of one environment. @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` */
export async function deleteVariable(
  admin: AdminContext,
  where: string,
  environment: string,
  name: string,
): Promise<void> {
  const target = requireEnvironment(environment);
  await writingProject(admin, where, variables, async (project) => {
    const changes = new Map([[target, new Map([[name, null]])]]);
    const writes = await writeSets(admin, project, variables, changes);
    if (writes.get(target)?.deleted.length !== 1) {
      throw new Refused("not_found", `There is no variable ${JSON.stringify(name)} in ${where} ${target}.`);
    }
    return [undefined, writes];
  });
}

/** Values and marks by name, all checked before anything is written. @throws Refused `invalid`, `bound` */
export function validateVariables(
  entries: readonly NewVariable[],
): Map<string, NewVariable & { readonly value: string }> {
  const values = new Map<string, NewVariable & { readonly value: string }>();
  for (const entry of entries) {
    const { name, value } = entry;
    if (!isVariableName(name)) {
      throw new Refused(
        "invalid",
        `${JSON.stringify(name)} is no variable name: a letter or _ first, then letters, digits and _, at most 255, and neither _ nor __proto__.`,
      );
    }
    if (values.has(name)) throw new Refused("invalid", `${name} is given twice.`);
    const text = requireText(`The value of ${name}`, value);
    const bytes = Buffer.byteLength(text);
    if (bytes > variableValueBytesMax) {
      throw new Refused(
        "bound",
        `The value of ${name} has ${bytes} bytes; at most ${variableValueBytesMax} are allowed.`,
      );
    }
    values.set(name, { ...entry, value: text });
  }
  return values;
}
