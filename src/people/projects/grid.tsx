/** @jsxImportSource preact */

import { type Environment, remarkNames } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { formatTime } from "../../core/words/text.ts";
import {
  Actions,
  Ago,
  Alike,
  Box,
  type Cells,
  Change,
  type Chip,
  Chips,
  ChooseAll,
  environmentColumns,
  Name,
  NameAgain,
  ShowTyped,
  SignInAgain,
  Table,
  thereClass,
  Warnings,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { everyKind } from "../../kinds/kind.ts";
import { kindPages } from "../../kinds/pages.ts";
import { descriptorOf } from "../../kinds/people.ts";
import type { Right } from "../../serve/access/rights.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import { isStaleToCompare } from "../desk/context.ts";
import { seenOf } from "../desk/plan.ts";
import { type FoundProject, findProject, placeOf, projectPath } from "../desk/projects.ts";
import { behindWords, dayOf, findKindReads, type KindReads } from "../editing/last-reads.ts";
import { compareEnvironments } from "./comparison.ts";
import { type Compared, isCompared, isDifferent, partsOf, readsOf, soonMs } from "./grid-parts.ts";

/**
 * The names of one kind by environment: there, or missing.
 * @param isAsked - whether somebody asked which values differ: they are opened, on record, and these rows come first
 */
export async function gridPage(visit: Visit, isAsked = false): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const choose = visit.query("choose");
  const path = (only?: string, chooses = choose) => projectPagePath(where, kind, { only, choose: chooses });
  const project = await findProject(admin, where, "see");
  if (isAsked) visit.form.requireProject(project);
  const { items, environments: seen, sets } = await compareEnvironments(admin, where, kind, isAsked);
  const now = admin.now();
  const only = visit.query("only");
  const descriptor = descriptorOf(kind);
  const known = await findKindReads(admin, project, kind, seen);
  const isAnyCompared = isAsked || items.some(isCompared);
  const parts = partsOf(seen, now, descriptor, known, isAnyCompared && !isAsked);
  const chosen = parts.find((part) => part.only === only);
  if (chosen === undefined) throw new Refused("not_found", `There is no part ${JSON.stringify(only)} of the ${kind}.`);
  const rows = items.filter(chosen.has);
  if (isAsked) rows.sort((a, b) => Number(isDifferent(b)) - Number(isDifferent(a)));
  const chips = parts.flatMap(({ only, words, has }): Chip[] => {
    const count = items.filter(has).length;
    const isShown = only === undefined || count > 0;
    return isShown ? [{ words, count, to: path(only), isHere: only === chosen.only }] : [];
  });
  const revealed = visit.reached(project, "reveal").filter((one) => seen.includes(one));
  const written = visit.reached(project, "write");
  const mayWrite = written.length > 0;
  const editable = kindPages[kind]?.isEditedInRows ? written.filter((one) => seen.includes(one)) : [];
  const shownSets = sets.filter((set) => editable.includes(set.environment));
  const { Several, form } = (mayWrite && kindPages[kind]) || {};
  const runs = { Run: projectPagePath(where, "run") };
  const actions = {
    ...actionsOf(visit, project, kind),
    ...(Several && rows.length > 0 && { "Choose several": path(only, "yes") }),
    ...runs,
  };
  const isChosen = choose !== undefined && Several !== undefined && rows.length > 0;
  const table = (
    <Table
      caption={`The ${kind} of ${where} by environment`}
      columns={{ ...columnsOf(where, kind, items, seen, now, isChosen), ...readColumn(descriptor, known, now) }}
      classOf={(item, environment) => {
        if (environment === lastRead) return "reads";
        const found = item.environments[environment as Environment];
        return thereClass(found !== undefined, environment, isCompared(item) ? found?.group : null);
      }}
      rows={rows}
      none={
        items.length === 0
          ? [`${where} has no ${kind} yet. `, mayWrite && kindPages[kind]?.firstStep]
          : [`${chosen.words}: nothing. `, <a href={path()}>Show all</a>]
      }
      filter={kind}
      tools={
        isChosen ? <ChooseAll name="names" /> : <Actions items={mayWrite ? actions : runs} quiet={!mayWrite || !form} />
      }
      isLong
      groupOf={isAsked ? undefined : ({ name }) => /^[^_]+_/.exec(name)?.[0]}
    />
  );
  const main = (
    <>
      {known?.behindSinceAt !== undefined && <Warnings items={[behindWords(known.behindSinceAt)]} />}
      {isStaleToCompare(admin, placeOf(project), seen) && <SignInAgain to="compare production" />}
      {items.length > 0 && (
        <Chips label={`Parts of the ${kind}`} items={chips}>
          {rows.some(isCompared) && <small>The same letter: the same value</small>}
          {!isAnyCompared && revealed.length > 1 && (
            <form method="post" action={projectPagePath(where, `${kind}/compare`)}>
              <input type="hidden" name="project" value={project.id} />
              <button type="submit" class="quiet">
                Which values differ?
              </button>
            </form>
          )}
        </Chips>
      )}
      {isChosen ? (
        <Change
          action={projectPagePath(where, `${kind}/several`)}
          button="See what it would do in"
          choice={{ name: "environment", options: written }}
        >
          {table}
          <Several where={where} shown={seen} />
        </Change>
      ) : editable.length > 0 && rows.length > 0 ? (
        <Change
          action={projectPagePath(where, `${kind}/edit`)}
          button="Save"
          hidden={{ ...seenOf(project, shownSets), here: "" }}
          rows={editable}
          first={
            <>
              {editable.includes("production") && <NameAgain name={where} what="name of the project" />}
              <ShowTyped />
            </>
          }
        >
          {table}
        </Change>
      ) : (
        table
      )}
      {!isChosen && kindPages[kind]?.reveal && revealed.length > 0 && rows.length > 0 && (
        <CopyInRows where={where} kind={kind} project={project} from={revealed} />
      )}
    </>
  );
  return { title: `${where} ${kind}`, heading: kind[0]?.toUpperCase() + kind.slice(1), main };
}

