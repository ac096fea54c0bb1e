import { and, asc, eq, inArray, sql } from "drizzle-orm";
import {
  type Environment,
  type EnvironmentMask,
  environmentMask,
  isVariableName,
  variableValueBytesMax,
} from "../names.ts";
import { seal } from "../seal/envelope.ts";
import { variablePlace } from "../seal/place.ts";
import type { Desk } from "./desk.ts";
import { findProject, type LockedProject, noteMove, writingProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { keepSet } from "./sets.ts";
import { requireEnvironment, requireText } from "./words.ts";

export type NewVariable = { readonly name: string; readonly value: string | Uint8Array };
export type VariableRecord = { readonly name: string; readonly version: number; readonly updatedAt: number };

/**
 * Writes variables of one environment: all of them, or on any failure none.
 *
 * @param progress - told how many of how many are sealed and sent, now and then
 * @throws Refused `invalid` naming what is wrong, `not_found`, `ambiguous`, `conflict` as {@link keepSet}
 */
export async function setVariables(
  desk: Desk,
  where: string,
  environment: string,
  entries: readonly NewVariable[],
  progress: (done: number, total: number) => void = () => {},
): Promise<{ created: number; updated: number }> {
  const target = requireEnvironment(environment);
  const values = judged(entries);
  return writingProject(desk, where, async (project) => {
    const byMask = new Map<EnvironmentMask, number>();
    let created = 0;
    const names = [...values.keys()];
    for (let from = 0; from < names.length; from += rowsPerStatement) {
      const some = names.slice(from, from + rowsPerStatement);
      const present = await placesOf(desk, project, some);
      for (const name of some) {
        const mask = present.get(name)?.mask ?? 0;
        if (!(mask & environmentMask(target))) created += 1;
        noteMove(byMask, mask, mask | environmentMask(target));
      }
      await upsert(
        desk,
        project,
        some.map((name) => sealedRow(project, target, name, values.get(name) as string, present.get(name)?.at[target])),
      );
      progress(Math.min(from + rowsPerStatement, names.length), names.length);
    }
    return {
      result: { created, updated: names.length - created },
      touched: names.length > 0 ? environmentMask(target) : 0,
      counts: { column: "variableCounts", byMask },
      finish: async (revisions) => {
        const changes = new Map([...values].map(([name, value]) => [name, { value, updatedAt: project.now }]));
        await keepSet(desk, project, target, changes, revisions.get(target) as number);
      },
    };
  });
}

/** Names, versions and times of one environment, in byte order. @throws Refused `invalid`, `not_found`, `ambiguous` */
export async function listVariables(desk: Desk, where: string, environment: string): Promise<VariableRecord[]> {
  const target = requireEnvironment(environment);
  const project = await findProject(desk, where);
  const { variables: v } = desk.database.tables;
  return desk.database.db
    .select({ name: v.name, version: v.version, updatedAt: v.updatedAt })
    .from(v)
    .where(and(eq(v.projectId, project.id), eq(v.environment, target)))
    .orderBy(asc(v.name));
}

/**
 * Deletes one variable of one environment, also where its row is gone by other means.
 * @throws Refused `invalid`, `not_found`, `ambiguous`, `conflict` as {@link keepSet}
 */
export async function deleteVariable(desk: Desk, where: string, environment: string, name: string): Promise<void> {
  const target = requireEnvironment(environment);
  const { variables: v } = desk.database.tables;
  await writingProject(desk, where, async (project) => {
    const mask = (await placesOf(desk, project, [name])).get(name)?.mask ?? 0;
    const bit = environmentMask(target);
    await project.db.delete(v).where(and(eq(v.projectId, project.id), eq(v.environment, target), eq(v.name, name)));
    const byMask = new Map<EnvironmentMask, number>();
    noteMove(byMask, mask | bit, mask & ~bit);
    return {
      result: undefined,
      touched: bit,
      counts: { column: "variableCounts", byMask },
      finish: async (revisions) => {
        const change = new Map([[name, null]]);
        const stood = await keepSet(desk, project, target, change, revisions.get(target) as number);
        if (!(mask & bit) && !stood.has(name)) {
          throw new Refused("not_found", `There is no variable ${JSON.stringify(name)} in ${where} ${target}.`);
        }
      },
    };
  });
}

// Eight columns a row, and SQLite takes 32,766 parameters.
const rowsPerStatement = 500;

/** Names to values, each judged before anything is written. @throws Refused `invalid` */
function judged(entries: readonly NewVariable[]): Map<string, string> {
  const values = new Map<string, string>();
  for (const { name, value } of entries) {
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
    values.set(name, text);
  }
  return values;
}

type Existing = { readonly id: string; readonly version: number };
type Places = { mask: EnvironmentMask; at: Partial<Record<Environment, Existing>> };

/** Where each of these names stands already. */
async function placesOf(desk: Desk, project: LockedProject, names: readonly string[]): Promise<Map<string, Places>> {
  const { variables: v } = desk.database.tables;
  const rows = await project.db
    .select({ name: v.name, environment: v.environment, id: v.id, version: v.version })
    .from(v)
    .where(
      and(
        eq(v.projectId, project.id),
        inArray(v.environment, ["development", "staging", "production"]),
        inArray(v.name, [...names]),
      ),
    );
  const places = new Map<string, Places>();
  for (const { name, environment, id, version } of rows) {
    const place = places.get(name) ?? { mask: 0, at: {} };
    place.mask |= environmentMask(environment as Environment);
    place.at[environment as Environment] = { id, version };
    places.set(name, place);
  }
  return places;
}

function sealedRow(
  project: LockedProject,
  environment: Environment,
  name: string,
  value: string,
  before: Existing | undefined,
) {
  const id = before?.id ?? Bun.randomUUIDv7();
  const version = (before?.version ?? 0) + 1;
  const place = variablePlace({ projectId: project.id, environment, variableId: id, version, name });
  const { generation } = project.dataKey;
  const sealed = seal(project.dataKey.subkey("variable"), generation, place, Buffer.from(value));
  return { id, projectId: project.id, environment, name, version, generation, sealed, updatedAt: project.now };
}

async function upsert(desk: Desk, project: LockedProject, rows: ReturnType<typeof sealedRow>[]): Promise<void> {
  const { variables: v } = desk.database.tables;
  await project.db
    .insert(v)
    .values(rows)
    .onConflictDoUpdate({
      target: [v.projectId, v.environment, v.name],
      set: {
        version: sql`excluded.version`,
        generation: sql`excluded.generation`,
        sealed: sql`excluded.sealed`,
        updatedAt: sql`excluded.updated_at`,
      },
    });
}
