/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { rehearse } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { Ago, Boxes, Change, Field, listed, NameAgain, NewName, SetHeading } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer, Route } from "../../pages/route.ts";
import { type Form, type Visit, versionFields } from "../../pages/visit.ts";
import { itemsOf, requireSets } from "../../sets/open.ts";
import { accounts } from "./entry.ts";
import { deleteAccount, setAccount } from "./write.ts";

/** Writing one account, and deleting it. */
export const setRoutes: readonly Route[] = [
  { method: "GET", path: "/p/:org/:project/accounts/set", right: "write", answer: setPage },
  { method: "POST", path: "/p/:org/:project/accounts/set", right: "write", answer: set },
  { method: "POST", path: "/p/:org/:project/accounts/delete", right: "write", answer: remove },
];

/** How many fields a page has room for, and how many of them it shows at first. */
const [fieldsMax, fieldsShown] = [16, 4];

/** Fields and environments. What is stored is not shown, so a change writes all fields again. */
async function setPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const asked = visit.query("name");
  const sets = await requireSets(admin, await findProject(admin, where, "write"), accounts);
  const found = itemsOf(accounts, sets).find(({ entry }) => entry.name === asked);
  const name = found?.entry.name;
  const hidden = { ...versionFields(sets), ...(name === undefined ? { new: "yes" } : { name }) };
  const main = (
    <>
      <SetHeading name={name} item="account" />
      {found && (
        <p class="quiet">
          Changed <Ago at={found.updatedAt} now={admin.now()} />. What is stored is not shown: write all its fields
          again. <a href={projectPagePath(where, "accounts/item", { name })}>See what they are</a>
        </p>
      )}
      <Change action={projectPagePath(where, "accounts/set")} button="Save" hidden={hidden}>
        {name === undefined && <NewName asked={asked} help="What people call it, such as stripe." />}
        <Fields />
        <Boxes legend="Environments" name="environment" of={environments} checked={found?.environments ?? []} />
        {found && (
          <p>
            <label>
              <input type="checkbox" name="drop" value="yes" />
              Take it out of the environments that are not checked
            </label>
          </p>
        )}
        <NameAgain name={name} what="name of the account" />
      </Change>
      {found && <Delete where={where} name={found.entry.name} hidden={hidden} from={found.environments} />}
    </>
  );
  return { title: name === undefined ? "New account" : `Change ${name}`, project: visit.inProject("accounts"), main };
}

/** Rows of a name and a value. Those that stay empty are not written. */
function Fields() {
  const rows = Array.from({ length: fieldsMax }, (_, at) => at + 1);
  return (
    <>
      <h2>Fields</h2>
      {rows.slice(0, fieldsShown).map((at) => (
        <FieldRow at={at} />
      ))}
      <details>
        <summary>More fields</summary>
        {rows.slice(fieldsShown).map((at) => (
          <FieldRow at={at} />
        ))}
        <p class="quiet">
          An account with more fields is written with <code>keyhole account set</code>.
        </p>
      </details>
    </>
  );
}

function FieldRow({ at }: { readonly at: number }) {
  return (
    <fieldset class="row">
      <legend class="unseen">Field {at}</legend>
      <Field id={`field-${at}`} name="field" label="Name" maxLength={255} />
      <Field id={`value-${at}`} name="value" label="Value" rows={1} />
    </fieldset>
  );
}

function Delete(props: {
  readonly where: string;
  readonly name: string;
  readonly hidden: Readonly<Record<string, string | number>>;
  readonly from: readonly Environment[];
}) {
  const { where, name, hidden, from } = props;
  return (
    <section>
      <h2>Delete it</h2>
      <p>It would be gone from {listed(from)}.</p>
      <Change action={projectPagePath(where, "accounts/delete")} button="Delete" danger hidden={hidden}>
        {from.includes("production") && <NameAgain id="again-delete" name={name} what="name of the account" />}
      </Change>
    </section>
  );
}

async function set({ admin, where, form }: Visit): Promise<Answer> {
  const isNew = form.has("new");
  const name = isNew ? form.read("name").trim() : form.read("name");
  const targets = form.environments("environment");
  const values = fieldsIn(form);
  const { permit } = await findProject(admin, where, "write");
  const versions = form.versions(permit.environments);
  const write = { versions, agreed: environments };
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
  await setAccount(admin, where, name, targets, values, { versions, agreed: dropped });
  const left = dropped.length > 0 ? ` It is no longer in ${listed(dropped)}.` : "";
  const notice = `Saved ${name} in ${listed(targets)}.${left}`;
  return { to: projectPagePath(where, "accounts/item", { name }), notice };
}

async function remove({ admin, where, form }: Visit): Promise<Answer> {
  const name = form.read("name");
  const project = await findProject(admin, where, "write");
  const versions = form.versions(project.permit.environments);
  const sets = await requireSets(admin, project, accounts);
  const from = sets.filter(({ names }) => names.includes(name)).map(({ environment }) => environment);
  form.requireAgain(name, from);
  await deleteAccount(admin, where, name, { versions });
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
