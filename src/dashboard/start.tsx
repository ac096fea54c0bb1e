/** @jsxImportSource preact */

import type { VNode } from "preact";
import { surfacesByDefault } from "../access/grant.ts";
import type { Environment } from "../core/names.ts";
import { seenOf } from "../desk/plan.ts";
import { findProject } from "../desk/projects.ts";
import { requireSets, shownEnvironments } from "../editing/open.ts";
import { everyKind, resourcesByDefault } from "../kinds/kind.ts";
import { variables } from "../kinds/variables/entry.ts";
import { create } from "../operations/organizations.ts";
import { carryOut } from "../pages/carry-out.ts";
import {
  Actions,
  Ago,
  Called,
  Change,
  Env,
  Field,
  Lead,
  Name,
  NameAgain,
  NewName,
  ShellLines,
} from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listKeys, wasAnyUsed } from "../people/keys.ts";
import { listOrganizations } from "../people/organizations.ts";
import { listProjects, type Project } from "../people/projects.ts";
import { linesWith } from "./new-key.tsx";
import { NewOrganization, SlugAndName } from "./projects.tsx";
import { unlessRefused } from "./refusal.ts";

/* The first hour: from an empty installation to the first read, one step a page. */

/** The steps, by what is missing before each is done. */
const steps = {
  organization: "Create an organization",
  project: "Create a project",
  variable: "Write the first variable",
  key: "Make the first key",
  read: "Read it with the key",
} as const;
type Step = keyof typeof steps;

/** The first step that is not done; undefined after the first read. */
async function nextStep({ admin }: Visit): Promise<Step | undefined> {
  if (await wasAnyUsed(admin)) return undefined;
  const projects = await listProjects(admin);
  if (projects.length === 0) return (await listOrganizations(admin)).length === 0 ? "organization" : "project";
  if (!projects.some(hasItems)) return "variable";
  return (await listKeys(admin)).some(({ status }) => status === "active") ? "read" : "key";
}

function hasItems(project: Project): boolean {
  return everyKind.some(({ item }) => (project[`${item}Count`] ?? 0) > 0);
}

/** Whether somebody may take every step after the first. */
function mayBegin(visit: Visit): boolean {
  return (["see", "write", "keys"] as const).every((right) => visit.may(right));
}

/** What Today says while something is missing. */
export async function invitation(visit: Visit): Promise<VNode | undefined> {
  if (visit.choices.isWithoutStart || !mayBegin(visit)) return undefined;
  const step = await nextStep(visit);
  if (step === undefined) return undefined;
  const at = Object.keys(steps).indexOf(step);
  return (
    <section class="start">
      <h2>First steps: {at} of 5 done</h2>
      <div class="actions">
        <a class="button" href="/start">
          {steps[step]}
        </a>
        <Change action="/start/leave" button="Not now" quiet />
      </div>
    </section>
  );
}

/** Leaves the first steps out of Today, until the session ends. */
export async function leaveStart({ choices }: Visit): Promise<Answer> {
  choices.isWithoutStart = true;
  return { to: "/" };
}

/** The next step, with one thing to do. */
export async function startPage(visit: Visit): Promise<Answer> {
  const step = await nextStep(visit);
  if (step === undefined) return { title: "The first read has arrived", main: await arrived(visit) };
  const main = (
    <>
      <ol class="steps">
        {Object.entries(steps).map(([name, words], at, all) => (
          <li
            aria-current={name === step ? "step" : undefined}
            class={at < all.findIndex(([other]) => other === step) ? "done" : undefined}
          >
            {words}
          </li>
        ))}
      </ol>
      {mayBegin(visit) && (step !== "organization" || visit.admin.rights === "operator") ? (
        await forms[step](visit)
      ) : (
        <BeyondRights />
      )}
      <Lead to="/">Back to Today</Lead>
    </>
  );
  return { title: steps[step], main };
}

function BeyondRights() {
  return <p>Your rights are not enough for this step. An operator can take it.</p>;
}

