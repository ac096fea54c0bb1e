/** @jsxImportSource preact */

import { type Remarks, remarkNames } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { joined } from "../../core/words/text.ts";
import type { ItemChange, StoredItem } from "../../dashboard/parts/kind-pages.ts";
import { Ago, Boxes, Change, Field, Name, NameAgain, NewName } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import { inField, type Visit } from "../../dashboard/parts/visit.ts";
import { kindPages } from "../../kinds/pages.ts";
import { descriptorOf } from "../../kinds/people.ts";
import type { Entry } from "../../serve/sets/kind.ts";
import { seenOf } from "../desk/plan.ts";
import { findProject } from "../desk/projects.ts";
import { requireSets, shownEnvironments } from "../editing/open.ts";
import { remarkHelp, requireRemarks, saidInAll } from "../editing/remarks.ts";
import { requireKind } from "./grid.tsx";

/** Creates, changes and deletes an item of a kind. What is stored is not shown. */
export async function setPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const { kind, form } = formIn(visit);
  const { item: what } = descriptorOf(kind);
  const asked = visit.query("name");
  const stored = await findItem(visit, kind, asked);
  const seen = [...stored.entries].filter(([environment]) => !stored.unseen.includes(environment));
  const item = { ...stored, entries: new Map(seen) };
  const holders = [...item.entries.keys()];
  const deletable = [...holders, ...item.unseen];
  const name = deletable.length === 0 ? undefined : asked;
  const hidden = { ...seenOf(item.project, item.sets), ...(name === undefined ? { new: "yes" } : { name }) };
  const parts = (name === undefined ? undefined : await form.parts?.(visit, name)) ?? new Map();
  const changedAt = Math.max(...[...item.entries.values()].map(({ updatedAt }) => updatedAt));
  const main = (
    <>
      {name !== undefined && (
        <p class="quiet">
          {holders.length > 0 && ["Changed ", <Ago at={changedAt} now={admin.now()} />, ". "]}
          {form.about}{" "}
          {visit.may("see") && (
            <a href={projectPagePath(where, `${kind}/item`, { name })}>See what is stored, and who reads it</a>
          )}
        </p>
      )}
      <Change action={projectPagePath(where, `${kind}/set`)} button="Save" hidden={hidden}>
        {name === undefined && <NewName asked={asked} help={form.nameHelp} />}
        {form.fields(item, admin.now(), parts)}
        {remarkNames.map((one) => (
          <RemarkField name={one} text={saidInAll(item.entries.values(), one)} />
        ))}
        {item.shown.includes("production") && <NameAgain name={name} what={`name of the ${what}`} />}
      </Change>
      {name !== undefined && (
        <details class="danger">
          <summary>Delete it</summary>
          <Change action={projectPagePath(where, `${kind}/delete`)} button="Delete" danger hidden={hidden}>
            <Boxes legend="From" name="from" options={deletable} />
            {deletable.includes("production") && (
              <NameAgain id="again-delete" name={name} what={`name of the ${what}`} />
            )}
          </Change>
        </details>
      )}
    </>
  );
  if (name === undefined) return { title: `New ${what}`, main };
  return { title: `Change ${name}`, heading: ["Change ", <Name>{name}</Name>], main };
}

/** Writes an item. @throws Refused `conflict` if somebody wrote a set since the page was shown */
export async function set(visit: Visit): Promise<Answer> {
  const { kind, form } = formIn(visit);
  const isNew = visit.form.has("new");
  const name = isNew ? visit.form.read("name").trim() : visit.form.read("name");
  const item = await findItem(visit, kind, name);
  const typed = remarkNames.map((one) => inField(one, () => requireRemarks(name, { [one]: visit.form.touched(one) })));
  const change = form.change(visit, name, { ...item, remarks: Object.assign({}, ...typed) });
  const taken = change.targets.filter((one) => item.entries.has(one) && !item.unseen.includes(one));
  if (isNew && taken.length > 0) {
    const words = `${JSON.stringify(name)} is in ${joined(taken)} already.`;
    throw new Refused("exists", `${words} Nothing was changed: change that one.`, { field: "name" });
  }
  return made(visit, name, change, projectPagePath(visit.where, `${kind}/item`, { name }));
}

/** @param text - undefined if its environments have different ones */
function RemarkField({ name, text }: { readonly name: keyof Remarks; readonly text: string | undefined }) {
  const differs = text === undefined ? ` Its environments have different ${name}s: an empty field keeps them.` : "";
  const label = `${name[0]?.toUpperCase()}${name.slice(1)}`;
  return <Field name={name} label={label} help={remarkHelp[name] + differs} rows={3} isProse stored={text ?? ""} />;
}

/** Deletes an item. @throws Refused `conflict` if somebody wrote a set since the page was shown */
export async function remove(visit: Visit): Promise<Answer> {
  const { kind, pages } = formIn(visit);
  const name = visit.form.read("name");
  const from = visit.form.environments("from");
  if (from.length === 0) {
    throw new Refused("invalid", "No environment is chosen. Nothing was deleted.", { field: "from" });
  }
  const write = (to: string) => pages.remove(visit, name, from, to);
  return made(visit, name, { targets: from, write }, projectPagePath(visit.where, kind));
}

/** Makes a change, in production only if the name was typed again. */
function made({ form }: Visit, name: string, change: ItemChange, to: string): Promise<Answer> {
  form.requireAgain(name, change.targets);
  return change.write(to);
}

function formIn(visit: Visit) {
  const kind = requireKind(visit.param("kind"));
  const pages = kindPages[kind];
  if (pages?.form === undefined) throw new Refused("not_found", "There is no such page.");
  return { kind, pages, form: pages.form };
}

async function findItem(visit: Visit, kind: string, name: string | undefined): Promise<StoredItem<Entry>> {
  const { admin, where } = visit;
  const descriptor = descriptorOf(kind);
  const project = await findProject(admin, where, "write");
  const seen = visit.reached(project, "see");
  const sets = await requireSets(admin, project, descriptor);
  const entries = sets.flatMap(({ environment, entries }) =>
    entries.filter((entry) => descriptor.nameOf(entry) === name).map((entry) => [environment, entry] as const),
  );
  const unseen = project.permit.environments.filter((environment) => !seen.includes(environment));
  return { project, sets, shown: shownEnvironments(project, sets), entries: new Map(entries), unseen, remarks: {} };
}
