import { eq } from "drizzle-orm";
import { compareBytes, type Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";
import type { Change } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import type { Permit } from "../desk/permit.ts";
import { changedSince, type PlannedChange } from "../desk/plan.ts";
import {
  type FoundProject,
  type LockedProject,
  lockProject,
  noProject,
  type PlannedProject,
  projectPath,
} from "../desk/projects.ts";
import { deleteUnusedContents } from "./contents.ts";
import { countIn } from "./counts.ts";
import { type OpenSet, requireUnwritten, type SetOf } from "./open.ts";
import { type PlannedSet, planSets, type SetChanges, type SetWrites, writeSets, zeroValues } from "./write.ts";

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
    admin.noteUndoable?.(changes.filter(({ environment }) => environment && writes.get(environment)?.isUndoable));
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

/** A change of one project's items, before it is made. */
export type ItemsPlan<E extends Entry, T> = {
  readonly changes: ReadonlyMap<OpenSet<E>, SetChanges<E>>;
  readonly outcomeOf: (writes: ReadonlyMap<Environment, PlannedSet<E>>) => T;
  /** What goes on record besides. */
  readonly more?: readonly Change[];
  /** The sets that were looked at. Default: those that are changed, for the items that are. */
  readonly looked?: readonly Looked[];
};

/** A set that was looked at, and for which items; for all of them if it has no names. */
export type Looked = {
  readonly set: SetOf & { readonly version: number };
  readonly names?: Iterable<string>;
  /** What its version is called in `seen`. */
  readonly what?: string;
  /** Whether what would be written over is the same in the version that somebody saw. Default: unless it was written. */
  readonly isSame?: (shown: number) => Promise<boolean | undefined>;
};

/** A change of items as it is planned, and what it would do. */
export type PlannedItems<T> = PlannedChange<T> & { readonly would: T };

/**
 * Finds out what a change of a project's items would do. The change itself is made as by {@link writingProject}.
 * @throws what refuses the change
 */
export function planItems<E extends Entry, T>(
  admin: AdminContext,
  project: PlannedProject,
  descriptor: KindDescriptor<E>,
  { changes, outcomeOf, more = [], looked }: ItemsPlan<E, T>,
  options: ChangeOptions = {},
): PlannedItems<T> {
  const would = outcomeOf(planSets(project, changes));
  // Values are opened again in the transaction.
  if (!admin.isWithin) for (const before of changes.keys()) zeroValues(before);
  const sets = looked ?? [...changes].map(([set, change]): Looked => ({ set, names: change.keys() }));
  const seenAs = new Map(sets.map((one) => [one.what ?? `version.${one.set.environment}`, one]));
  const versions = [...seenAs].map(([what, { set }]) => [what, set.version] as const);
  return {
    would,
    seen: { project: project.id, ...Object.fromEntries(versions) },
    differs: async (what, shown) => {
      const one = seenAs.get(what);
      if (one === undefined) throw changedSince(what, shown, "");
      // A version that is damaged, or not kept, is compared with none.
      const isSame = await one.isSame?.(Number(shown)).catch((error) => {
        if (!(error instanceof Refused)) throw error;
      });
      if (!isSame) await requireUnwritten(admin, one.set, Number(shown), one.names, what);
    },
    apply: () => {
      const write = async (admin: AdminContext, locked: LockedProject) => {
        const writes = await writeSets(admin, locked, descriptor, changes);
        return [outcomeOf(writes), writes, more] as const;
      };
      return writingProject(admin, project, descriptor, write, options);
    },
  };
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
