/** @jsxImportSource preact */
import type { Environment } from "../../core/names.ts";
import { requireFreshToCompare } from "../../desk/context.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import { Change, Changed, changesOf, counted, Empty, Env, Lead, NameAgain, Warnings } from "../../pages/parts.tsx";
import type { Answer, Done } from "../../pages/route.ts";
import type { Visit } from "../../pages/visit.ts";
import type { VariablesWrite } from "./write.ts";

/** A change of an environment that somebody has begun: a draft. */
export type Planned = {
  readonly environment: Environment;
  /** The environments of which it says what has the same value. */
  readonly compared: readonly Environment[];
  /** What it would do, by name. */
  readonly would: Pick<VariablesWrite, "added" | "changed" | "deleted" | "warnings">;
  /** How many variables have the same value already. */
  readonly same: number;
  /** The link to where another one begins. */
  readonly again: readonly [words: string, to: string];
  /** Does exactly that. @throws Refused `conflict` if somebody wrote since the plan was made */
  readonly write: (visit: Visit) => Promise<Done>;
};

/** What a change would do, before a person agrees to it. @throws Refused `stale` if it compared values of production */
export async function planPage(visit: Visit): Promise<Answer> {
  const { environment, compared, would, same, again } = plannedOf(visit);
  const project = await findProject(visit.admin, visit.where, "write", [environment]);
  requireFreshToCompare(visit.admin, placeOf(project), compared);
  const [words, to] = again;
  const main = (
    <>
      <Warnings items={would.warnings} />
      <Changed names={would} />
      {same > 0 && <p class="quiet">{counted(same, "variable has", "variables have")} the same value already.</p>}
      {changesOf(would).length === 0 ? (
        <Empty>{environment} has all of this already. There is nothing to apply.</Empty>
      ) : (
        <Change action={visit.url.pathname} button="Apply exactly that">
          {environment === "production" && <NameAgain name={visit.where} what="name of the project" />}
        </Change>
      )}
      <Lead to={to}>{words}</Lead>
    </>
  );
  return {
    title: "What it would do",
    heading: ["What it would do in ", <Env value={environment} />],
    main,
  };
}

/** Writes what the plan says. @throws Refused `conflict` if somebody wrote the environment since */
export async function applyPlan(visit: Visit): Promise<Answer> {
  const { environment, write } = plannedOf(visit);
  visit.form.requireAgain(visit.where, [environment]);
  const done = await write(visit);
  visit.drafts.clear();
  return done;
}

/** The draft of this page. */
function plannedOf({ drafts, url, admin }: Visit): Planned {
  return drafts.read(url.pathname, admin.now()) as Planned;
}
