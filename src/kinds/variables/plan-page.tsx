/** @jsxImportSource preact */
import type { Environment } from "../../core/names.ts";
import { carryOut, type Filled, planned } from "../../pages/carry-out.ts";
import { Change, Changed, changesOf, counted, Empty, Env, LoneLink, NameAgain, Warnings } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer, Done } from "../../pages/route.ts";
import type { Visit } from "../../pages/visit.ts";
import { firstLines } from "../../words/text.ts";
import { copy, importAll } from "./operations.ts";

/** What somebody has begun and not yet agreed to: it keeps what a person gave, and no finding. */
type Draft = {
  readonly environment: Environment;
  /** The link to where another one begins. */
  readonly again: readonly [words: string, to: string];
} & ({ readonly copies: Filled<(typeof copy)["inputs"]> } | { readonly imports: Filled<(typeof importAll)["inputs"]> });

/** Keeps a change as a draft, and leads to the page that shows what it would do. @param page - where it was begun */
export async function keepDraft(visit: Visit, page: string, draft: Draft): Promise<Done> {
  await planOf(visit, draft);
  return { to: visit.drafts.keep(page, draft, visit.form.bytes, visit.admin.now()) };
}

/** What a change would do, before a person agrees to it. */
export async function planPage(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  const { environment, again } = draft;
  const { names, same, warnings = [], seen } = await planOf(visit, draft);
  const [words, to] = again;
  const main = (
    <>
      <Warnings items={firstLines(warnings)} />
      <Changed names={names} />
      {same > 0 && <p class="quiet">{counted(same, "variable has", "variables have")} the same value already.</p>}
      {changesOf(names).length === 0 ? (
        <Empty>{environment} has all of this already. There is nothing to apply.</Empty>
      ) : (
        <Change action={visit.url.pathname} button="Apply exactly that" hidden={seen}>
          {environment === "production" && <NameAgain name={visit.where} what="name of the project" />}
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
export async function applyPlan(visit: Visit): Promise<Answer> {
  const draft = draftOf(visit);
  visit.form.requireAgain(visit.where, [draft.environment]);
  const to = projectPagePath(visit.where, "variables");
  const done = await ("copies" in draft
    ? carryOut(visit, copy, draft.copies, to)
    : carryOut(visit, importAll, draft.imports, to));
  visit.drafts.end(visit.url.pathname);
  return done;
}

function planOf(visit: Visit, draft: Draft) {
  return "copies" in draft ? planned(visit, copy, draft.copies) : planned(visit, importAll, draft.imports);
}

/** The draft of this page. */
function draftOf({ drafts, url, admin }: Visit): Draft {
  return drafts.read(url.pathname, admin.now()) as Draft;
}
