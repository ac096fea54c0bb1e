/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { isDay } from "../../desk/inputs.ts";
import { findProject } from "../../desk/projects.ts";
import { itemForms } from "../../pages/item-forms.tsx";
import { Ago, Boxes, Env, Field, Lead, listed, NameAgain } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { requireSets, shownEnvironments } from "../../sets/open.ts";
import { dueAtOf, type VariableEntry, variables } from "./entry.ts";
import { nameWarnings, valueWarnings } from "./env-file.ts";
import { type EnvironmentWrite, type NewVariable, validateVariables, writeVariables } from "./write.ts";

/** A field for each environment. What is stored is not shown: an empty field changes nothing. */
export async function setPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const asked = visit.query("name");
  const project = await findProject(admin, where, "write");
  const sets = await requireSets(admin, project, variables);
  const places = shownEnvironments(project, sets).map((environment) => {
    const set = sets.find((one) => one.environment === environment);
    return { environment, entry: set?.entries.find(({ key }) => key === asked) };
  });
  const holders = places.filter(({ entry }) => entry !== undefined).map(({ environment }) => environment);
  const name = holders.length === 0 ? undefined : asked;
  const now = admin.now();
  return itemForms(where, {
    kind: "variables",
    item: "variable",
    name,
    asked,
    nameHelp: "Letters, digits and _, such as DATABASE_URL.",
    project,
    sets,
    about: visit.may("see") && (
      <Lead to={projectPagePath(where, "variables/item", { name })}>See its values, and who reads them</Lead>
    ),
    fields: (
      <>
        <div class="cards">
          {places.map(({ environment, entry }) => (
            <fieldset>
              <legend>
                <Env value={environment} />
              </legend>
              <ValueField environment={environment} entry={entry} now={now} />
              {environment === "production" && <NameAgain name={name} what="name of the variable" />}
            </fieldset>
          ))}
        </div>
        <DayFields days={daysOf(places)} now={now} />
      </>
    ),
    deletion: <Boxes legend="From" name="from" options={holders} />,
    holders,
  });
}

/** The distinct days to rotate by, over the environments that hold the variable; undefined for no day. */
function daysOf(places: readonly { readonly entry: VariableEntry | undefined }[]): readonly (string | undefined)[] {
  return [...new Set(places.flatMap(({ entry }) => (entry ? [entry.rotateBy] : [])))];
}

/** The day that is there, unless it has come: then a new value needs the next one. */
function DayFields({
  days: [day, ...others],
  now,
}: {
  readonly days: ReturnType<typeof daysOf>;
  readonly now: number;
}) {
  const isToCome = day !== undefined && dueAtOf(day) > now;
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
        value={others.length === 0 && isToCome ? day : undefined}
      />
    </>
  );
}

function ValueField(props: {
  readonly environment: Environment;
  readonly entry: VariableEntry | undefined;
  readonly now: number;
}) {
  const { environment, entry, now } = props;
  return (
    <>
      <p class="quiet">
        {entry ? (
          <>
            Changed <Ago at={entry.updatedAt} now={now} />
            {entry.rotateBy && `, to be rotated by ${entry.rotateBy}`}
          </>
        ) : (
          "There is none yet."
        )}
      </p>
      <Field
        id={`value-${environment}`}
        name={`value.${environment}`}
        label={`Value in ${environment}`}
        help={entry ? "An empty field keeps the stored value." : "An empty field creates none."}
        rows={3}
      />
      <label>
        <input type="checkbox" name="empty" value={environment} />
        Set it to the empty value
      </label>
    </>
  );
}

