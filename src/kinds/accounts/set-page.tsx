/** @jsxImportSource preact */
import { environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { rehearse } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { itemForms } from "../../pages/item-forms.tsx";
import { Ago, Boxes, Field, listed, NameAgain } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { itemsOf, requireSets, shownEnvironments } from "../../sets/open.ts";
import { accounts } from "./entry.ts";
import { deleteAccount, setAccount } from "./write.ts";

/** How many fields a page has room for, and how many of them it shows at first. */
const [fieldsMax, fieldsShown] = [16, 4];

/** Fields and environments. What is stored is not shown, so a change writes all fields again. */
export async function setPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const asked = visit.query("name");
  const project = await findProject(admin, where, "write");
  const sets = await requireSets(admin, project, accounts);
  const found = itemsOf(accounts, sets).find(({ entry }) => entry.name === asked);
  const name = found?.entry.name;
  const holders = found?.environments ?? [];
  return itemForms(where, {
    kind: "accounts",
    item: "account",
    name,
    asked,
    nameHelp: "What people call it, such as stripe.",
    project,
    sets,
    about: found && (
      <p class="quiet">
        Changed <Ago at={found.updatedAt} now={admin.now()} />. What is stored is not shown: write all its fields again.{" "}
        {visit.may("see") && <a href={projectPagePath(where, "accounts/item", { name })}>See what they are</a>}
      </p>
    ),
    fields: (
      <>
        <Fields />
        <Boxes legend="Environments" name="environment" options={shownEnvironments(project, sets)} checked={holders} />
        {found && (
          <p>
            <label>
              <input type="checkbox" name="drop" value="yes" />
              Take it out of the environments that are not checked
            </label>
          </p>
        )}
        <NameAgain name={name} what="name of the account" />
      </>
    ),
    deletion: <p>It would be gone from {listed(holders)}.</p>,
    holders,
  });
}

/** Rows of a name and a value. Those that stay empty are not written. */
function Fields() {
  const rows = Array.from({ length: fieldsMax }, (_, at) => (
    <fieldset class="row">
      <legend class="unseen">Field {at + 1}</legend>
      <Field id={`field-${at}`} name="field" label="Name" maxLength={255} />
      <Field id={`value-${at}`} name="value" label="Value" rows={1} />
    </fieldset>
  ));
  return (
    <>
      <h2>Fields</h2>
      {rows.slice(0, fieldsShown)}
      <details>
        <summary>More fields</summary>
        {rows.slice(fieldsShown)}
        <p class="quiet">
          An account with more fields is written with <code>keyhole account set</code>.
        </p>
      </details>
    </>
  );
}

/** Writes one account. @throws Refused `conflict` if somebody wrote a set since the page was shown */
export async function set({ admin, where, form }: Visit): Promise<Answer> {
  const { name, isNew } = form.itemName();
  const targets = form.environments("environment");
  const values = fieldsIn(form);
  const { permit } = await findProject(admin, where, "write");
  const seen = form.seenIn(permit.environments);
  const write = { ...seen, agreed: environments };
  const { created, dropped } = await rehearse(admin, (it) => setAccount(it, where, name, targets, values, write));
  if (isNew && !created) {
    throw new Refused("exists", `There is an account ${JSON.stringify(name)} already: change that one.`);
  }
  if (dropped.length > 0 && !form.has("drop")) {
    const places = listed(dropped);
    const how = `check the box that says so, or ${places}. Nothing was changed.`;
    throw new Refused("invalid", `This takes ${name} out of ${places}: ${how}`);
  }
  form.requireAgain(name, [...targets, ...dropped]);
  await setAccount(admin, where, name, targets, values, { ...seen, agreed: dropped });
  const left = dropped.length > 0 ? ` It is no longer in ${listed(dropped)}.` : "";
  const notice = `Saved ${name} in ${listed(targets)}.${left}`;
  return { to: projectPagePath(where, "accounts/item", { name }), notice };
}

/** Deletes it from each environment that has it. */
export async function remove({ admin, where, form }: Visit): Promise<Answer> {
  const name = form.read("name");
  const project = await findProject(admin, where, "write");
  const seen = form.seenIn(project.permit.environments);
  const sets = await requireSets(admin, project, accounts);
  const from = sets.filter(({ names }) => names.includes(name)).map(({ environment }) => environment);
  form.requireAgain(name, from);
  await deleteAccount(admin, where, name, seen);
  return { to: projectPagePath(where, "accounts"), notice: `Deleted ${name} from ${listed(from)}.` };
}

/** The fields that were filled in. @throws Refused `invalid` if a row has only one half, or a name comes twice */
function fieldsIn(form: Form): Readonly<Record<string, string>> {
  const [names, values] = [form.all("field"), form.all("value")];
  if (names.length !== values.length) throw new Refused("invalid", "The form is not whole: load the page again.");
  const fields = new Map<string, string>();
  for (const [at, name] of names.entries()) {
    const value = values[at] ?? "";
    if (name === "" && value === "") continue;
    if (name === "") throw new Refused("invalid", `Field ${at + 1} has a value and no name. Nothing was changed.`);
    if (value === "") {
      const how = "A field with an empty value is written with `keyhole account set`.";
      throw new Refused("invalid", `The field ${JSON.stringify(name)} has no value. Nothing was changed. ${how}`);
    }
    if (fields.has(name)) throw new Refused("invalid", `The field ${JSON.stringify(name)} is there twice.`);
    fields.set(name, value);
  }
  return Object.fromEntries(fields);
}
