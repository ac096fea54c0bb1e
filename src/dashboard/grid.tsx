/** @jsxImportSource preact */
import { may } from "../access/rights.ts";
import { environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { mayCompare } from "../desk/context.ts";
import { findProject, placeOf } from "../desk/projects.ts";
import { descriptorOf, everyKind } from "../kinds/kind.ts";
import { kindPages } from "../kinds/pages.ts";
import { Actions, type Cells, environmentColumns, Lead, Name, Table, There } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { compareEnvironments, type ItemsAcross } from "../people/comparison.ts";

type Compared = ItemsAcross["items"][number];

/** The names of one kind by environment: there, missing, the same, different. */
export async function gridPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const pages = kindPages[kind];
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const now = admin.now();
  const mayWrite = (await visit.reached("write")).length > 0;
  const project = await findProject(admin, where, "see");
  const isStale = seen.some(
    (one) => may(admin.rights, "reveal", placeOf(project), one) && !mayCompare(admin, placeOf(project), one),
  );
  const columns: Cells<Compared> = {
    Name: ({ name }) => [
      <Name to={projectPagePath(where, `${kind}/item`, { name })}>{name}</Name>,
      pages?.noteOf?.(name) && <span class="missing"> {pages.noteOf(name)}</span>,
    ],
    ...environmentColumns<Compared>(seen, ({ environments: found }, environment) => (
      <There at={found[environment]?.updatedAt} now={now} />
    )),
    Compared: comparison,
  };
  const isThere = (page: string) =>
    pages?.routes?.some(({ method, path, rights }) => method === "GET" && path.endsWith(page) && visit.may(...rights));
  const own = Object.entries(pages?.actions ?? {}).filter(([, page]) => isThere(page));
  const all = [...(pages?.form ? [[`New ${descriptorOf(kind).item}`, `${kind}/set`] as const] : []), ...own];
  const actions = all.map(([words, page]) => [words, projectPagePath(where, page)]);
  const main = (
    <>
      {mayWrite && <Actions items={Object.fromEntries(actions)} />}
      {isStale && <Lead to="/sign-in?again">Sign in again to compare production</Lead>}
      <Table
        caption={`The ${kind} of ${where} by environment`}
        columns={columns}
        rows={items}
        none={[`${where} has no ${kind} yet. `, mayWrite && pages?.firstStep]}
        filter={kind}
        isLong
      />
    </>
  );
  return { title: `${where} ${kind}`, heading: kind[0]?.toUpperCase() + kind.slice(1), main };
}

/** The kind in a path. */
export function requireKind(text: string): string {
  const found = everyKind.find(({ kind }) => kind === text);
  if (found === undefined) throw new Refused("not_found", "There is no such page.");
  return found.kind;
}

/** What a row says about the values that are there, such as `same` or `production differs`. */
export function comparison({ environments: found }: Compared): string {
  const there = environments.flatMap((environment) => {
    const one = found[environment];
    return one === undefined ? [] : [{ environment, group: one.group }];
  });
  if (there.length < 2) return `only ${there[0]?.environment}`;
  if (there.some(({ group }) => group === null)) return `in ${there.map(({ environment }) => environment).join(", ")}`;
  const groups = new Set(there.map(({ group }) => group));
  if (groups.size === 1) return "same";
  if (groups.size === there.length) return there.length === 2 ? "different" : "all different";
  const odd = there.find(({ group }) => there.filter((other) => other.group === group).length === 1);
  return `${odd?.environment} differs`;
}
