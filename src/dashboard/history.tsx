/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Environment } from "../core/names.ts";
import { findProject } from "../desk/projects.ts";
import { everyKind } from "../kinds/kind.ts";
import { rollback, undoOne, writersOf } from "../operations/history.ts";
import { carryOut } from "../pages/carry-out.ts";
import {
  Ago,
  Change,
  Changed,
  Chooser,
  changesOf,
  counted,
  Empty,
  Env,
  Field,
  Lead,
  Name,
  NameAgain,
  Warnings,
  Word,
} from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listHistory, type VersionRecord } from "../people/history.ts";
import { planRollback, planUndo } from "../people/rollback.ts";
import { requireKind } from "./grid.tsx";

const versionsMax = 100;

/** The versions of one set, newest first: who wrote them, when, and which names. */
export async function historyPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.query("kind") ?? everyKind[0]?.kind ?? "");
  const project = await findProject(admin, where, "see");
  const seen = visit.reached(project, "see");
  const environment = visit.environment() ?? seen.at(-1) ?? "production";
  const before = visit.query("before") === undefined ? Number.MAX_SAFE_INTEGER : visit.number("before");
  const { versions, warnings } = await listHistory(admin, { where, environment, kind });
  const older = versions.filter(({ version }) => version < before);
  const shown = older.slice(0, versionsMax);
  const now = admin.now();
  const mayUndo = visit.reached(project, "write").includes(environment);
  const numbers = new Set(versions.map(({ version }) => version));
  const linksOf = (one: VersionRecord) => {
    const isUndone = changesOf(one).length > 0 && numbers.has(one.version - 1);
    const to = (query: { readonly to?: number; readonly version?: number }) =>
      projectPagePath(where, "undo", { kind, environment, ...query });
    return (
      <span class="links">
        {isUndone && <a href={to({ version: one.version })}>Undo this change</a>}
        {one !== versions[0] && <a href={to({ to: one.version })}>Go back to version {one.version}</a>}
      </span>
    );
  };
  const main = (
    <>
      <Chooser button="Show">
        <Field label="Of" name="kind" options={everyKind.map((one) => one.kind)} value={kind} />
        <Field label="in" name="environment" options={seen} value={environment} />
      </Chooser>
      <Warnings items={warnings} />
      {versions.length === 0 && (
        <Empty>
          Nobody has written the {kind} of {where} in {environment} yet. What people write is listed here, and can be
          undone.
        </Empty>
      )}
      <ol class="versions">
        {shown.map((one) => (
          <li>
            <p>
              <strong>Version {one.version}</strong>
              {one === versions[0] && " (current)"}, <Ago at={one.at} now={now} />, by <Word>{one.actor.name}</Word>
            </p>
            {mayUndo && linksOf(one)}
            <Changed names={one} />
          </li>
        ))}
      </ol>
      {older.length > shown.length && (
        <Lead to={historyPath(where, kind, environment, shown.at(-1)?.version)}>Older versions</Lead>
      )}
    </>
  );
  return { title: `History of ${where}`, heading: "History", main };
}

/** What it would do to undo a change, to go back to a version, or to put one item back as it was in it. */
export async function undoPage(visit: Visit): Promise<Answer> {
  const { where } = visit;
  const kind = requireKind(visit.query("kind") ?? "");
  const environment = visit.environment() ?? "production";
  const wayBack = visit.query("version") === undefined ? versionBack : changeBack;
  const { title, shown, plan, form } = await wayBack(visit, environment, kind);
  const main = (
    <>
      {shown}
      {form && (
        <Change
          action={projectPagePath(where, "undo")}
          button={form.button}
          hidden={{ kind, environment, from: plan.from, project: plan.projectId, ...form.hidden }}
        >
          {environment === "production" && <NameAgain name={where} what="project" />}
        </Change>
      )}
      <Lead to={historyPath(where, kind, environment)}>Back to the history</Lead>
    </>
  );
  return { title, heading: [<Word>{title}</Word>, " in ", <Env value={environment} />], main };
}