function columnsOf(
  where: string,
  kind: string,
  items: readonly Compared[],
  seen: readonly Environment[],
  now: number,
  isChosen: boolean,
): Cells<Compared> {
  const { Note } = kindPages[kind] ?? {};
  const alike = lookalikes(items.map(({ name }) => ({ id: name, name })));
  const item = projectPagePath(where, `${kind}/item`);
  return {
    Name: ({ name, environments: found }) => {
      const said = remarkNames.map((one) => [one, Object.values(found).find((there) => there[one])?.[one]] as const);
      const link = isChosen ? undefined : `${item}?name=${encodeURIComponent(name)}`;
      const shown = <Name to={link}>{name}</Name>;
      return [
        isChosen ? <Box name="names" value={name} children={shown} /> : shown,
        alike.has(name) && <Alike />,
        Note && <Note name={name} />,
        said.map(([what, text]) => text && <small title={excerpt(text)}> {what}</small>),
      ];
    },
    ...environmentColumns<Compared>(seen, ({ environments: found }, environment) => {
      const { updatedAt, dueAt = Number.POSITIVE_INFINITY, isCanary, isMachinesOnly } = found[environment] ?? {};
      if (updatedAt === undefined) return "missing";
      const there = [
        <Ago at={updatedAt} now={now} />,
        isCanary && <b class="due"> canary</b>,
        isMachinesOnly && <small> machines only</small>,
      ];
      if (dueAt > now + soonMs) return there;
      if (dueAt <= now) return [there, <b class="missing"> overdue</b>];
      return [there, <b class="due"> due</b>];
    }),
  };
}

const lastRead = "Last read";

/** When machines last read an item, by its name or with the whole set, in the environments that a person may know of. */
function readColumn({ isReadByName }: KindDescriptor, known: KindReads | undefined, now: number): Cells<Compared> {
  if (known === undefined) return {};
  const since = known.withAllSinceAt;
  const never = <data value={formatTime(since)}>never since {dayOf(since)}</data>;
  const cell = (item: Compared) => {
    const reads = readsOf(item, known);
    if (reads === undefined) return "";
    const { byNameAt, withAllAt } = reads;
    const at = Math.max(byNameAt ?? 0, withAllAt ?? 0);
    return at === 0 ? never : [<Ago at={at} now={now} />, isReadByName && at !== byNameAt && <small> with all</small>];
  };
  return { [lastRead]: cell };
}

/** Where somebody who may write in a project goes from its grid. */
export function actionsOf(visit: Visit, project: FoundProject, kind: string): Readonly<Record<string, string>> {
  const all = deedsOf(kind).filter(({ needs }) => visit.reached(project, ...needs).length > 0);
  return Object.fromEntries(all.map(({ name, page }) => [name, projectPagePath(projectPath(project), page)]));
}

/** A page of a project that people know by what they do there, and all the rights that it takes. */
export type NamedPage = { readonly name: string; readonly page: string; readonly needs: readonly Right[] };

/** A new item, and the kind's own pages. */
export function deedsOf(kind: string): readonly NamedPage[] {
  const { form, routes = [], actions = {} } = kindPages[kind] ?? {};
  const own = Object.entries(actions).flatMap(([name, page]) => {
    const route = routes.find(({ method, path }) => method === "GET" && path.endsWith(page));
    return route === undefined ? [] : [{ name, page, needs: route.needs ?? route.rights }];
  });
  return [
    ...(form ? [{ name: `New ${descriptorOf(kind).item}`, page: `${kind}/set`, needs: ["write"] as const }] : []),
    ...own,
  ];
}

/** The form behind the buttons that the script puts into the row in which somebody is. */
export function CopyInRows(props: {
  readonly where: string;
  readonly kind: string;
  readonly project: Pick<FoundProject, "id">;
  readonly from: readonly Environment[];
}) {
  const { where, kind, project, from } = props;
  return (
    <form
      id="copy"
      method="post"
      action={projectPagePath(where, `${kind}/reveal`)}
      data-change
      data-secret="copied"
      data-copy={from.join(" ")}
    >
      <input type="hidden" name="project" value={project.id} />
      <input type="hidden" name="name" />
      <span role="alert" class="refusal" />
    </form>
  );
}

/** The kind in a path. */
export function requireKind(text: string): string {
  const found = everyKind.find(({ kind }) => kind === text);
  if (found === undefined) throw new Refused("not_found", "There is no such page.");
  return found.kind;
}
