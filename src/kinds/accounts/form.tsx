/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { joined } from "../../core/words/text.ts";
import { carryOut, typedIn } from "../../dashboard/parts/carry-out.ts";
import type { ItemChange, ItemForm, Parts, StoredItem } from "../../dashboard/parts/kind-pages.ts";
import { Box, Env, Field, MachinesOnly, Name, ShowTyped } from "../../dashboard/parts/parts.tsx";
import { type Form, inField, type Visit } from "../../dashboard/parts/visit.ts";
import { displayName } from "../../people/desk/validate.ts";
import type { AccountEntry } from "./entry.ts";
import { set } from "./operations.ts";
import { type Fields, fieldNames, validateAccount } from "./write.ts";

/** How many fields a page has room for, and how many of them it shows at first. */
const [fieldsMax, fieldsShown] = [16, 3];

/** A row for each field that is there, and room for more; in it a value for each environment. */
export const form: ItemForm<AccountEntry> = {
  nameHelp: "What people call it, such as stripe.",
  about: "What is stored is not shown, and stays where you type nothing.",
  parts: ({ admin, where }, name) => fieldNames(admin, where, name),
  fields: ({ shown, entries, unseen }, _, parts) => (
    <>
      <h2>Fields</h2>
      <Rows shown={shown} parts={parts} />
      <p>
        <ShowTyped />
      </p>
      {alikeIn(shown, entries).length > 1 && (
        <p>
          <Box name="same">
            Write what I type in one environment in all of {joined(alikeIn(shown, entries))}, also where they differ
          </Box>
        </p>
      )}
      {entries.size + unseen.length === 0 && <MachinesOnly />}
    </>
  ),
  change,
};

/** Where the same is written if somebody says so: where the account is, or everywhere if it is new. */
function alikeIn(shown: readonly Environment[], entries: StoredItem["entries"]): readonly Environment[] {
  return entries.size > 0 ? [...entries.keys()] : shown;
}

/** First the fields that are there in one environment or another, then empty ones. */
function Rows({ shown, parts }: { readonly shown: readonly Environment[]; readonly parts: Parts }) {
  const stored = [...new Set([...parts.values()].flat())];
  const rows = Array.from({ length: Math.max(fieldsMax, stored.length) }, (_, row) => {
    const name = stored[row];
    return (
      <fieldset>
        <legend class={name === undefined ? "unseen" : undefined}>
          {name === undefined ? `Field ${row + 1}` : <Name>{name}</Name>}
        </legend>
        {name === undefined ? (
          <Field id={`field-${row}`} name="field" label="Name" maxLength={255} />
        ) : (
          ["stored", "field"].map((what) => <input type="hidden" name={what} value={name} />)
        )}
        <div class="row">
          {shown.map((environment) => {
            const isThere = name !== undefined && parts.get(environment)?.includes(name);
            const isMissing = name !== undefined && parts.has(environment) && !isThere;
            return (
              <div>
                <Field
                  id={`value-${row}-${environment}`}
                  name={`value.${environment}`}
                  label={[isThere ? "New value in " : "Value in ", <Env value={environment} />]}
                  {...(isMissing && { help: "There is none yet." })}
                  rows={1}
                />
                {isThere && (
                  <Box name={`remove.${environment}`} value={name}>
                    Remove it
                  </Box>
                )}
              </div>
            );
          })}
        </div>
      </fieldset>
    );
  });
  const few = Math.max(fieldsShown, stored.length + 1);
  return (
    <>
      {rows.slice(0, few)}
      <details>
        <summary>More fields</summary>
        {rows.slice(few)}
        <p class="quiet">
          An account with more fields is written with <code>keyhole account set</code>.
        </p>
      </details>
    </>
  );
}

