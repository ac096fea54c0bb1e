/** @jsxImportSource preact */
import { surfaces } from "../access/grant.ts";
import { environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { requireMembers } from "../desk/validate.ts";
import { resources, resourcesByDefault } from "../kinds/kind.ts";
import { create, rotate } from "../operations/keys.ts";
import { handOver } from "../pages/carry-out.ts";
import {
  Box,
  Boxes,
  Change,
  Chooser,
  counted,
  Field,
  Lead,
  Name,
  NewName,
  NoOrganization,
  Table,
} from "../pages/parts.tsx";
import type { Answer, Secret } from "../pages/route.ts";
import type { Form, Visit } from "../pages/visit.ts";
import type { KeyRecord } from "../people/keys.ts";
import { listOrganizations } from "../people/organizations.ts";
import { listProjects } from "../people/projects.ts";
import { usesOf } from "./key-words.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** How long a new key may live. */
const lifetimes: Readonly<Record<string, number | undefined>> = {
  "1 day": dayMs,
  "7 days": 7 * dayMs,
  "30 days": 30 * dayMs,
  "90 days": 90 * dayMs,
  "1 year": 365 * dayMs,
  never: undefined,
};

/** How long the old key stays valid beside its successor. */
const overlaps: Readonly<Record<string, number>> = {
  "not at all": 0,
  "1 hour": hourMs,
  "24 hours": dayMs,
  "7 days": 7 * dayMs,
};

/** What a new key may do is chosen here. Nothing is reached by default. */
export async function newKeyPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const organizations = (await listOrganizations(admin)).map(({ slug }) => slug);
  const org = visit.query("org") ?? (organizations.length === 1 ? organizations[0] : undefined);
  const main = (
    <>
      {organizations.length === 0 && <NoOrganization what="key" />}
      {organizations.length > 1 && (
        <Chooser button="Choose">
          <Field label="For" name="org" options={organizations} value={org} />
        </Chooser>
      )}
      {org !== undefined && <NewKeyForm org={org} projects={await listProjects(admin, org)} />}
      <Lead to="/keys">All keys and trusts</Lead>
    </>
  );
  return { title: "Create a key", main };
}

function NewKeyForm({ org, projects }: { readonly org: string; readonly projects: readonly ShownProject[] }) {
  return (
    <Change action="/keys" button="Create" secret="once" hidden={{ org }}>
      <NewName help="What it is for, such as the machine that gets it." />
      <fieldset>
        <legend>Projects</legend>
        <label class="choice">
          <input type="radio" name="reach" value="some" required />
          Only those chosen below
        </label>
        <label class="choice">
          <input type="radio" name="reach" value="all" />
          Every project of {org}, those created later too
        </label>
        <ProjectBoxes projects={projects} />
      </fieldset>
      <Boxes legend="Environments" name="environments" options={environments} />
      <Boxes legend="What it may read" name="resources" options={resources} checked={resourcesByDefault} />
      <Boxes legend="What it is for" name="surfaces" options={surfaces} checked={["rest_api"]} words={usesOf} />
      <Field
        name="expires"
        label="Expires after"
        help="Servers refuse it from then on. Until then, it can be rotated."
        options={Object.keys(lifetimes)}
        value="90 days"
      />
      <p class="quiet">
        The text of the key is shown once, here. If it does not appear, look in the list of keys: a new one whose text
        nobody has must be revoked.
      </p>
    </Change>
  );
}

type ShownProject = { readonly slug: string; readonly id: string };

function ProjectBoxes({ projects }: { readonly projects: readonly ShownProject[] }) {
  const box = ({ slug, id }: ShownProject) => (
    <Box name="projects" value={`${slug}/${id}`}>
      <Name>{slug}</Name>
    </Box>
  );
  return (
    <Table
      caption="Projects"
      columns={{ Project: box }}
      rows={projects}
      none="There is no project yet."
      filter="projects"
    />
  );
}

/** Makes a key. Its text is for the page's script only, and is shown once. */
export async function makeKey(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const reach = form.find("reach");
  const projects = form.all("projects").map((chosen) => chosen.split("/"));
  const projectIds = new Map(projects.map(([slug = "", id]) => [slug, id]));
  if (reach !== "all" && reach !== "some") throw new Refused("invalid", "Choose which projects the key reaches.");
  if (reach === "all" && projects.length > 0) {
    throw new Refused("invalid", "Every project is chosen, and some projects are, too. Choose one of the two.");
  }
  const given = {
    organization: form.read("org"),
    name: form.read("name").trim(),
    surfaces: requireMembers("surface", surfaces, form.all("surfaces")),
    resources: [...form.all("resources")],
    ...(reach === "all" ? { allProjects: true as const } : { projects: [...projectIds.keys()] }),
    projectIds,
    environments: form.environments("environments"),
    expiresInMs: chosenTime(form, "expires", lifetimes),
  };
  return inWords(await handOver(visit, create, given, "/keys"));
}

/** Makes a successor of a key, with the same rights. */
export function RotateForm({ record }: { readonly record: KeyRecord }) {
  const { id, createdAt, expiresAt } = record;
  const days = expiresAt === null ? undefined : Math.max(1, Math.round((expiresAt - createdAt) / dayMs));
  return (
    <section>
      <h2>Rotate it</h2>
      <p>
        A new key with the same rights is made. It{" "}
        {days === undefined ? "never expires" : `expires after ${counted(days, "day")}`}. The old key stays valid for as
        long as you choose, unless it expires earlier.
      </p>
      <Change action={`/keys/${id}/rotate`} button="Rotate" secret="once" hidden={{ expiresAt: expiresAt ?? "never" }}>
        <Field name="overlap" label="The old key stays valid" options={Object.keys(overlaps)} value="24 hours" />
      </Change>
    </section>
  );
}

/** @throws Refused `conflict` if somebody rotated it since the page was shown */
export async function rotateShown(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const overlapMs = chosenTime(form, "overlap", overlaps) ?? 0;
  const seen = { expiresAt: form.read("expiresAt") === "never" ? null : form.number("expiresAt") };
  return inWords(await handOver(visit, rotate, { id: visit.param("id"), overlapMs, seen }, "/keys"));
}

/** Without the line that has what the key is for as commands write it: its page says that in words. */
function inWords({ notice = "", ...made }: Secret): Secret {
  return { ...made, notice: notice.replace(/^Surfaces: .*\n/m, "") };
}

/** A time that a form offers. */
function chosenTime(form: Form, name: string, times: Readonly<Record<string, number | undefined>>): number | undefined {
  const chosen = form.read(name);
  if (Object.hasOwn(times, chosen)) return times[chosen];
  throw new Refused("invalid", `${JSON.stringify(chosen)} is not one of the times: load the page again.`);
}
