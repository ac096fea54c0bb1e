/** @jsxImportSource preact */
import type { Environment } from "../../core/names.ts";
import { carryOut, planned } from "../../dashboard/parts/carry-out.ts";
import {
  Ago,
  Change,
  Changed,
  Chooser,
  changesOf,
  Empty,
  Env,
  Field,
  FirstFew,
  LoneLink,
  Name,
  NameAgain,
  Warnings,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import { Form, type Visit } from "../../dashboard/parts/visit.ts";
import { everyKind } from "../../kinds/kind.ts";
import { nameInPersonText } from "../../record/entry.ts";
import { findProject, uses } from "../desk/projects.ts";
import { requireKind } from "../projects/grid.tsx";
import { findMarkedSince, listHistory, namesOf, type VersionRecord } from "./history.ts";
import { rollback, undoOne } from "./operations.ts";

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
  // An environment that is not used is empty, and takes nothing back.
  const isUsed = uses(project, environment);
  const mayUndo = isUsed && visit.reached(project, "write").includes(environment);
  const numbers = new Set(versions.map(({ version }) => version));
  // The newest version that wrote each name: an undo leaves those that were written since.
  const writtenIn = new Map(versions.toReversed().flatMap((one) => namesOf(one).map((name) => [name, one.version])));
  const newestFirst = older.slice(0, versionsMax + 1);
  const marked = mayUndo ? await findMarkedSince(admin, { where, environment, kind }, newestFirst) : new Map();
  const linksOf = (one: VersionRecord) => {
    const newest = namesOf(one).map((name) => writtenIn.get(name) ?? one.version);
    const isMarking = one.changed.some(
      (name) => writtenIn.get(name) === one.version && marked.get(one.version - 1)?.includes(name),
    );
    const isUndoable = newest.includes(one.version) && numbers.has(one.version - 1) && !isMarking;
    const since = newest.length > 0 && !newest.includes(one.version) && Math.max(...newest);
    const hidden: readonly string[] = marked.get(one.version) ?? [];
    const to = (query: { readonly to?: number; readonly version?: number }) =>
      projectPagePath(where, "undo", { kind, environment, ...query });
    return (
      <span class="links">
        {isUndoable && <a href={to({ version: one.version })}>Undo this change</a>}
        {isMarking && <span class="quiet">cannot be undone: it made a value one for machines only</span>}
        {since && <span class="quiet">written again since, in version {since}</span>}
        {one !== versions[0] && hidden.length === 0 && (
          <a href={to({ to: one.version })}>Go back to version {one.version}</a>
        )}
        {hidden.length > 0 && (
          <span class="quiet">
            cannot go back: it would show <FirstFew items={hidden.map((name) => <Name>{name}</Name>)} />, now for
            machines only
          </span>
        )}
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
      {!isUsed && (
        <p class="quiet">
          {where} does not use {environment}, so nothing is put back there.
        </p>
      )}
      {versions.length === 0 && isUsed && (
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
              {one === versions[0] && " (current)"}, <Ago at={one.at} now={now} />, by{" "}
              <Word>{nameInPersonText(one.actor.name)}</Word>
            </p>
            {mayUndo && linksOf(one)}
            <Changed names={one} />
          </li>
        ))}
      </ol>
      {older.length > shown.length && (
        <LoneLink to={historyPath(where, kind, environment, shown.at(-1)?.version)}>Older versions</LoneLink>
      )}
    </>
  );
  return { title: `History of ${where}`, heading: "History", main };
}

/** What it would do to undo a change, to go back to a version, or to put one item back as it was in it. */
export async function undoPage(visit: Visit): Promise<Answer> {
  const { where } = visit;
  const { title, button = title, fields, plan } = revertIn(visit, new Form(visit.url.search.slice(1)));
  const { act, after, names, seen } = await plan();
  const isAny = changesOf(names).length > 0;
  const main = (
    <>
      <p>{isAny ? `It would ${act}:` : "There is nothing to undo: both versions are the same."}</p>
      <Changed names={names} />
      {isAny && after && <p>{after}.</p>}
      {isAny && (
        <Change action={projectPagePath(where, "undo")} button={button} hidden={{ ...fields, ...seen }}>
          {fields.environment === "production" && <NameAgain name={where} what="project" />}
        </Change>
      )}
      <LoneLink to={historyPath(where, fields.kind, fields.environment)}>Back to the history</LoneLink>
    </>
  );
  return { title, heading: [<Word>{title}</Word>, " in ", <Env value={fields.environment} />], main };
}

/** Does what the page showed. @throws Refused `conflict` if somebody wrote the set since */
export async function undo(visit: Visit): Promise<Answer> {
  const { fields, write } = revertIn(visit, visit.form);
  visit.form.requireAgain(visit.where, [fields.environment]);
  return write();
}

/** What a link or a form asks for. */
function revertIn(visit: Visit, form: Form) {
  const { where } = visit;
  const set = { kind: requireKind(form.read("kind")), environment: form.environment() };
  const back = historyPath(where, set.kind, set.environment);
  if (form.has("version")) {
    const fields = { ...set, version: form.number("version") };
    const given = { project: where, ...fields };
    const plan = () => planned(visit, undoOne, given);
    return {
      title: `Undo version ${fields.version}`,
      fields,
      plan,
      write: () => carryOut(visit, undoOne, given, back),
    };
  }
  const name = form.find("name");
  const fields = { ...set, to: form.number("to"), ...(name !== undefined && { name }) };
  const given = { project: where, ...fields };
  const to = name === undefined ? back : projectPagePath(where, `${set.kind}/item`, { name });
  return {
    title: name === undefined ? `Go back to version ${fields.to}` : `Put ${name} back`,
    button: name === undefined ? undefined : "Put it back",
    fields,
    plan: () => planned(visit, rollback, given),
    write: () => carryOut(visit, rollback, given, to),
  };
}

function historyPath(where: string, kind: string, environment: Environment, before?: number): string {
  return projectPagePath(where, "history", { kind, environment, before });
}
