/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { type Environment, environments } from "../../core/names.ts";
import { excerpt } from "../../core/visible.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { whoStillReads } from "../../core/words/machines-only.ts";
import { joined } from "../../core/words/text.ts";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import {
  Ago,
  type Cells,
  Chooser,
  environmentColumns,
  Field,
  joined as join,
  Named,
  Operators,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { findProject } from "../desk/projects.ts";
import { type PersonAccess, personsWithAccess, signInText } from "../persons/persons.ts";
import { personPath } from "../persons/rights-form.tsx";
import { InEnvironments, RightsInWords, rightsCell, rightsInForceOf, rightsLines } from "../persons/rights-words.tsx";
import { type KeyAccess, listAccess } from "./keys.ts";
import { keyColumns } from "./page.tsx";
import { type Gets, namesForMachines } from "./readers.ts";

/** Who can do what in a project: each key, trust and person by the three environments. */
export async function accessPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const environment = visit.environment();
  const project = await findProject(admin, where, "see");
  const seen = visit.reached(project, "see");
  // Their rights are looked up in these alone: a column for another environment would say "nothing" of what is not known.
  const asked = environment === undefined ? seen : [environment];
  const there = asked.length === environments.length ? "" : ` in ${joined(asked)}`;
  const { id, slug, organization } = project;
  const newKey = withQuery("/keys/new", { org: organization.slug, projects: `${slug}/${id}` });
  const rows = await listAccess(admin, where, environment);
  const persons = await personsWithAccess(admin, where, environment);
  const hidden = await namesForMachines(admin, where, environment);
  const main = (
    <>
      <Chooser button="Show">
        <Field label="In" name="environment" options={seen} value={environment} any="any environment" />
      </Chooser>
      <PagedTable
        caption={`The keys and trusts that reach ${where}`}
        columns={columnsOf(rows, seen, admin.now())}
        rows={rows}
        visit={visit}
        idOf={({ id }) => id}
        nameOf={({ name }) => excerpt(name)}
        filter="keys and trusts"
        none={[
          `No valid key or trust reaches ${where}${there}. `,
          visit.may("keys") && [<a href={newKey}>Create a key</a>, " for a machine that should read it."],
        ]}
      />
      <h2>Persons</h2>
      <PagedTable
        caption={`The persons with rights in ${where}`}
        columns={personColumns(persons, asked)}
        rows={persons}
        visit={visit}
        prefix="person-"
        idOf={({ name }) => name}
        nameOf={({ name }) => name}
        filter="persons"
        none={`Nobody has rights here${there}. An operator gives them, or somebody with the right grant.`}
      />
      <RightsInWords />
      {hidden.length > 0 && (
        <p>
          For machines only: {joined(hidden)}. Of each of them: {whoStillReads}.
        </p>
      )}
      <Operators />
    </>
  );
  return { title: `Who can read ${where}`, heading: `Who can read ${where}`, main };
}

function personColumns(all: readonly PersonAccess[], shown: readonly Environment[]): Cells<PersonAccess> {
  const marks = lookalikes(all.map(({ name }) => ({ id: name, name })));
  return {
    Name: (person) => [
      <Named thing={{ id: person.name, name: person.name }} marks={marks} to={personPath(person.name)} />,
      <Brief>
        {join(rightsLines(rightsInForceOf(person.name, [], [{ ...person, where: "" }]), person.name), "; ")}
      </Brief>,
    ],
    "Signs in as": ({ signIn }) => (signIn === null ? "over SSH" : <Word>{signInText(signIn)}</Word>),
    ...environmentColumns<PersonAccess>(shown, (person, environment) => rightsCell(person, environment)),
  };
}

/** On a phone, this line stands in place of the other cells of the row. */
function Brief({ children }: { readonly children: ComponentChildren }) {
  return <small class="brief">{children}</small>;
}

function columnsOf(all: readonly KeyAccess[], shown: readonly Environment[], now: number): Cells<KeyAccess> {
  const kindsOf = ({ gets }: KeyAccess, what: Gets) => Object.keys(gets).filter((kind) => gets[kind] === what);
  const getsOf = (key: KeyAccess, values: string) => {
    if (kindsOf(key, "values").length > 0) return `● ${values}`;
    return kindsOf(key, "names").length > 0 && <span class="quiet">○ names</span>;
  };
  const valuesOf = (key: KeyAccess) => kindsOf(key, "values").join(", ");
  const columns = keyColumns(
    now,
    {
      ...environmentColumns<KeyAccess>(shown, (key, environment) =>
        key.environments?.includes(environment) === false ? "" : getsOf(key, "values"),
      ),
      "Values of": valuesOf,
    },
    all,
  );
  const brief = (key: KeyAccess) => {
    const gets = getsOf(key, valuesOf(key));
    const among = shown.filter((one) => key.environments?.includes(one) !== false);
    const parts = [
      gets && [gets, <InEnvironments among={among} />],
      key.status !== "active" && key.status,
      key.expiresAt !== null && ["ends ", <Ago at={key.expiresAt} now={now} />],
    ];
    return <Brief>{join(parts.filter(Boolean), " · ")}</Brief>;
  };
  return { ...columns, Name: (key) => [columns["Name"]?.(key), brief(key)] };
}
