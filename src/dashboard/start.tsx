/** @jsxImportSource preact */

import type { VNode } from "preact";
import { unlessRefused } from "../core/refused.ts";
import { everyKind } from "../kinds/kind.ts";
import { variables } from "../kinds/variables/entry.ts";
import { findProject } from "../people/desk/projects.ts";
import { listKeys, wasAnyUsed } from "../people/keys/keys.ts";
import { listOrganizations } from "../people/projects/organizations.ts";
import { listProjects, type Project } from "../people/projects/projects.ts";
import { Actions, Ago, Change, LoneLink, Named } from "./parts/parts.tsx";
import { projectPagePath, withQuery } from "./parts/paths.ts";
import type { Answer } from "./parts/route.ts";
import type { Visit } from "./parts/visit.ts";

/* The first hour: from an empty installation to the first read. Each step leads to the page for it. */

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

/** The steps, and what the next one is about. */
export async function startPage(visit: Visit): Promise<Answer> {
  const step = await nextStep(visit);
  if (step === undefined) return { title: "The first read has arrived", main: await arrived(visit) };
  const to = step === "read" ? undefined : await pageOf(visit, step);
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
      {step === "read" ? (
        await waiting(visit)
      ) : to === undefined || !mayBegin(visit) ? (
        <p>Your rights are not enough for this step. An operator can take it.</p>
      ) : (
        <>
          <p>{about[step]}</p>
          <Actions items={{ [steps[step]]: to }} />
        </>
      )}
      <LoneLink to="/">Back to Today</LoneLink>
    </>
  );
  return { title: steps[step], main };
}

const about: Readonly<Record<Exclude<Step, "read">, string>> = {
  organization: "Projects and keys belong to an organization: your company, or a part of it.",
  project: "A project holds what one service needs, in development, staging and production.",
  variable: "It is encrypted before it is stored. People see its value only if they ask for it, and that is on record.",
  key: "A key lets one machine read. It is shown once, with two lines that use it. Copy them: the next step needs them.",
};

/** The ordinary page on which somebody takes a step; undefined if their rights are not enough. */
async function pageOf({ admin }: Visit, step: Exclude<Step, "read">): Promise<string | undefined> {
  if (step === "organization") return admin.rights === "operator" ? "/projects" : undefined;
  if (step === "project") return "/projects";
  const projects = await listProjects(admin);
  if (step === "key") {
    const filled = projects.find(hasItems);
    return filled && withQuery("/keys/new", { org: filled.organization, projects: `${filled.slug}/${filled.id}` });
  }
  for (const { organization, slug } of projects) {
    const where = `${organization}/${slug}`;
    const found = await unlessRefused(findProject(admin, where, "write"), ["not_found"], () => undefined);
    if (found !== undefined) return projectPagePath(where, `${variables.kind}/set`);
  }
  return undefined;
}

async function waiting({ admin }: Visit): Promise<VNode> {
  const newest = (await listKeys(admin)).findLast(({ status }) => status === "active");
  return (
    <>
      <p>
        Run the two lines that came with the key in a terminal. If no server runs yet, start one with{" "}
        <code>keyhole serve</code>.
      </p>
      <p data-awaits="No read came within ten minutes. Load the page again to go on waiting." role="status">
        Waiting for the first read. For ten minutes, this page looks for it every two seconds.{" "}
        <noscript>Without JavaScript, load it again.</noscript>
      </p>
      {newest && <LoneLink to={`/keys/${newest.id}`}>Lost the key? Rotate it</LoneLink>}
    </>
  );
}

async function arrived({ admin }: Visit): Promise<VNode> {
  const used = (await listKeys(admin)).filter(({ lastUsedAt }) => lastUsedAt !== null);
  const last = used.reduce((a, b) => ((b.lastUsedAt ?? 0) > (a?.lastUsedAt ?? 0) ? b : a), used[0]);
  return (
    <>
      {last && (
        <p>
          <Named thing={last} to={`/keys/${last.id}`} /> read <Ago at={last.lastUsedAt} now={admin.now()} />. Each read
          is on record before its answer leaves.
        </p>
      )}
      <Actions items={{ "Go to Today": "/" }} />
    </>
  );
}
