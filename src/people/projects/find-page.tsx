/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { unlessRefused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { counted } from "../../core/words/text.ts";
import { typedIn } from "../../dashboard/parts/carry-out.ts";
import {
  Actions,
  type Cells,
  Empty,
  Envs,
  joined,
  LoneLink,
  Name,
  Table,
  Warnings,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath, withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer, Offer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { everyKind } from "../../kinds/kind.ts";
import { findProject } from "../desk/projects.ts";
import { findKeys } from "../keys/found-keys.ts";
import { identifyKeys, requireSeesKeys } from "../keys/keys.ts";
import { personPath } from "../persons/rights-form.tsx";
import { find, type Hit, type SearchResult, whatIs } from "./find.ts";
import { actionsOf, deedsOf, type NamedPage } from "./grid.tsx";
import { firstKind, pathOf, recentMax, recentProjects } from "./page.tsx";

/**
 * What the script offers below the field in the frame: what can be done that is called so, and the best names that have a
 * part; before somebody types, where they go most often. A search finds here what it finds on its page.
 */
export async function offered(visit: Visit): Promise<Answer> {
  const part = visit.query("q")?.trim() ?? "";
  if (part === "") return { offers: await destinations(visit), said: "Type a part of a name, or what you want to do." };
  const lately = latelyOf(visit);
  const result = await find(visit.admin, part, undefined, { lately });
  const { found, count, unread, projects } = result;
  const deeds = deedsFor(visit, part, result, lately);
  const whatOf = whatsOf(found);
  const offers = found.slice(0, offersMax - deeds.length).map((hit) => {
    const about = [
      whatOf(hit),
      placeOf(hit),
      ...environmentsToName(hit, projects),
      ...(hit.projects ?? []),
      hit.note ?? "",
    ];
    return { name: excerpt(hit.name), about: about.filter(Boolean).map(excerpt).join(", "), to: pageOf(hit) };
  });
  const none = deeds.length > 0 ? "" : "Nothing that you may see has this in its name or its note.";
  const more = [
    count === 0 ? none : `${counted(count, "name")}.`,
    count > offers.length && "Enter lists them.",
    unread > 0 && `${counted(unread, "set")} could not be searched.`,
  ].filter(Boolean);
  return { offers: [...deeds, ...offers], said: more.join(" ") };
}

const offersMax = 8;

/** The environments of an item, unless it is in all that its project has something in. */
function environmentsToName({ organization, project, environments = [] }: Hit, projects: SearchResult["projects"]) {
  return environments.length === projects.get(`${organization}/${project}`)?.used.size ? [] : environments;
}

/** The projects that somebody looked at, the newest last. The page they are on counts as the newest. */
function latelyOf(visit: Visit): readonly string[] {
  const { projects = [] } = visit.choices;
  const [, here] = /^\/p\/([^/]+\/[^/]+)\//.exec(visit.query("page") ?? "") ?? [];
  return here === undefined ? projects : [...projects.filter((one) => one !== here), here];
}

/** What people do anywhere. */
function anywhere(visit: Visit): readonly Offer[] {
  return [
    ...(visit.may("keys") ? [{ name: "Create a key", about: "", to: "/keys/new" }] : []),
    ...(visit.may("audit") ? [{ name: "Search the audit", about: "", to: "/audit" }] : []),
  ];
}

/**
 * Pages that people name by what they do there. Each typed word begins a word of such a name, or is part of the project's
 * path. Without a word for the project, it is the one they looked at last. It runs no SQL.
 */
function deedsFor(visit: Visit, part: string, { projects }: SearchResult, lately: readonly string[]): readonly Offer[] {
  const words = part.toLowerCase().split(/\s+/);
  // Each word costs time for each project.
  if (words.length > wordsMax) return [];
  const othersThan = (name: string) => {
    const called = name.toLowerCase().split(" ");
    return words.filter((word) => word.length < 2 || !called.some((one) => one.startsWith(word)));
  };
  const called = (deeds: readonly NamedPage[]) =>
    deeds
      .map((deed) => ({ ...deed, others: othersThan(deed.name) }))
      .filter(({ others }) => others.length < words.length);
  const writings = called(everyKind.flatMap(({ kind }) => deedsOf(kind)));
  const pages = called(
    [...everyKind.map(({ kind }) => kind), "history", "access", "run"].map((page) => {
      return { name: `${page[0]?.toUpperCase()}${page.slice(1)}`, page, needs: ["see"] };
    }),
  );
  const all = anywhere(visit).filter(({ name }) => othersThan(name).length === 0);
  const order = writings.length + pages.length > 0 ? [...lately.toReversed(), ...projects.keys()] : [];
  let isLast = true;
  for (const where of new Set(order)) {
    const project = projects.get(where)?.project;
    if (project === undefined || all.length >= deedsMax) continue;
    const mayWrite = visit.reached(project, "write").length > 0;
    for (const { name, page, needs, others } of [...(mayWrite ? writings : []), ...pages]) {
      const isAsked = (isLast || others.length > 0) && others.every((word) => where.includes(word));
      if (isAsked && visit.reached(project, ...needs).length > 0)
        all.push({ name, about: `in ${where}`, to: projectPagePath(where, page) });
    }
    isLast = false;
  }
  return all.slice(0, deedsMax);
}

const deedsMax = 3;
const wordsMax = 8;

/** The projects that people come back to, what they do in the one at which they look, and what they do anywhere. */
async function destinations(visit: Visit): Promise<Offer[]> {
  const recent = (await recentProjects(visit)).slice(0, recentMax).map(pathOf);
  const where = latelyOf(visit).at(-1) ?? recent[0];
  const writable =
    where && (await unlessRefused(findProject(visit.admin, where, "write"), ["not_found"], () => undefined));
  const inIt = writable ? Object.entries(actionsOf(visit, writable, firstKind)) : [];
  return [
    ...recent.map((name) => ({ name, about: "project", to: projectPagePath(name, firstKind) })),
    ...inIt.map(([name, to]) => ({ name, about: `in ${where}`, to })),
    ...anywhere(visit),
  ];
}

/**
 * What was typed into the field leads to its page. A key leads to its own, and is never in an address: histories and
 * proxies keep those.
 */
export async function findTyped({ admin, form }: Visit): Promise<Answer> {
  const text = form.read("q").trim();
  // Cut, because the server refuses a long address. The page says that no name is so long.
  if (!keyLike.test(text)) return { to: withQuery("/find", { q: text.slice(0, 1025) }) };
  requireSeesKeys(admin);
  const [key] = await identifyKeys(admin, await findKeys(typedIn(text).chunks()));
  if (key === undefined) return { to: "/find", notice: "This looks like a key, and is none that you may see." };
  return { to: `/keys/${key.id}`, notice: `What you pasted is this ${key.type}. It is ${key.status}.` };
}

/** A key, or a part of one. The script has the same. */
const keyLike = /kh_\w{16}/;

/** Everything whose name or note has a part, each with a link to its page. The field for the part is in the frame. */
export async function findPage(visit: Visit): Promise<Answer> {
  const part = visit.query("q")?.trim() ?? "";
  if (part === "") return { title: "Find", main: <Begin /> };
  const found = await find(visit.admin, part, undefined, { after: visit.query("after") });
  const deeds = deedsFor(visit, part, found, latelyOf(visit));
  const main = (
    <>
      <Warnings items={found.warnings} />
      {deeds.length > 0 && (
        <Actions items={Object.fromEntries(deeds.map(({ name, about, to }) => [`${name} ${about}`, to]))} quiet />
      )}
      {found.count > 0 && <p class="quiet">{rangeOf(found)}</p>}
      <Table
        caption="What has it in its name or its note, the best first"
        columns={columnsOf(found.found)}
        rows={found.found}
        none={<Nothing visit={visit} part={part} />}
        isPart={found.found.length < found.count}
      />
      <Actions
        items={{
          ...(found.before > 0 && { "First page": withQuery("/find", { q: part }) }),
          ...(found.last && { "Next page": withQuery("/find", { q: part, after: found.last }) }),
        }}
        quiet
      />
    </>
  );
  return { title: `Find ${part}`, heading: ["Find ", <Name>{part}</Name>], main };
}

/** Which of the hits a page has. */
function rangeOf({ found, count, before }: SearchResult): string {
  if (found.length === count) return `${counted(count, "name")}.`;
  const [first, last] = [before + 1, before + found.length].map((at) => at.toLocaleString("en"));
  return `${first} to ${last} of ${counted(count, "name")}.`;
}

function Begin() {
  return (
    <Empty>
      Type a part of a name into the field at the top: of a variable, an account, a file, a project, a key, a trust, a
      request or a person.
    </Empty>
  );
}

function Nothing({ visit, part }: { readonly visit: Visit; readonly part: string }) {
  return (
    <>
      Nothing that you may see has <Name>{part}</Name> in its name or its note. Try a shorter part.
      {visit.may("audit") && (
        <LoneLink to={withQuery("/audit", { name: part })}>Look in the audit for a name that was deleted</LoneLink>
      )}
    </>
  );
}

const columnsOf = (found: readonly Hit[]): Cells<Hit> => ({
  Name: (hit) => [
    <Name to={pageOf(hit)}>{hit.name}</Name>,
    hit.note && <small class="note">{excerpt(hit.note)}</small>,
  ],
  Project: (hit) => <Word>{placeOf(hit)}</Word>,
  "Where it is": whereItIs,
  What: whatsOf(found),
});

function placeOf({ organization, project }: Hit): string {
  return [organization ?? "none", project].filter(Boolean).join("/");
}

/** What each is. Keys and trusts of one look carry the first letters of their ids. */
function whatsOf(found: readonly Hit[]): (hit: Hit) => string {
  const marks = lookalikes(found.flatMap(({ id, name, project }) => (id && project === null ? [{ id, name }] : [])));
  return (hit) => [whatIs(hit), hit.id && marks.has(hit.id) && `id ${marks.get(hit.id)}…`].filter(Boolean).join(", ");
}

function pageOf({ type, organization, project, name, id }: Hit): string {
  if (type === "person") return personPath(name);
  if (type === "request") return `/requests/${id}`;
  if (project === null) return `/keys/${id}`;
  const kind = everyKind.find(({ item }) => item === type)?.kind;
  const where = `${organization}/${project}`;
  return kind === undefined ? `/p/${where}` : projectPagePath(where, `${kind}/item`, { name });
}

function whereItIs({ environments, projects }: Hit): ComponentChildren {
  if (environments !== undefined) return <Envs values={environments} />;
  return joined((projects ?? []).map((where) => <Name to={projectPagePath(where, "access")}>{where}</Name>));
}