/** Writes the fields that were filled in, in one transaction. */
export async function set(visit: Visit): Promise<Answer> {
  const { admin, where, form } = visit;
  const { name, isNew } = form.itemName();
  const project = await findProject(admin, where, "write");
  const sets = await requireSets(admin, project, variables);
  const values = valuesIn(form, shownEnvironments(project, sets));
  const targets = [...values.keys()];
  const day = readDay(form, admin.now());
  const changes = [...values].map(([environment, value]): [Environment, EnvironmentWrite] => {
    const entries = sets.find((set) => set.environment === environment)?.entries;
    const rotateBy = day === "keep" ? (entries?.find(({ key }) => key === name)?.rotateBy ?? null) : day;
    const entry: NewVariable = { name, value, rotateBy };
    return [environment, { entries: [entry], ...form.seen(environment) }];
  });
  // What is wrong with a name is said before the name is asked for again.
  for (const [, { entries }] of changes) validateVariables(entries);
  if (isNew) await requireNew(visit, name, targets);
  form.requireAgain(name, targets);
  const written = await writeVariables(admin, where, new Map(changes));
  const warnings = new Set([
    ...nameWarnings(name).map((warning) => `${warning}.`),
    ...[...values.values()].flatMap((value) => valueWarnings(name, Buffer.from(value))),
    ...[...written.values()].flatMap((one) => one.warnings),
  ]);
  const notice = [`Saved ${name} in ${listed(targets)}.`, ...warnings].join(" ");
  return { to: projectPagePath(where, "variables/item", { name }), notice };
}

/**
 * The values to write, by environment.
 * @param shown - the environments that the page has fields for; a value for another one is refused when it is written
 * @throws Refused `invalid` if there are none, or one is both there and empty
 */
function valuesIn(form: Form, shown: readonly Environment[]): ReadonlyMap<Environment, string> {
  const values = new Map<Environment, string>();
  const empty = form.environments("empty");
  for (const environment of environments) {
    const field = `value.${environment}`;
    const value = shown.includes(environment) ? form.read(field) : (form.find(field) ?? "");
    if (value !== "" && empty.includes(environment)) {
      throw new Refused("invalid", `There is a value for ${environment}, and the box for the empty value is checked.`);
    }
    if (value !== "" || empty.includes(environment)) values.set(environment, value);
  }
  if (values.size === 0) throw new Refused("invalid", "No field has a value. Nothing was changed.");
  return values;
}

/** Refuses a new variable that exists already. */
async function requireNew({ admin, where }: Visit, name: string, targets: readonly Environment[]): Promise<void> {
  const sets = await requireSets(admin, await findProject(admin, where, "write"), variables);
  const taken = sets.filter(({ environment, names }) => targets.includes(environment) && names.includes(name));
  if (taken.length === 0) return;
  const places = listed(taken.map(({ environment }) => environment));
  throw new Refused("exists", `There is a ${name} in ${places} already. Nothing was changed: change that one.`);
}

/** Deletes it from the chosen environments. */
export async function remove({ admin, where, form }: Visit): Promise<Answer> {
  const name = form.read("name");
  const from = form.environments("from");
  if (from.length === 0) throw new Refused("invalid", "No environment is chosen. Nothing was deleted.");
  form.requireAgain(name, from);
  const changes = from.map((environment): [Environment, EnvironmentWrite] => {
    return [environment, { entries: [], remove: [name], ...form.seen(environment) }];
  });
  await writeVariables(admin, where, new Map(changes));
  return { to: projectPagePath(where, "variables"), notice: `Deleted ${name} from ${listed(from)}.` };
}

/** The day to rotate by, null for none, or `keep` those that are stored. @throws Refused `invalid` if it is no day to come */
function readDay(form: Form, now: number): string | null {
  const [text, days] = [form.find("rotateBy") ?? "", form.find("days") ?? (form.find("rotateBy") ? "set" : "none")];
  if ((text === "") !== (days !== "set")) {
    throw new Refused(
      "invalid",
      "A day to rotate by is set, or none, or the stored days are kept. Choose one of them.",
    );
  }
  if (days !== "set") return days === "keep" ? days : null;
  if (isDay(text) && dueAtOf(text) > now) return text;
  throw new Refused("invalid", "The day to rotate by must be one in UTC that is not past, such as 2030-01-31.");
}