const forms: Readonly<Record<Step, (visit: Visit) => Promise<VNode>>> = {
  organization: async () => (
    <>
      <p>Projects and keys belong to an organization: your company, or a part of it.</p>
      <NewOrganization />
    </>
  ),
  project: async ({ admin }) => (
    <>
      <p>A project holds what one service needs, in development, staging and production.</p>
      <Change action="/projects" button="Create" hidden={{ start: "yes" }}>
        <Field name="org" label="Organization" options={(await listOrganizations(admin)).map(({ slug }) => slug)} />
        <SlugAndName />
      </Change>
    </>
  ),
  variable: async (visit) => {
    const place = await placeAmong(visit, await listProjects(visit.admin));
    if (place === undefined) return <BeyondRights />;
    const { where, sets, environment, project } = place;
    const empty = shownEnvironments(project, sets).map((one) => [`value.${one}`, ""]);
    const hidden = { ...seenOf(project, sets), ...Object.fromEntries(empty), new: "yes", start: "yes" };
    const { [`value.${environment}`]: _, ...others } = hidden as Record<string, string | number>;
    return (
      <>
        <p>
          It is for <Env value={environment} /> of <Name>{where}</Name>. It is encrypted before it is stored. People see
          its value only if they ask for it, and that is on record.
        </p>
        <Change action={projectPagePath(where, `${variables.kind}/set`)} button="Save" hidden={others}>
          <NewName help="Letters, digits and _, such as DATABASE_URL." />
          <Field name={`value.${environment}`} label="Value" rows={2} required />
          {environment === "production" && <NameAgain what="name of the variable" />}
        </Change>
        <Lead to={projectPagePath(where, `${variables.kind}/paste`)}>Paste a whole .env file instead</Lead>
      </>
    );
  },
  key: async (visit) => {
    const place = await placeAmong(visit, (await listProjects(visit.admin)).filter(hasItems));
    if (place === undefined) return <BeyondRights />;
    const { where, environment, project } = place;
    const hidden = { org: project.organization.slug, projects: `${project.slug}/${project.id}` };
    const rest = { environments: environment, surfaces: surfacesByDefault.join(), expires: "90 days", start: "yes" };
    return (
      <>
        <p>
          A key lets one machine read. This one reads <Env value={environment} /> of <Name>{where}</Name> for 90 days.
          The key is shown once, with two lines that use it. Copy them: the next step needs them.
        </p>
        <Change action="/keys" button="Create" secret="once" hidden={{ ...hidden, ...rest }}>
          {resourcesByDefault.map((resource) => (
            <input type="hidden" name="resources" value={resource} />
          ))}
          <NewName help="Such as the machine that gets it." />
        </Change>
      </>
    );
  },
  read: async ({ admin }) => {
    const keys = await listKeys(admin);
    const newest = keys.findLast(({ status }) => status === "active");
    return (
      <>
        <p>
          Run the two lines that came with the key <Called of={newest ?? { id: "", name: "" }} /> in a terminal. If no
          server runs yet, start one with <code>keyhole serve</code>.
        </p>
        {newest && <ShellLines id="use">{linesWith("THE-KEY", newest)?.lines ?? ""}</ShellLines>}
        <p data-awaits="No read came within ten minutes. Load the page again to go on waiting." role="status">
          Waiting for the first read. For ten minutes, this page looks for it every two seconds.{" "}
          <noscript>Without JavaScript, load it again.</noscript>
        </p>
        {newest && <Lead to={`/keys/${newest.id}`}>Lost the key? Rotate it</Lead>}
      </>
    );
  },
};

/**
 * The first of some projects in which somebody may write, with its variables, and the environment to begin with: one
 * that has some, or that the project uses.
 */
async function placeAmong({ admin }: Visit, projects: readonly Project[]) {
  for (const { organization, slug } of projects) {
    const where = `${organization}/${slug}`;
    const project = await unlessRefused(findProject(admin, where, "write"), ["not_found"], () => undefined);
    if (project === undefined) continue;
    const sets = await requireSets(admin, project, variables);
    const filled = sets.find(({ entries }) => entries.length > 0)?.environment;
    return { where, project, sets, environment: filled ?? (shownEnvironments(project, sets)[0] as Environment) };
  }
  return undefined;
}

async function arrived({ admin }: Visit): Promise<VNode> {
  const used = (await listKeys(admin)).filter(({ lastUsedAt }) => lastUsedAt !== null);
  const last = used.reduce((a, b) => ((b.lastUsedAt ?? 0) > (a?.lastUsedAt ?? 0) ? b : a), used[0]);
  return (
    <>
      {last && (
        <p>
          <Called of={last} to={`/keys/${last.id}`} /> read <Ago at={last.lastUsedAt} now={admin.now()} />. Each read is
          on record before its answer leaves.
        </p>
      )}
      <Actions items={{ "Go to Today": "/" }} />
    </>
  );
}

/** Creates an organization, and goes on to the projects, or to the first one. */
export async function createOrganization(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const given = { slug: form.read("slug"), name: form.find("name") || undefined };
  return carryOut(visit, create, given, (await listProjects(visit.admin)).length === 0 ? "/start" : "/projects");
}
