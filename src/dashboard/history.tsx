/** @jsxImportSource preact */
import type { Environment } from "../core/names.ts";
import { everyKind } from "../kinds/kind.ts";
import { rollback } from "../operations/history.ts";
import { carryOut } from "../pages/carry-out.ts";
import { Ago, Change, Changed, Chooser, Empty, Env, Field, Lead, NameAgain, Warnings, Word } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listHistory } from "../people/history.ts";
import { planRollback } from "../people/rollback.ts";
import { requireKind } from "./grid.tsx";

const versionsMax = 100;

/** The versions of one set, newest first: who wrote them, when, and which names. */
export async function historyPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.query("kind") ?? everyKind[0]?.kind ?? "");
  const seen = await visit.reached("see");
  const environment = visit.environment() ?? seen.at(-1) ?? "production";
  const before = visit.query("before") === undefined ? Number.MAX_SAFE_INTEGER : visit.number("before");
  const { versions, warnings } = await listHistory(admin, where, environment, kind);
  const older = versions.filter(({ version }) => version < before);
  const shown = older.slice(0, versionsMax);
  const now = admin.now();
  const mayUndo = (await visit.reached("write")).includes(environment);
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
            <Changed names={one} />
            {one !== versions[0] && mayUndo && (
              <Lead to={projectPagePath(where, "undo", { kind, environment, to: one.version })}>
                Go back to version {one.version}
              </Lead>
            )}
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

/** What going back to a version would do. */
export async function undoPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.query("kind") ?? "");
  const environment = visit.environment() ?? "production";
  const plan = await planRollback(admin, where, environment, kind, visit.number("to"));
  const isSame = plan.added.length + plan.changed.length + plan.deleted.length === 0;
  const main = (
    <>
      {isSame ? (
        <p>
          The {kind} of {where} are the same in version {plan.from}, the current one, and in version {plan.to}: there is
          nothing to undo.
        </p>
      ) : (
        <>
          <p>
            The {kind} of {where} are at version {plan.from}. Version {plan.to} would be written again, as a new
            version:
          </p>
          <Changed names={plan} />
          <Change
            action={projectPagePath(where, "undo")}
            button={`Go back to version ${plan.to}`}
            hidden={{ kind, environment, from: plan.from, to: plan.to, project: plan.projectId }}
          >
            {environment === "production" && <NameAgain name={where} what="project" />}
          </Change>
        </>
      )}
      <Lead to={historyPath(where, kind, environment)}>Back to the history</Lead>
    </>
  );
  return {
    title: `Go back to version ${plan.to}`,
    heading: [`Go back to version ${plan.to} in `, <Env value={environment} />],
    main,
  };
}

/** @throws Refused `conflict` if somebody wrote the set since the page was shown */
export async function undo(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const kind = requireKind(form.read("kind"));
  const environment = form.environment();
  form.requireAgain(where, [environment]);
  const seen = { from: form.number("from"), projectId: form.read("project") };
  const given = { project: where, environment, kind, to: form.number("to"), seen };
  return carryOut(visit, rollback, given, historyPath(where, kind, environment));
}

function historyPath(where: string, kind: string, environment: Environment, before?: number): string {
  return projectPagePath(where, "history", { kind, environment, before });
}
