/** @jsxImportSource preact */
import { isDeepStrictEqual } from "node:util";
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { AdminContext } from "../../desk/context.ts";
import { Change, Changed, changesOf, counted, Empty, Env, Lead, NameAgain, Warnings } from "../../pages/parts.tsx";
import type { Answer, Done } from "../../pages/route.ts";
import type { Visit } from "../../pages/visit.ts";
import type { VariablesWrite } from "./write.ts";

/** A change of an environment that somebody has begun: a draft. It keeps what a person gave, and shows no finding. */
export type Planned = {
  readonly environment: Environment;
  /**
   * Finds out what it would do, each time with the rights of that moment: a right that was taken tells nothing more.
   * @throws Refused `stale` if it compares values of production, `conflict` if somebody wrote since the draft was begun
   */
  readonly plan: (admin: AdminContext) => Promise<Would>;
  /** The link to where another one begins. */
  readonly again: readonly [words: string, to: string];
  /** Does exactly that. @throws Refused `conflict` if somebody wrote since the draft was begun */
  readonly write: (visit: Visit) => Promise<Done>;
};

/** What a change would do, by name, and how many variables have the same value already. */
type Would = Pick<VariablesWrite, "added" | "changed" | "deleted" | "warnings"> & { readonly same: number };

/** A draft, and what its page showed last: nothing else is applied. */
type Draft = Planned & { shown: Would };

/** Keeps a change as a draft, and leads to the page that shows what it would do. @param page - where it was begun */
export async function keepDraft({ admin, drafts }: Visit, page: string, planned: Planned): Promise<Done> {
  const draft: Draft = { ...planned, shown: await planned.plan(admin) };
  return { to: drafts.keep(page, draft, admin.now()) };
}

/** What a change would do, before a person agrees to it. */
export async function planPage(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  const { environment, plan, again } = draft;
  const would = await plan(visit.admin);
  draft.shown = would;
  const [words, to] = again;
  const main = (
    <>
      <Warnings items={would.warnings} />
      <Changed names={would} />
      {would.same > 0 && (
        <p class="quiet">{counted(would.same, "variable has", "variables have")} the same value already.</p>
      )}
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

/** Writes what the page showed. @throws Refused `conflict` if that is not what would be written now */
export async function applyPlan(visit: Visit): Promise<Answer> {
  const { environment, plan, shown, write } = draftOf(visit);
  visit.form.requireAgain(visit.where, [environment]);
  if (!isDeepStrictEqual(await plan(visit.admin), shown)) {
    const words = "What this would do has changed since it was shown, as your rights have. Nothing was written.";
    throw new Refused("conflict", words);
  }
  const done = await write(visit);
  visit.drafts.clear();
  return done;
}

/** The draft of this page. */
function draftOf({ drafts, url, admin }: Visit): Draft {
  return drafts.read(url.pathname, admin.now()) as Draft;
}