/** A way back as a page shows it: what it would do and, if that is anything, the button that does it. */
type ShownWay = {
  readonly title: string;
  readonly shown: VNode;
  readonly plan: { readonly from: number; readonly projectId: string };
  readonly form?: false | { readonly button: string; readonly hidden: Readonly<Record<string, string | number>> };
};

/** What it would do to undo one change, and what would stay. */
async function changeBack(visit: Visit, environment: Environment, kind: string): Promise<ShownWay> {
  const { admin, where } = visit;
  const plan = await planUndo(admin, { where, environment, kind }, visit.number("version"));
  const { version, by, left } = plan;
  const isAny = changesOf(plan).length > 0;
  const button = `Undo version ${version}`;
  const shown = (
    <>
      {isAny ? (
        <p>
          <Word>{by}</Word> wrote version {version} of the {kind} of {where}. What it changed would be written as it was
          before, as a new version:
        </p>
      ) : (
        <p>Nothing is left to undo: all that version {version} changed has been written again since.</p>
      )}
      <Changed names={plan} />
      {left.length > 0 && (
        <details open={left.length <= 20}>
          <summary>What stays: {counted(left.length, "name")} that somebody has written since</summary>
          <ul>
            {left.map(({ name, version, by }) => (
              <li>
                <Name>{name}</Name>, in version {version} by <Word>{by}</Word>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
  return { title: button, shown, plan, form: isAny && { button, hidden: { version } } };
}

/** What going back to a version would do, to the whole set or to one item. */
async function versionBack(visit: Visit, environment: Environment, kind: string): Promise<ShownWay> {
  const { admin, where } = visit;
  const name = visit.query("name");
  const plan = await planRollback(admin, { where, environment, kind }, visit.number("to"), { name });
  const { from, to, between } = plan;
  const isAny = changesOf(plan).length > 0;
  const takenBack = between.length > 0 && `That takes back ${writersOf(between)}.`;
  if (name !== undefined) {
    const shown = (
      <p>
        <Name>{name}</Name>
        {isAny
          ? ` would be written as it was in version ${to}, and nothing else.`
          : ` is the same in version ${to} and now: there is nothing to put back.`}
        {isAny && takenBack && ` ${takenBack}`}
      </p>
    );
    return { title: `Put ${name} back`, shown, plan, form: isAny && { button: "Put it back", hidden: { to, name } } };
  }
  const button = `Go back to version ${to}`;
  const shown = isAny ? (
    <>
      <p>
        The {kind} of {where} are at version {from}. Version {to} would be written again, as a new version:
      </p>
      <Changed names={plan} />
      {takenBack && <p>{takenBack}</p>}
    </>
  ) : (
    <p>
      The {kind} of {where} are the same in version {from}, the current one, and in version {to}: there is nothing to
      undo.
    </p>
  );
  return { title: button, shown, plan, form: isAny && { button, hidden: { to } } };
}

/** @throws Refused `conflict` if somebody wrote the set since the page was shown */
export async function undo(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const kind = requireKind(form.read("kind"));
  const environment = form.environment();
  form.requireAgain(where, [environment]);
  const seen = { from: form.number("from"), projectId: form.read("project") };
  const given = { project: where, environment, kind, seen };
  const name = form.find("name");
  const back = historyPath(where, kind, environment);
  if (form.has("version")) return carryOut(visit, undoOne, { ...given, version: form.number("version") }, back);
  const to = name === undefined ? back : projectPagePath(where, `${kind}/item`, { name });
  return carryOut(visit, rollback, { ...given, to: form.number("to"), name }, to);
}

function historyPath(where: string, kind: string, environment: Environment, before?: number): string {
  return projectPagePath(where, "history", { kind, environment, before });
}
