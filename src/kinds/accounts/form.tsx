/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { carryOut, typedIn } from "../../dashboard/parts/carry-out.ts";
import type { ItemChange, ItemForm, StoredItem } from "../../dashboard/parts/kind-pages.ts";
import { Box, Boxes, Field, MachinesOnly, Name } from "../../dashboard/parts/parts.tsx";
import { type Form, inField, type Visit } from "../../dashboard/parts/visit.ts";
import { displayName } from "../../people/desk/validate.ts";
import type { AccountEntry } from "./entry.ts";
import { remove, set } from "./operations.ts";
import { fieldNames, validateAccount } from "./write.ts";

/** How many fields a page has room for, and how many of them it shows at first. */
const [fieldsMax, fieldsShown] = [16, 4];

/** The fields that are there, by name, room for more, and environments. What stays empty stays as it is. */
export const form: ItemForm<AccountEntry> = {
  nameHelp: "What people call it, such as stripe.",
  about: "What is stored is not shown, and stays where you type nothing.",
  parts: ({ admin, where }, name) => fieldNames(admin, where, name),
  fields: ({ shown, entries, unseen }, _, stored) => (
    <>
      <Fields stored={stored} />
      <Boxes
        legend={entries.size > 1 ? "Write it in: a value that you type is the same in each of them" : "Environments"}
        name="environment"
        options={shown}
        checked={[...entries.keys()]}
      />
      {entries.size + unseen.length === 0 && <MachinesOnly />}
      {entries.size + unseen.length > 0 && (
        <p>
          <input type="hidden" name="shown.environment" value={[...entries.keys()].join(" ")} />
          <Box name="drop">Take it out of the environments that are not checked</Box>
        </p>
      )}
    </>
  ),
  change,
  remove: (visit, name, environments, to) =>
    carryOut(visit, remove, { project: visit.where, names: [name], environments }, to),
  isWhole: true,
};

/** Rows of a name and a value: first of the fields that are there, then empty ones. */
function Fields({ stored }: { readonly stored: readonly string[] }) {
  const empty = Array.from({ length: Math.max(fieldsMax - stored.length, 0) }, (_, at) => {
    const id = stored.length + at;
    return (
      <fieldset class="row">
        <legend class="unseen">Field {id + 1}</legend>
        <Field id={`field-${id}`} name="field" label="Name" maxLength={255} />
        <Field id={`value-${id}`} name="value" label="Value" rows={1} />
      </fieldset>
    );
  });
  const shown = Math.max(fieldsShown - stored.length, 1);
  return (
    <>
      <h2>Fields</h2>
      {stored.map((name, id) => (
        <fieldset class="row">
          <legend class="unseen">
            <Name>{name}</Name>
          </legend>
          <input type="hidden" name="stored" value={name} />
          <input type="hidden" name="field" value={name} />
          <Field id={`value-${id}`} name="value" label={["New value of ", <Name>{name}</Name>]} rows={1} />
          <Box name="remove" value={name}>
            Remove it
          </Box>
        </fieldset>
      ))}
      {empty.slice(0, shown)}
      <details>
        <summary>More fields</summary>
        {empty.slice(shown)}
        <p class="quiet">
          An account with more fields is written with <code>keyhole account set</code>.
        </p>
      </details>
    </>
  );
}

function change(visit: Visit, name: string, { entries, unseen, remarks }: StoredItem): ItemChange {
  const { where, form } = visit;
  const isNew = form.has("new");
  const [values, stored] = [fieldsIn(form), form.all("stored")];
  const chosen = form.all("environment");
  inField("name", () => displayName("account", name));
  const { targets } = inField(chosen.length === 0 ? "environment" : "value-0", () =>
    validateAccount(name, chosen, values, !isNew),
  );
  // It stays where somebody else has put it since.
  const shown = form.find("shown.environment")?.split(" ") ?? [];
  const isLeft = (environment: Environment) =>
    !targets.includes(environment) &&
    ((entries.has(environment) && shown.includes(environment)) || unseen.includes(environment));
  const dropped = form.has("drop") ? environments.filter(isLeft) : [];
  // What stays as it is has to be there.
  const fresh = targets.find((one) => !isNew && !entries.has(one) && !unseen.includes(one));
  const lacking = stored.find((field) => !Object.hasOwn(values, field));
  if (fresh !== undefined && lacking !== undefined) {
    const words = `${fresh} has no ${name} yet: give ${JSON.stringify(lacking)} a value, or remove it there later.`;
    throw new Refused("invalid", `${words} Nothing was changed.`, { field: `value-${stored.indexOf(lacking)}` });
  }
  const isNothing = Object.keys({ ...values, ...remarks }).length === 0 && dropped.length === 0;
  if (isNothing && !isNew && fresh === undefined) {
    throw new Refused("invalid", "No field has a value, and none is removed. Nothing was changed.", {
      field: "value-0",
    });
  }
  const given = {
    project: where,
    name,
    values: typedIn(JSON.stringify(values)),
    environments: targets,
    ...(!isNew && { merge: true as const }),
    machinesOnly: form.has("machinesOnly") ? (true as const) : undefined,
    ...remarks,
    leave: environments.filter((environment) => !dropped.includes(environment)),
  };
  return { targets, dropped, write: (to) => carryOut(visit, set, given, to) };
}

/** The fields that were filled in, and null for those to remove. @throws Refused `invalid` that names the field */
function fieldsIn(form: Form): Readonly<Record<string, string | null>> {
  const [names, values] = [form.all("field"), form.all("value")];
  if (names.length !== values.length) throw new Refused("invalid", "Part of the form is missing: load the page again.");
  const [stored, removed] = [form.all("stored"), form.all("remove")];
  const fields = new Map<string, string | null>();
  const seen = new Set<string>();
  for (const [at, name] of names.entries()) {
    const value = values[at] ?? "";
    const refuse = (words: string, field: "field" | "value") => {
      throw new Refused("invalid", words, { field: `${field}-${at}` });
    };
    if (name === "" && value === "") continue;
    if (name === "") refuse(`Field ${at + 1} has a value and no name. Nothing was changed.`, "field");
    if (seen.has(name)) refuse(`The field ${JSON.stringify(name)} is there twice.`, "field");
    seen.add(name);
    const isRemoved = stored.includes(name) && removed.includes(name);
    if (isRemoved && value !== "")
      refuse(`The field ${JSON.stringify(name)} has a value, and is to be removed.`, "value");
    if (isRemoved) fields.set(name, null);
    else if (value !== "") fields.set(name, value);
    else if (!stored.includes(name)) {
      const how = "A field with an empty value is written with `keyhole account set`.";
      refuse(`The field ${JSON.stringify(name)} has no value. Nothing was changed. ${how}`, "value");
    }
  }
  return Object.fromEntries(fields);
}
