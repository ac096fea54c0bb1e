import { type Environment, isVariableName, itemsMax, variableValueBytesMax } from "../names.ts";
import { variables } from "../seal/kinds.ts";
import type { AdminContext } from "./context.ts";
import { findProject, writingProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { type NewItem, openSet, writeSets } from "./sets.ts";
import { requireEnvironment, requireText } from "./validate.ts";

export type NewVariable = { readonly name: string; readonly value: string | Uint8Array };
export type VariableRecord = { readonly name: string; readonly updatedAt: number };

/**
 * Writes variables of one environment: all of them, or on any failure none.
 * @returns how many were created and updated, and what a person must be warned of
 * @throws Refused `invalid`, `bound`, `not_found`, `ambiguous`, `conflict` if the set does not verify
 */
export async function setVariables(
  admin: AdminContext,
  where: string,
  environment: string,
  entries: readonly NewVariable[],
): Promise<{ created: number; updated: number; warnings: readonly string[] }> {
  const target = requireEnvironment(environment);
  const values = validate(entries);
  return writingProject(admin, where, variables, async (project) => {
    const changes = new Map<string, NewItem<"variables">>();
    for (const [key, value] of values) {
      const updatedAt = project.now;
      changes.set(key, { entry: { key, updatedAt }, value: Buffer.from(JSON.stringify({ key, value, updatedAt })) });
    }
    const writes = await writeSets(admin, project, variables, new Map([[target, changes]]));
    const { added = [], replaced = [], total = 0 } = writes.get(target) ?? {};
    const warnings = warningsOf(where, target, total);
    return [{ created: added.length, updated: replaced.length, warnings }, writes];
  });
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
  return entries.map(({ key, updatedAt }) => ({ name: key, updatedAt }));
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

function warningsOf(where: string, environment: Environment, total: number): string[] {
  if (total <= itemsMax) return [];
  return [
    `${where} has ${total} variables in ${environment}, and the API never answers with more than ${itemsMax}: reading all of them is refused from now on. Reads by keys or prefix still work.`,
  ];
}

/** Names to values, all checked before anything is written. @throws Refused `invalid`, `bound` */
function validate(entries: readonly NewVariable[]): Map<string, string> {
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
