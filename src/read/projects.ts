import type { Caller } from "../access/authenticate.ts";
import { placeOf, projectsOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import { compareBytes, type Environment, type EnvironmentMask, environmentsOf, itemsMax } from "../names.ts";
import type { ProjectRow } from "../store/projects.ts";
import type { Source } from "./source.ts";
import { passed, type Stages } from "./stages.ts";
import { judgeStanding } from "./standing.ts";

/** A project as the list shows it: counts are those of the environments the key reaches. */
export type ProjectSummary = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly variableCount: number;
  readonly accountCount: number;
};
export type ProjectDetail = ProjectSummary & {
  readonly environments: readonly Environment[];
  readonly fileCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/**
 * The projects in the key's scope, in byte order of slug; those outside it are not there.
 * @throws Fault `too_many_items`, `unavailable`
 */
export async function listProjects(source: Source, { grant }: Caller, stages?: Stages): Promise<ProjectSummary[]> {
  passed(stages, "readFromMs");
  const listed = projectsOf(grant);
  const rows = listed
    ? await source.projects.listed(grant.keyId, [...listed.values()])
    : await source.projects.every(grant.keyId);
  passed(stages, "readToMs");
  judgeStanding(rows[0] && { ...rows[0], projectId: "any" });
  const found = rows.filter((row) => row.id !== null);
  if (found.length > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} projects`);
  return found.sort((a, b) => compareBytes(a.slug, b.slug)).map((row) => summaryOf(row, grant.environments));
}

/** One project through the key's scope. @throws Fault `project_not_found`, `unavailable` */
export async function readProject(
  source: Source,
  { grant }: Caller,
  slug: string,
  stages?: Stages,
): Promise<ProjectDetail> {
  passed(stages, "readFromMs");
  const rows = await source.projects.one({ keyId: grant.keyId, ...placeOf(grant, slug) });
  passed(stages, "readToMs");
  judgeStanding(rows[0] && { ...rows[0], projectId: rows[0].id });
  const project = rows[0] as ProjectRow;
  const reached = environmentsOf(grant.environments);
  const changes = rows.filter((row) => (reached as (string | null)[]).includes(row.environment));
  return {
    ...summaryOf(project, grant.environments),
    environments: reached,
    fileCount: countReached(project.fileCounts, grant.environments),
    createdAt: project.createdAt,
    updatedAt: Math.max(project.createdAt, ...changes.map((row) => row.updatedAt ?? 0)),
  };
}

/** How many of the items counted by mask are in at least one environment of `reach`. */
export function countReached(countsByMask: string, reach: EnvironmentMask): number {
  return countsOf(countsByMask).reduce((sum, count, index) => ((index + 1) & reach ? sum + count : sum), 0);
}

/**
 * Counts by mask 1 to 7 as the writer keeps them.
 * @throws Fault `decryption_failed` where somebody else wrote them
 */
export function countsOf(countsByMask: string): number[] {
  if (/^\[\d{1,9}(?:,\d{1,9}){6}\]$/.test(countsByMask)) return JSON.parse(countsByMask) as number[];
  throw new Fault("decryption_failed", "a project's counts are not as we write them");
}

function summaryOf(row: ProjectRow, reach: EnvironmentMask): ProjectSummary {
  return {
    id: row.id as string,
    name: row.name,
    slug: row.slug,
    variableCount: countReached(row.variableCounts, reach),
    accountCount: countReached(row.accountCounts, reach),
  };
}
