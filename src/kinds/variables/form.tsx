/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { isDay } from "../../core/words/times.ts";
import { carryOut, typedIn } from "../../dashboard/parts/carry-out.ts";
import type { ItemChange, ItemForm, StoredItem } from "../../dashboard/parts/kind-pages.ts";
import { Ago, Box, Boxes, Env, Field, MachinesOnly, ShowTyped } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Done } from "../../dashboard/parts/route.ts";
import { type Form, inField, type Visit } from "../../dashboard/parts/visit.ts";
import { findProject } from "../../people/desk/projects.ts";
import { requireSets } from "../../people/editing/open.ts";
import { setItemsMax } from "../../serve/sets/kind.ts";
import { dueAtOf, type VariableEntry, variables } from "./entry.ts";
import { set } from "./operations.ts";
import { type NewVariable, validateVariables } from "./write.ts";

/** A value for each environment, and a day to rotate them by. */
export const form: ItemForm<VariableEntry> = {
  nameHelp: "Letters, digits and _, such as DATABASE_URL.",
  about: "What is stored is not shown.",
  fields: ({ shown, entries, unseen }, now) => (
    <>
      <div class="cards">
        {shown.map((environment) => {
          const isSeen = !unseen.includes(environment);
          const entry = entries.get(environment);
          const empty = isSeen ? (entry ? "keeps the stored value" : "creates none") : "changes nothing";
          return (
            <fieldset>
              <legend>
                <Env value={environment} />
              </legend>
              {isSeen && <p class="quiet">{entry ? changedOf(entry, now) : "There is none yet."}</p>}
              <Field
                id={`value-${environment}`}
                name={`value.${environment}`}
                label={`Value in ${environment}`}
                help={`An empty field ${empty}.`}
                rows={3}
              />
            </fieldset>
          );
        })}
      </div>
      <p>
        <ShowTyped />
      </p>
      <details>
        <summary>More: an empty value, a day to rotate by, a canary, for machines only</summary>
        <Boxes legend="Set it to the empty value in" name="empty" options={shown} />
        <DayFields entries={[...entries.values()]} now={now} />
        <Box name="canary">What is written here is a canary: every use of it is on record, until it is deleted</Box>
        <MachinesOnly />
      </details>
    </>
  ),
  change,
};

/** The day that is there, unless it has come: then a new value needs the next one. */
function dayToCome(day: string | undefined, now: number): string | null {
  return day !== undefined && dueAtOf(day) > now ? day : null;
}

function DayFields({ entries, now }: { readonly entries: readonly VariableEntry[]; readonly now: number }) {
  const [day, ...others] = new Set(entries.map(({ rotateBy }) => rotateBy));
  return (
    <>
      {others.length > 0 && (
        <Field
          name="days"
          label="Days to rotate by"
          help="The environments have different days: keep them, set the day below, or none."
          options={["keep", "set", "none"]}
        />
      )}
      <Field
        name="rotateBy"
        label="Rotate by"
        help="A day, in UTC, for the values that you write here. Today reminds you of it. Empty for none."
        type="date"
        stored={(others.length === 0 && dayToCome(day, now)) || ""}
      />
    </>
  );
}

function changedOf({ updatedAt, rotateBy }: VariableEntry, now: number) {
  return ["Changed ", <Ago at={updatedAt} now={now} />, rotateBy && `, to be rotated by ${rotateBy}`];
}

function change(
  visit: Visit,
  name: string,
  { shown, entries, unseen, remarks }: StoredItem<VariableEntry>,
): ItemChange {
  const { admin, where, form } = visit;
  const isNoted = Object.keys(remarks).length > 0;
  const noted = isNoted ? [...entries.keys()].filter((environment) => !unseen.includes(environment)) : [];
  const canary = form.has("canary") ? (true as const) : undefined;
  const machinesOnly = form.has("machinesOnly") ? (true as const) : undefined;
  const values = valuesIn(form, shown, noted.length > 0 && !machinesOnly);
  const day = inField("rotateBy", () => readDay(form, admin.now()));
  const each = new Map(
    [...values].map(([environment, value]): EachWritten => {
      // An empty day does not take away one that the form did not show.
      const isKept = day === "keep" || (day === null && unseen.includes(environment));
      const rotateBy = isKept ? dayToCome(entries.get(environment)?.rotateBy, admin.now()) : day;
      return [environment, [{ name, value, rotateBy, ...remarks, canary, machinesOnly }]];
    }),
  );
  // What is wrong with a name is said before the name is asked for again.
  inField("name", () => validateVariables([{ name, value: "" }]));
  for (const [environment, entries] of each) inField(`value.${environment}`, () => validateVariables(entries));
  // Where only a remark is written, the value that is there gets no mark.
  const all = new Map([...noted.map((environment): EachWritten => [environment, [{ name, ...remarks }]]), ...each]);
  const targets = [...all.keys()];
  const given = { project: where, environments: targets, name, value: typedIn(""), each: all, canary, machinesOnly };
  return { targets, write: (to) => carryOut(visit, set, given, to) };
}

