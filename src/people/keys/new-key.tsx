/** @jsxImportSource preact */
import type { VNode } from "preact";
import { dayMs, environments } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { joined } from "../../core/words/text.ts";
import { parseDuration } from "../../core/words/times.ts";
import { handOver } from "../../dashboard/parts/carry-out.ts";
import { rowsMax } from "../../dashboard/parts/paged.tsx";
import {
  Box,
  Boxes,
  Change,
  Chips,
  counted,
  Empty,
  Field,
  LoneLink,
  Moment,
  Name,
  NewName,
  Prose,
  ShellLines,
  SignInAgain,
  Table,
} from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer, Secret } from "../../dashboard/parts/route.ts";
import { blame, Form, type Visit } from "../../dashboard/parts/visit.ts";
import { resources, resourcesByDefault } from "../../kinds/people.ts";
import { surfaces, surfacesByDefault } from "../../serve/access/grant.ts";
import { commandLine } from "../desk/command-line.ts";
import { isFresh } from "../desk/context.ts";
import { requireMembers } from "../desk/validate.ts";
import { listOrganizations } from "../projects/organizations.ts";
import { recentProjects } from "../projects/page.tsx";
import { listProjects } from "../projects/projects.ts";
import { grantLine } from "./credentials.ts";
import { readsOf, usesOf } from "./key-words.ts";
import { type KeyRecord, showKey } from "./keys.ts";
import { create, rotate, seenKey } from "./operations.ts";
import { exampleUrl, runLine, settingsLine } from "./run-page.tsx";

/** How long a new key may live, as commands say it. */
const lifetimes: Readonly<Record<string, string | undefined>> = {
  "1 day": "1d",
  "7 days": "7d",
  "30 days": "30d",
  "90 days": "90d",
  "1 year": "365d",
  never: undefined,
};

/** How long the old key stays valid beside its successor. */
const overlaps: Readonly<Record<string, number>> = {
  "not at all": 0,
  "1 hour": dayMs / 24,
  "24 hours": dayMs,
  "7 days": 7 * dayMs,
};

/** What a new key may do is chosen here, or in the URL. Nothing is reached by default. */
export async function newKeyPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const organizations = (await listOrganizations(admin)).map(({ slug }) => slug);
  const [last] = await recentProjects(visit);
  const org = visit.query("org") ?? last?.organization ?? organizations[0];
  const typed = new Form(visit.url.search.slice(1));
  const main = (
    <>
      {!isFresh(admin) && <SignInAgain to="make a key for production" />}
      {organizations.length === 0 && (
        <Empty>
          A key belongs to an organization, and there is none yet. <a href="/projects">Begin with that</a>
        </Empty>
      )}
      {organizations.length > 1 && (
        <Chips
          label="Organizations"
          items={organizations.map((one) => ({
            words: one,
            to: withQuery("/keys/new", { org: one }),
            isHere: one === org,
          }))}
        />
      )}
      {org !== undefined && <NewKeyForm org={org} projects={await listProjects(admin, org)} typed={typed} />}
      {typed.has("command") && (await commandFor(typed))}
      <LoneLink to="/keys">All keys and trusts</LoneLink>
    </>
  );
  return { title: "Create a key", main };
}

/** @param typed - what is chosen already, by the names of the form's fields */
export function NewKeyForm(props: {
  readonly org: string;
  readonly projects: readonly ShownProject[];
  readonly typed: Form;
}) {
  const { org, projects, typed } = props;
  const isWhole = typed.has("command");
  const chosen = (name: string, otherwise: readonly string[] = []) => (isWhole ? typed.all(name) : otherwise);
  const asked = new Set(typed.all("projects"));
  const isAsked = ({ slug, id }: ShownProject) => asked.has(`${slug}/${id}`);
  const box = (project: ShownProject) => (
    <Box name="projects" value={`${project.slug}/${project.id}`} checked={isAsked(project)}>
      <Name>{project.slug}</Name>
    </Box>
  );
  const isLong = projects.length > rowsMax;
  const rows = isLong
    ? projects.toSorted((a, b) => Number(isAsked(b)) - Number(isAsked(a))).slice(0, rowsMax)
    : projects;
  return (
    <Change
      action="/keys"
      button="Create"
      secret="once"
      hidden={{ org }}
      beside={
        <button type="submit" class="quiet" name="command" value="yes" formMethod="get" formAction="/keys/new#command">
          Show the command
        </button>
      }
    >
      <NewName asked={typed.find("name")} help="Such as the machine that gets it." />
      <Boxes
        legend="What it is for"
        name="surfaces"
        options={surfaces}
        checked={chosen("surfaces", surfacesByDefault)}
        words={usesOf}
      />
      <fieldset>
        <legend>Projects</legend>
        <Box name="reach" value="all" checked={typed.find("reach") === "all"}>
          Every project of {org}, those created later too
        </Box>
        <Table
          caption="Projects"
          columns={{ Project: box }}
          rows={rows}
          none="There is no project yet."
          filter="projects"
        />
        {isLong && (
          <p class="quiet">
            These are {rowsMax} of {counted(projects.length, "project")}. For another one, begin on its page of access,
            or run <code>keyhole key create</code>.
          </p>
        )}
      </fieldset>
      <Boxes legend="Environments" name="environments" options={environments} checked={typed.all("environments")} />
      <Boxes
        legend="What it may read"
        name="resources"
        options={resources}
        checked={chosen("resources", resourcesByDefault)}
        words={readsOf}
      />
      <Field
        name="expires"
        label="Expires after"
        help="Servers refuse it from then on. Until then, it can be rotated."
        options={Object.keys(lifetimes)}
        value={typed.find("expires") ?? "90 days"}
      />
      <Box name="canary" checked={typed.has("canary")}>
        It is a canary: it opens nothing, every use of it is on record, and it never expires
      </Box>
      <p class="quiet">
        The text of the key is shown once, here. If it does not appear, look in the list of keys, and revoke a new one
        that nobody got.
      </p>
    </Change>
  );
}

