import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { findProject } from "../../desk/projects.ts";
import { Ago, Change, Env, Field, Name, NameAgain } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer, Route } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { requireSets } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { nameWarnings, valueWarnings } from "./env-file.ts";
import { type EnvironmentWrite, type NewVariable, writeVariables } from "./write.ts";

/** Writing one variable, and deleting it. */
export const setRoutes: readonly Route[] = [
  { method: "GET", path: "/p/:org/:project/variables/set", right: "write", answer: setPage },
  { method: "POST", path: "/p/:org/:project/variables/set", right: "write", answer: set },
  { method: "POST", path: "/p/:org/:project/variables/delete", right: "write", answer: remove },
];

/** A field for each environment. What is stored is not shown: an empty field changes nothing. */
async function setPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const name = visit.query("name");
  const sets = await requireSets(admin, await findProject(admin, where), variables);
  const places = sets.map(({ environment, stored, entries }) => {
    return { environment, version: stored.version, entry: entries.find(({ key }) => key === name) };
  });
  const versions = Object.fromEntries(places.map(({ environment, version }) => [`version.${environment}`, version]));
  const holders = places.filter(({ entry }) => entry !== undefined).map(({ environment }) => environment);
  const now = admin.now();
  const main = (
    <>
      <h1>
        {name === undefined ? (
          "New variable"
        ) : (
          <>
            Change <Name>{name}</Name>
          </>
        )}
      </h1>
      <Change
        action={projectPagePath(where, "variables/set")}
        button="Save"
        hidden={{ ...versions, ...(name !== undefined && { name }) }}
      >
        {name === undefined && (
          <Field id="name" label="Name" help="Letters, digits and _, such as DATABASE_URL.">
            <input id="name" name="name" required maxLength={255} autocomplete="off" spellcheck={false} />
          </Field>
        )}
        {places.map(({ environment, entry }) => (
          <fieldset>
            <legend>
              <Env of={environment} />
            </legend>
            <Field
              id={`value-${environment}`}
              label={`Value in ${environment}`}
              help={
                entry === undefined
                  ? "There is none yet. An empty field creates none."
                  : "An empty field keeps the stored value."
              }
            >
              <textarea
                id={`value-${environment}`}
                name={`value.${environment}`}
                rows={2}
                autocomplete="off"
                spellcheck={false}
              />
            </Field>
            {entry && (
              <p class="quiet">
                Changed <Ago at={entry.updatedAt} now={now} />
                {entry.rotateBy && `, to be rotated by ${entry.rotateBy}`}
              </p>
            )}
            <label>
              <input type="checkbox" name="empty" value={environment} />
              Make it the empty value
            </label>
          </fieldset>
        ))}
        <Field
          id="rotateBy"
          label="Rotate by"
          help="The day, in UTC, on which Today begins to remind you. Leave it out for none."
        >
          <input id="rotateBy" name="rotateBy" type="date" />
        </Field>
        <NameAgain name={name ?? "NAME"} what="name of the variable" />
      </Change>
      {name !== undefined && holders.length > 0 && (
        <section>
          <h2>Delete it</h2>
          <Change
            action={projectPagePath(where, "variables/delete")}
            button="Delete"
            danger
            hidden={{ ...versions, name }}
          >
            <fieldset>
              <legend>From</legend>
              {holders.map((environment) => (
                <label>
                  <input type="checkbox" name="from" value={environment} />
                  <Env of={environment} />
                </label>
              ))}
            </fieldset>
            <Field
              id="again-delete"
              label={
                <>
                  From production, type the name again: <Name>{name}</Name>
                </>
              }
            >
              <input id="again-delete" name="again" autocomplete="off" spellcheck={false} />
            </Field>
          </Change>
        </section>
      )}
    </>
  );
  return { title: name === undefined ? "New variable" : `Change ${name}`, project: visit.inProject("variables"), main };
}

async function set({ admin, where, form }: Visit): Promise<Answer> {
  const name = form.read("name").trim();
  const rotateBy = form.find("rotateBy") || undefined;
  const changes = new Map<Environment, EnvironmentWrite>();
  for (const environment of environments) {
    const value = form.read(`value.${environment}`);
    if (value === "" && !form.all("empty").includes(environment)) continue;
    if (value !== "" && form.all("empty").includes(environment)) {
      throw new Refused("invalid", `There is a value for ${environment}, and the box for the empty value is checked.`);
    }
    const entry: NewVariable = { name, value, ...(rotateBy && { rotateBy: requireDay(rotateBy) }) };
    changes.set(environment, { entries: [entry], version: form.number(`version.${environment}`) });
  }
  if (changes.size === 0) throw new Refused("invalid", "No field has a value. Nothing was changed.");
  form.requireAgain(name, [...changes.keys()]);
  const written = await writeVariables(admin, where, changes);
  const values = [...changes.values()].flatMap(({ entries }) => entries.map(({ value }) => String(value)));
  const warnings = new Set([
    ...[nameWarnings(name) ?? []].flat().map((warning) => `${warning}.`),
    ...values.flatMap((value) => valueWarnings(name, Buffer.from(value))),
    ...[...written.values()].flatMap((one) => one.warnings),
  ]);
  const notice = [`Saved ${name} in ${[...written.keys()].join(" and ")}.`, ...warnings].join(" ");
  return { to: projectPagePath(where, "variables/item", { name }), notice };
}

async function remove({ admin, where, form }: Visit): Promise<Answer> {
  const name = form.read("name");
  const from = chosen(form, "from");
  if (from.length === 0) throw new Refused("invalid", "No environment is chosen. Nothing was deleted.");
  form.requireAgain(name, from);
  const changes = from.map((environment) => {
    const options = { entries: [], remove: [name], version: form.number(`version.${environment}`) };
    return [environment, options] as const;
  });
  await writeVariables(admin, where, new Map(changes));
  return { to: projectPagePath(where, "variables"), notice: `Deleted ${name} from ${from.join(" and ")}.` };
}

/** The environments whose boxes are checked, each once. */
function chosen(form: Form, name: string): Environment[] {
  const all = form.all(name);
  return environments.filter((environment) => all.includes(environment));
}

/** A day that is still to come. @throws Refused `invalid` */
function requireDay(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new Refused("invalid", "The day to rotate by must be a date, such as 2030-01-31.");
}
