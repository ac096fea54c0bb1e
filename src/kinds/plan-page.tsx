/** @jsxImportSource preact */

import type { Environment } from "../core/names.ts";
import { firstLines } from "../core/words/text.ts";
import { carryOut, type Filled, planned } from "../dashboard/parts/carry-out.ts";
import {
  Change,
  Changed,
  changesOf,
  counted,
  Empty,
  Env,
  LoneLink,
  NameAgain,
  Warnings,
} from "../dashboard/parts/parts.tsx";
import { projectPagePath } from "../dashboard/parts/paths.ts";
import { type Answer, type Done, type Route, rightsOf } from "../dashboard/parts/route.ts";
import type { Visit } from "../dashboard/parts/visit.ts";
import type { Inputs } from "../people/desk/inputs.ts";
import type { Operation, Planned } from "../people/desk/operation.ts";
import { changedSince, type Plan, requireAsSeen, type Seen } from "../people/desk/plan.ts";
import type { NamesWritten } from "../record/entry.ts";
import { digestOf } from "../serve/sets/verified-set.ts";

/** What somebody has begun and not yet agreed to: it keeps what a person gave, and no finding. */
type Draft = ReturnType<typeof drafted> & {
  /** Where it would be done: the project, the kind and the environment. */
  readonly where: string;
  readonly kind: string;
  readonly environment: Environment;
  /** The link to where another one begins. */
  readonly again: readonly [words: string, to: string];
};

/** A plan that names what would change, and says how many variables are the same already. */
type ShownPlan = Plan & { readonly names: NamesWritten; readonly same: number };

/** An operation with what a person gave it. */
export function drafted<const I extends Inputs>(operation: Planned<I, ShownPlan>, given: Filled<I>) {
  const exactly: Planned<I, ShownPlan> = {
    ...operation,
    plan: async (...asked) => asShown(await operation.plan(...asked)),
  };
  const plan = (visit: Visit) => planned(visit, exactly, given);
  return { plan, run: (visit: Visit, to: string) => carryOut(visit, exactly, given, to) };
}

/** A page names what would change, and exactly that is applied: what is named depends on rights, too. */
function asShown(plan: ShownPlan): ShownPlan {
  const { added, changed, deleted } = plan.names;
  const names = digestOf(JSON.stringify([added, changed, deleted]));
  return {
    ...plan,
    seen: { plan: names, ...plan.seen },
    differs: async (what, shown) => {
      if (what === "plan" || plan.differs === undefined) throw changedSince(what, shown, "");
      await plan.differs(what, shown);
    },
  };
}

/** The page that shows what a draft would do, and the form below it. @param path - of the page where it was begun */
export function planRoutes(path: string, operation: Pick<Operation, "right">): readonly Route[] {
  const shown = { path: `${path}/:draft`, rights: rightsOf(operation) };
  return [
    { method: "GET", ...shown, answer: planPage },
    { method: "POST", ...shown, answer: applyPlan },
  ];
}

/**
 * Keeps a change as a draft, and leads to the page that shows what it would do.
 * @param page - where it was begun
 * @param shown - what it was begun from
 */
export async function keepDraft(visit: Visit, page: string, draft: Draft, shown: Seen = {}): Promise<Done> {
  await requireAsSeen(await draft.plan(visit), shown);
  return { to: visit.drafts.keep(page, draft, visit.form.bytes, visit.admin.now()) };
}

/** What a change would do, before a person agrees to it. */
async function planPage(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  const { where, environment, again } = draft;
  const { names, same, warnings = [], seen, sentence } = await draft.plan(visit);
  const [words, to] = again;
  const main = (
    <>
      <Warnings items={firstLines(warnings)} />
      <p>{sentence}</p>
      <Changed names={names} />
      {same > 0 && <p class="quiet">{counted(same, "variable has", "variables have")} the same value already.</p>}
      {changesOf(names).length === 0 ? (
        <Empty>There is nothing to apply.</Empty>
      ) : (
        <Change action={visit.url.pathname} button="Apply exactly that" hidden={seen}>
          {environment === "production" && <NameAgain name={where} what="name of the project" />}
        </Change>
      )}
      <LoneLink to={to}>{words}</LoneLink>
    </>
  );
  return {
    title: "What it would do",
    heading: ["What it would do in ", <Env value={environment} />],
    main,
  };
}

/** Writes what the page showed. @throws Refused `conflict` if somebody wrote since */
async function applyPlan(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  const { where, kind, environment } = draft;
  visit.form.requireAgain(where, [environment]);
  const done = await draft.run(visit, projectPagePath(where, kind));
  visit.drafts.end(visit.url.pathname);
  return done;
}

/** The draft of this page. */
function draftOf({ drafts, url, admin }: Visit): Draft {
  return drafts.read(url.pathname, admin.now()) as Draft;
}
