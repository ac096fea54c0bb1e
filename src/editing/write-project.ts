import { eq } from "drizzle-orm";
import { compareBytes, type Environment } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import type { Change } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import type { Permit } from "../desk/permit.ts";
import {
  type FoundProject,
  type LockedProject,
  lockProject,
  noProject,
  type PlannedProject,
  projectPath,
} from "../desk/projects.ts";
import type { Entry, KindDescriptor } from "../sets/kind.ts";
import { deleteUnusedContents } from "./contents.ts";
import { countIn } from "./counts.ts";
import type { OpenSet } from "./open.ts";
import { type PlannedSet, planSets, type SetChanges, type SetWrites, writeSets } from "./write.ts";

/**
 * Runs a write to one project's items of a kind in one transaction, with the project locked. The audit records what it
 * did to each environment, and the further changes that `work` returns.
 * @throws Refused `not_found` if the project is gone, `bound` if it has too many items then; Fault `decryption_failed` if its data key does not open
 */
export async function writingProject<T>(
  admin: AdminContext,
  found: FoundProject,
  descriptor: KindDescriptor,
  work: (
    admin: AdminContext,
    project: LockedProject,
  ) => Promise<readonly [result: T, writes: SetWrites, more?: readonly Change[] | undefined]>,
  { action = "write", permits = [], kinds }: ChangeOptions = {},
): Promise<T> {
  return writing(admin, [found.permit, ...permits], async (admin) => {
    const locked = await lockProject(admin, found);
    if (!locked) throw noProject(projectPath(found));
    const [result, writes, more = []] = await work(admin, locked);
    const isPruned = [...writes.values()].some(({ pruned }) => pruned);
    if (isPruned && kinds && !descriptor.hasValues) await deleteUnusedContents(admin, locked, kinds);
    await requireRoom(admin, locked, descriptor);
    const { organization, id, slug } = found;
    const changes = [...writes].map(([environment, { added, changed, deleted, version }]): Change => {
      const write = { added, changed, deleted };
      const names = [...added, ...changed, ...deleted].sort(compareBytes);
      const project = { id, slug };
      return { action: `${descriptor.kind}.${action}`, organization, project, environment, names, write, version };
    });
    return [result, [...changes, ...more]];
  });
}

type ChangeOptions = {
  readonly action?: "write" | "rollback";
  /** For further changes that the project's own permit does not cover. */
  readonly permits?: readonly Permit[];
  /** Every kind, for one that may name contents: those that no kept version names any more are deleted. */
  readonly kinds?: readonly KindDescriptor[];
};

/** What a dry run does: it plans, and seals, locks and writes nothing. */
export type DryRun = { readonly dryRun?: boolean | undefined };

/** A change of one project's items, before it is made. */
export type ProjectPlan<E extends Entry, T> = {
  readonly changes: ReadonlyMap<OpenSet<E>, SetChanges<E>>;
  readonly outcomeOf: (writes: ReadonlyMap<Environment, PlannedSet<E>>) => T;
  /** What goes on record besides. */
  readonly more?: readonly Change[];
};

/**
 * Makes the change that `plan` finds out, as {@link writingProject}; a dry run only plans.
 * @throws what refuses the change, in a dry run, too
 */
export async function changingProject<E extends Entry, T>(
  admin: AdminContext,
  found: FoundProject,
  descriptor: KindDescriptor<E>,
  plan: (admin: AdminContext, project: PlannedProject) => Promise<ProjectPlan<E, T>>,
  { dryRun = false, ...options }: DryRun & ChangeOptions = {},
): Promise<T> {
  if (dryRun) {
    const { changes, outcomeOf } = await plan(admin, { ...found, now: admin.now(), changedAt: "" });
    return outcomeOf(planSets(found, changes));
  }
  const work = async (admin: AdminContext, project: LockedProject) => {
    const { changes, outcomeOf, more } = await plan(admin, project);
    const writes = await writeSets(admin, project, descriptor, changes);
    return [outcomeOf(writes), writes, more] as const;
  };
  return writingProject(admin, found, descriptor, work, options);
}

/** @throws Refused `bound` if the project has too many items of this kind after a write */
async function requireRoom(admin: AdminContext, { id }: LockedProject, descriptor: KindDescriptor) {
  const { projects: p } = admin.database.tables;
  const { kind, projectItemsMax } = descriptor;
  if (projectItemsMax === undefined) return;
  const [row] = await admin.database.db.select().from(p).where(eq(p.id, id));
  if (row === undefined || countIn(row, descriptor) <= projectItemsMax) return;
  throw new Refused("bound", `A project holds at most ${projectItemsMax} ${kind}.`);
}