type EachWritten = readonly [Environment, readonly NewVariable[]];

/**
 * Writes what was typed in rows of the grid, or nothing. Notes and marks stay, and a day unless it has come.
 * @throws Refused `conflict` if somebody wrote one of them since the page was shown
 */
export async function edit(visit: Visit): Promise<Done> {
  const { admin, where, form } = visit;
  const fields = environments.map((environment) => [environment, form.typed(`value.${environment}.`)] as const);
  // To judge each takes long, and the pages of others wait.
  if (fields.reduce((sum, [, { size }]) => sum + size, 0) > setItemsMax)
    throw new Refused("bound", `At most ${setItemsMax} fields are taken at once. Nothing was changed.`);
  const sets = await requireSets(admin, await findProject(admin, where, "write"), variables);
  const each = new Map<Environment, readonly NewVariable[]>();
  for (const [environment, typed] of fields) {
    const entries = sets.find((set) => set.environment === environment)?.entries ?? [];
    const days = new Map(entries.map(({ key, rotateBy }) => [key, rotateBy]));
    const written = [...typed].map(([name, value]): NewVariable => {
      inField(`value.${environment}.${name}`, () => validateVariables([{ name, value }]));
      return { name, value, rotateBy: dayToCome(days.get(name), admin.now()) };
    });
    if (written.length > 0) each.set(environment, written);
  }
  const targets = [...each.keys()];
  if (targets.length === 0) throw new Refused("invalid", "No field has a value. Nothing was changed.");
  form.requireAgain(where, targets);
  // Cut, so that the next address is not one that the server refuses. The script keeps less.
  const query = new URLSearchParams(form.find("here")?.slice(0, 12_000));
  const { filter = "", sort = "", only = "", folded = "" } = Object.fromEntries(query);
  const to = projectPagePath(where, variables.kind, { only, filter, sort, folded });
  return carryOut(visit, set, { project: where, environments: targets, name: "", value: typedIn(""), each }, to);
}

/**
 * The values to write, by environment.
 * @param shown - the environments that the page has fields for; a value for another one is refused when it is written
 * @param isNoted - whether there may be none, because a note is written
 * @throws Refused `invalid` if there are none, or one is both there and empty
 */
function valuesIn(form: Form, shown: readonly Environment[], isNoted: boolean): ReadonlyMap<Environment, string> {
  const values = new Map<Environment, string>();
  const empty = form.environments("empty");
  for (const environment of environments) {
    const field = `value.${environment}`;
    const value = shown.includes(environment) ? form.read(field) : (form.find(field) ?? "");
    if (value !== "" && empty.includes(environment)) {
      throw new Refused("invalid", `${environment} has a value, and "empty value" is checked. Choose one.`, { field });
    }
    if (value !== "" || empty.includes(environment)) values.set(environment, value);
  }
  if (values.size === 0 && !isNoted) {
    const field = `value.${shown[0]}`;
    throw new Refused("invalid", "No field has a value. Nothing was changed.", { field });
  }
  return values;
}

/** The day to rotate by, null for none, or `keep` the stored days. @throws Refused `invalid` if the day is past */
function readDay(form: Form, now: number): string | null {
  const day = form.touched("rotateBy");
  const days = form.find("days") ?? (day === undefined ? "keep" : day === "" ? "none" : "set");
  if (!day !== (days !== "set")) {
    throw new Refused("invalid", "Choose one: set a day to rotate by, set none, or keep the stored days.");
  }
  if (!day) return days === "keep" ? days : null;
  return comingDay(day, now);
}

/** @throws Refused `invalid` if it is no day, or past */
export function comingDay(text: string, now: number): string {
  if (isDay(text) && dueAtOf(text) > now) return text;
  throw new Refused("invalid", "The day to rotate by must be one in UTC that is not past, such as 2030-01-31.");
}