type ShownProject = { readonly slug: string; readonly id: string };

/** The command that makes the same key as the form, or why there is none. */
function commandFor(typed: Form): Promise<VNode> {
  const line = async () => {
    const { surfaces, resources, ...words } = wordsFor(typed);
    const more = { surfaces: unless(surfacesByDefault, surfaces), resources: unless(resourcesByDefault, resources) };
    return <ShellLines id="command">{commandLine(create, { ...words, ...more })}</ShellLines>;
  };
  return unlessRefused(line(), ["invalid"], ({ message }) => (
    <p class="refusal" id="command">
      <Prose>{message}</Prose>
    </p>
  ));
}

/** What was chosen, unless it is what a command does without the option. */
function unless(byDefault: readonly string[], chosen: readonly string[]): readonly string[] | undefined {
  return chosen.join() === byDefault.join() ? undefined : chosen;
}

/** Of which boxes at least one must be checked. */
const needed = {
  surfaces: "what the key is for",
  resources: "what the key may read",
  environments: "an environment",
} as const;

/** What a form asks for, as words of `keyhole key create`. @throws Refused `invalid` */
function wordsFor(form: Form) {
  const isAll = form.find("reach") === "all";
  const projects = form.all("projects").map((chosen) => chosen.split("/")[0] ?? "");
  if (!isAll && projects.length === 0)
    throw new Refused("invalid", "Choose which projects the key reaches.", { field: "reach" });
  if (isAll && projects.length > 0) {
    throw new Refused("invalid", "Choose either every project or some of them.", { field: "reach" });
  }
  for (const [name, words] of Object.entries(needed)) {
    if (!form.has(name)) throw new Refused("invalid", `Choose ${words}.`, { field: name });
  }
  const canary = form.has("canary") ? (true as const) : undefined;
  return {
    organization: form.read("org"),
    name: form.read("name").trim(),
    ...(isAll ? { allProjects: true as const } : { projects }),
    environments: form.environments("environments"),
    surfaces: requireMembers("surface", surfaces, form.all("surfaces")),
    resources: requireMembers("resource", resources, form.all("resources")),
    canary,
    expiresInMs: canary ? undefined : form.choice("expires", lifetimes),
  };
}

/** Makes a key. Its text is for the page's script only, and is shown once. */
export async function makeKey(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const { expiresInMs: lifetime, ...words } = wordsFor(form);
  const projectIds = new Map(form.all("projects").map((chosen) => chosen.split("/") as [string, string]));
  const given = { ...words, projectIds, expiresInMs: lifetime === undefined ? undefined : parseDuration(lifetime) };
  return shownOnce(await handOver(visit, create, given, "/keys").catch(blame("name")), words);
}

/** Makes a successor of a key, with the same rights. */
export function RotateForm({ record, now }: { readonly record: KeyRecord; readonly now: number }) {
  const { id, createdAt, expiresAt } = record;
  return (
    <section>
      <h2>Rotate it</h2>
      <p>
        A new key with the same rights is made.{" "}
        {expiresAt === null
          ? "It never expires. "
          : ["Made now, it expires ", <Moment at={now + expiresAt - createdAt} />, ". "]}
        The old key stays valid for as long as you choose, unless it expires earlier.
      </p>
      <Change action={`/keys/${id}/rotate`} button="Rotate" secret="once" quiet hidden={seenKey(record)}>
        <Field name="overlap" label="The old key stays valid" options={Object.keys(overlaps)} value="24 hours" />
      </Change>
    </section>
  );
}

/** @throws Refused `conflict` if somebody rotated it since the page was shown */
export async function rotateShown(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const overlapMs = form.choice("overlap", overlaps);
  const made = await handOver(visit, rotate, { id: visit.param("id"), overlapMs }, "/keys");
  return shownOnce(made, await showKey(visit.admin, visit.param("id")));
}

/** Adds lines that use the key. Drops the line "Surfaces: …", which the page shows as facts. */
function shownOnce(
  { notice = "", ...made }: Secret,
  record: Pick<KeyRecord, "surfaces" | "resources"> & Reached,
): Secret {
  const use = linesWith(made.secret, record);
  return { ...made, notice: notice.replace(`${grantLine(record)}\n`, ""), ...(use && { use }) };
}

/** Lines for a shell that use a key, and what must be put into them. Undefined if it is for no program of ours. */
function linesWith(key: string, record: Pick<KeyRecord, "surfaces" | "resources"> & Reached): Secret["use"] {
  const { surfaces, resources: granted } = record;
  const mayRun = surfaces.includes("rest_api") && resourcesByDefault.every((one) => granted.includes(one));
  const isForAgents = surfaces.includes("mcp_server");
  if (!mayRun && !isForAgents) return undefined;
  const [project = "PROJECT"] = record.projects ?? [];
  const [environment = environments[0]] = record.environments ?? [];
  const program = mayRun ? runLine(project, environment) : "keyhole mcp";
  const lines = `${settingsLine(`KEYHOLE_API_KEY=${key}`)}\n${program}`;
  const places = [`your server's address in place of ${exampleUrl}`];
  if (mayRun && record.projects === null) places.push("a project in place of PROJECT");
  if (mayRun) places.push("your program in place of ./start");
  return { words: `To use it, put ${joined(places)}:`, lines };
}

type Reached = { readonly projects?: readonly string[] | null; readonly environments: readonly string[] | null };
