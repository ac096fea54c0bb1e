/** @jsxImportSource preact */

import { lookalikes } from "../../core/words/lookalikes.ts";
import { carryOut } from "../../dashboard/parts/carry-out.ts";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import { Ago, type Cells, Change, Empty, Field, Name, Named } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import { blame, type Visit } from "../../dashboard/parts/visit.ts";
import { everyKind } from "../../kinds/kind.ts";
import { findProject } from "../desk/projects.ts";
import { missingPart } from "./grid-parts.ts";
import { makeProject } from "./operations.ts";
import { create } from "./organization-operations.ts";
import { listOrganizations } from "./organizations.ts";
import { listProjects, type Project } from "./projects.ts";

const [first] = everyKind;
/** The kind whose page a project opens with. */
export const firstKind = first?.kind ?? "";

/** A project's first page. Only the path of one that exists is sent on: another may hold what no header can. */
export async function firstPage({ admin, where }: Visit): Promise<Answer> {
  await findProject(admin, where, "see");
  return { to: projectPagePath(where, firstKind) };
}

/** All projects, with a form for a new one. */
export async function projectsPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const now = admin.now();
  const rows = await listProjects(admin);
  const marks = lookalikes(rows.map(({ id, organization, name }) => ({ id, name: `${organization}/${name}` })));
  const missing = await missingInProduction(visit, rows);
  const organizations = await listOrganizations(admin);
  const counts = everyKind.map(({ item, kind }) => [kind, (project: Project) => project[`${item}Count`]] as const);
  const columns: Cells<Project> = {
    Project: (project) => [
      <ProjectLink project={project} />,
      (project.name !== project.slug || marks.has(project.id)) && [" ", <Named thing={project} marks={marks} />],
    ],
    ...Object.fromEntries(counts),
    [missingHeading]: (project) => {
      const count = missing.get(project.id) ?? 0;
      const to = projectPagePath(pathOf(project), firstKind, { only: missingPart });
      return count > 0 && <a href={to}>{count}</a>;
    },
    "Last change": ({ updatedAt }) => <Ago at={updatedAt} now={now} />,
  };
  const main = (
    <>
      <PagedTable
        caption="Projects"
        columns={columns}
        rows={rows}
        visit={visit}
        idOf={({ id }) => id}
        own="By path"
        orders={{ "Last change": ({ updatedAt }) => -(updatedAt ?? 0) }}
        none="There is no project yet. A project holds what one service needs: create the first one."
        filter="projects"
        classOf={(_, heading) => (heading === missingHeading ? "num" : undefined)}
        nameOf={(project) => `${pathOf(project)} ${project.name}`}
      />
      {visit.may("write") && (
        <details open={rows.length === 0}>
          <summary>Create a project</summary>
          <NewProject organizations={organizations} />
        </details>
      )}
      {admin.rights === "operator" && (
        <details open={organizations.length === 0}>
          <summary>Create an organization</summary>
          <Change action="/organizations" button="Create">
            <SlugAndName prefix="organization-" />
          </Change>
        </details>
      )}
    </>
  );
  return { title: "Projects", main };
}

const missingHeading = "Missing in production";

/** How many items of the first kind each project lacks in production, by its id, if the person may see production. */
async function missingInProduction({ admin }: Visit, all: readonly Project[]): Promise<ReadonlyMap<string, number>> {
  const there = new Map((await listProjects(admin, undefined, ["production"])).map((project) => [project.id, project]));
  const count = (project: Project | undefined) => project?.[`${first?.item}Count`] ?? 0;
  const using = all.filter(({ environments }) => environments.includes("production"));
  return new Map(using.map((project) => [project.id, count(project) - count(there.get(project.id))]));
}

/** Leads to a project, by its path. */
export function ProjectLink({ project }: { readonly project: Project }) {
  return <Name to={projectPagePath(pathOf(project), firstKind)}>{pathOf(project)}</Name>;
}

/** How many projects people come back to. */
export const recentMax = 5;

/** The projects that somebody looked at last and then those that changed last, as far as they may see them. */
export async function recentProjects({ admin, choices: { projects = [] } }: Visit): Promise<Project[]> {
  const lookedAt = (project: Project) => projects.indexOf(pathOf(project));
  const all = await listProjects(admin);
  return all.sort((a, b) => lookedAt(b) - lookedAt(a) || b.updatedAt - a.updatedAt);
}

/** As commands write it. */
export function pathOf({ organization, slug }: Project): string {
  return `${organization}/${slug}`;
}

function NewProject({ organizations }: { readonly organizations: readonly { readonly slug: string }[] }) {
  if (organizations.length === 0) return <Empty>A project belongs to an organization, and there is none yet.</Empty>;
  return (
    <Change action="/projects" button="Create">
      <Field name="org" label="Organization" options={organizations.map(({ slug }) => slug)} />
      <SlugAndName />
    </Change>
  );
}

/** What a new project or organization is called. @param prefix - of the ids, if the page has several */
function SlugAndName({ prefix = "" }: { readonly prefix?: string }) {
  return (
    <>
      <Field
        name="slug"
        id={`${prefix}slug`}
        label="Slug"
        help="Lower-case letters, digits and hyphens. Machines read it by this word."
        required
        maxLength={64}
      />
      <Field
        name="name"
        id={`${prefix}name`}
        label="Name"
        help="What people call it. By default, the slug."
        maxLength={200}
      />
    </>
  );
}

export function createProject(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const project = `${form.read("org")}/${form.read("slug")}`;
  const given = { project, name: form.find("name") || undefined };
  return carryOut(visit, makeProject, given, projectPagePath(project, firstKind)).catch(blame("slug"));
}

export function createOrganization(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const given = { slug: form.read("slug"), name: form.find("name") || undefined };
  return carryOut(visit, create, given, "/projects").catch(blame("slug"));
}