function change(visit: Visit, name: string, item: StoredItem<AccountEntry>): ItemChange {
  const { where, form } = visit;
  const { shown, entries, unseen, remarks } = item;
  const isNew = form.has("new");
  inField("name", () => displayName("account", name));
  const noted = Object.keys(remarks).length > 0 && !isNew ? [...entries.keys()] : [];
  const each = new Map<Environment, Fields>([
    ...noted.filter((one) => !unseen.includes(one)).map((one) => [one, {}] as const),
    ...fieldsIn(form, name, item),
  ]);
  const targets = [...each.keys()];
  if (targets.length === 0) {
    const field = `value-0-${shown[0]}`;
    throw new Refused("invalid", "No field has a value, and none is removed. Nothing was changed.", { field });
  }
  // What stays as it is has to be there.
  const fresh = targets.find((one) => !isNew && !entries.has(one) && !unseen.includes(one));
  const stored = form.all("stored");
  const lacking = stored.find((field) => fresh && !Object.hasOwn(each.get(fresh) ?? {}, field));
  if (fresh !== undefined && lacking !== undefined) {
    const words = `${fresh} has no ${name} yet: give ${JSON.stringify(lacking)} a value there, too.`;
    const field = `value-${stored.indexOf(lacking)}-${fresh}`;
    throw new Refused("invalid", `${words} Nothing was changed.`, { field });
  }
  const machinesOnly = form.has("machinesOnly") ? (true as const) : undefined;
  const given = { project: where, name, values: typedIn("{}"), environments: targets, each, machinesOnly };
  return { targets, write: (to) => carryOut(visit, set, { ...given, merge: true, ...remarks }, to) };
}

/**
 * The fields that were filled in, by environment, and null for those to remove.
 * @throws Refused `invalid` that names the field
 */
function fieldsIn(form: Form, account: string, { shown, entries }: StoredItem): ReadonlyMap<Environment, Fields> {
  const [names, stored] = [form.all("field"), form.all("stored")];
  const found = new Map(environments.map((one) => [one, new Map<string, string | null>()]));
  const refuse = (words: string, field: string) => {
    throw new Refused("invalid", words, { field });
  };
  for (const [row, name] of names.entries()) {
    const typed = environments.flatMap((environment) => {
      const values = form.all(`value.${environment}`);
      if (values.length !== (shown.includes(environment) || values.length > 0 ? names.length : 0))
        throw new Refused("invalid", "Part of the form is missing: load the page again.");
      const [value = "", field] = [values[row], `value-${row}-${environment}`];
      const isRemoved = stored.includes(name) && form.all(`remove.${environment}`).includes(name);
      if (isRemoved && value !== "")
        refuse(`The field ${JSON.stringify(name)} has a value, and is to be removed.`, field);
      return isRemoved || value !== "" ? [{ environment, field, value: isRemoved ? null : value }] : [];
    });
    if (name === "" && typed.length === 0) continue;
    if (name === "") refuse(`Field ${row + 1} has a value and no name. Nothing was changed.`, `field-${row}`);
    if (names.indexOf(name) < row) refuse(`The field ${JSON.stringify(name)} is there twice.`, `field-${row}`);
    if (typed.length === 0 && !stored.includes(name)) {
      const how = "A field with an empty value is written with `keyhole account set`.";
      const words = `The field ${JSON.stringify(name)} has no value. Nothing was changed. ${how}`;
      refuse(words, `value-${row}-${shown[0]}`);
    }
    for (const { environment, field, value } of typed) {
      inField(field, () => validateAccount(account, [environment], { [name]: value }, true));
      found.get(environment)?.set(name, value);
    }
  }
  const filled = [...found].filter(([, fields]) => fields.size > 0);
  const [first, other] = filled;
  if (!form.has("same") || first === undefined)
    return new Map(filled.map(([one, fields]) => [one, Object.fromEntries(fields)]));
  if (other !== undefined) {
    const words = `${first[0]} and ${other[0]} have values, and one is to be written in all of them. Choose one.`;
    refuse(`${words} Nothing was changed.`, "same");
  }
  return new Map(alikeIn(shown, entries).map((one) => [one, Object.fromEntries(first[1])]));
}
