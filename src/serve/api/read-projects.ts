import { Fault } from "../../core/fault.ts";
import { compareBytes, type EnvironmentMask, environmentsOf, itemsMax } from "../../core/names.ts";
import { everyKind } from "../../kinds/kind.ts";
import type { ProjectRow } from "../../store/projects.ts";
import { countOf, numbersOf } from "../sets/counts.ts";
import { countsColumnOf } from "../sets/kind.ts";
import { authorizedAt, judgeStanding, type Reading } from "../sets/lookup.ts";
import { passed } from "../sets/stages.ts";

/** The projects in the key's scope by slug. */
export async function listProjects({ source, caller: { grant }, stages }: Reading) {
  passed(stages, "readFromMs");
  const { keyId, projects } = grant;
  // A list reaches a project only by the slug it had when the key was made, as every other read does.
  const rows = projects === null ? await source.projects.every(keyId) : await source.projects.listed(keyId, projects);
  passed(stages, "readToMs");
  judgeStanding(rows[0]);
  const found = rows.filter(({ id }) => id !== null);
  if (found.length > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} projects`);
  return found.map((row) => summaryOf(row, grant.environments)).sort((a, b) => compareBytes(a.slug, b.slug));
}

/** One project through the key's scope. */
export async function readProject({ source, caller, stages }: Reading, slug: string) {
  const { grant, target } = caller;
  if (target === null) throw new Fault("project_not_found", "no such project in the key's scope");
  passed(stages, "readFromMs");
  const project = { id: target.projectId, organizationId: grant.organizationId, slug };
  const [row] = await source.projects.one(authorizedAt(caller, project));
  passed(stages, "readToMs");
  judgeStanding(row);
  const changedAt = numbersOf(row.changedAt ?? "", 3).filter((_, index) => grant.environments & (1 << index));
  return {
    ...summaryOf(row, grant.environments),
    environments: environmentsOf(grant.environments),
    ...countsIn(row, grant.environments, false),
    createdAt: row.createdAt,
    updatedAt: Math.max(row.createdAt, ...changedAt),
  };
}

/** A project as the list shows it, with the counts of the environments that the key reaches. */
function summaryOf(row: ProjectRow, reach: EnvironmentMask) {
  const { id, name, slug } = row;
  if (id === null || name === null || slug === null) {
    throw new Fault("decryption_failed", "the name or slug of a project is not as Keyhole writes it");
  }
  return { id, name, slug, ...countsIn(row, reach, true) };
}

/** The counts of the kinds that lists of projects show, or of the others: `variableCount` and so on. */
function countsIn(row: ProjectRow, reach: EnvironmentMask, inLists: boolean): Record<`${string}Count`, number> {
  const counts: Record<`${string}Count`, number> = {};
  for (const kind of everyKind) {
    if (kind.isCountedInLists !== inLists) continue;
    counts[`${kind.item}Count`] = countOf(row[countsColumnOf(kind)] ?? "", reach);
  }
  return counts;
}
