/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { carryOut, typedIn } from "../../pages/carry-out.ts";
import type { ItemChange, ItemForm, StoredItem } from "../../pages/kind-pages.ts";
import { Box, Boxes, Field } from "../../pages/parts.tsx";
import type { Form, Visit } from "../../pages/visit.ts";
import { joined } from "../../words/text.ts";
import type { AccountEntry } from "./entry.ts";
import { remove, set } from "./operations.ts";
import { validateAccount } from "./write.ts";

/** How many fields a page has room for, and how many of them it shows at first. */
const [fieldsMax, fieldsShown] = [16, 4];

/** Fields and environments. A change writes all fields again. */
export const form: ItemForm<AccountEntry> = {
  nameHelp: "What people call it, such as stripe.",
  about: "What is stored is not shown: write all its fields again.",
  fields: ({ shown, entries, unseen }) => (
    <>
      <Fields />
      <Boxes legend="Environments" name="environment" options={shown} checked={[...entries.keys()]} />
      {entries.size + unseen.length > 0 && (
        <p>
          <Box name="drop">Take it out of the environments that are not checked</Box>
        </p>
      )}
    </>
  ),
  deletion: ({ entries, unseen }) => <p>It would be gone from {joined([...entries.keys(), ...unseen])}.</p>,
  change,
  removal: (visit, name, { entries, unseen }) => ({
    targets: [...entries.keys(), ...unseen],
    write: (to) => carryOut(visit, remove, { project: visit.where, name }, to),
  }),
};

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

function change(visit: Visit, name: string, { entries, unseen }: StoredItem): ItemChange {
  const { where, form } = visit;
  const values = fieldsIn(form);
  const { targets } = validateAccount(name, form.all("environment"), values);
  // Where somebody may not see, the account may be there or not, and no answer tells which.
  const isLeft = (environment: Environment) =>
    !targets.includes(environment) && (entries.has(environment) || unseen.includes(environment));
  const dropped = environments.filter(isLeft);
  const isHidden = dropped.some((environment) => unseen.includes(environment));
  // A new account that is there already is refused as such.
  if (dropped.length > 0 && !form.has("drop") && (isHidden || !form.has("new"))) {
    const places = joined(dropped);
    const out = `This takes ${name} out of ${places}${isHidden ? ", if it is there" : ""}`;
    throw new Refused("invalid", `${out}: check the box that says so, or ${places}. Nothing was changed.`);
  }
  const given = {
    project: where,
    name,
    values: typedIn(JSON.stringify(values)),
    environments: targets,
  };
  return { targets, dropped, write: (to) => carryOut(visit, set, given, to) };
}

/** The fields that were filled in. @throws Refused `invalid` if a row has only one half, or a name comes twice */
function fieldsIn(form: Form): Readonly<Record<string, string>> {
  const [names, values] = [form.all("field"), form.all("value")];
  if (names.length !== values.length) throw new Refused("invalid", "Part of the form is missing: load the page again.");
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
