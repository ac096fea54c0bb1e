/** @jsxImportSource preact */
import { environments } from "../core/names.ts";
import { Choice, Chooser, type Column, environmentColumns, Table, Word } from "../pages/parts.tsx";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { type KeyRecord, listAccess } from "../people/keys.ts";
import { type PersonAccess, personsWithAccess, signInText } from "../people/persons.ts";
import { keyColumns } from "./keys.tsx";

/** Who can do what in a project: each key, trust and person by the three environments. */
export async function accessPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const environment = visit.environment();
  const seen = await visit.reached("see");
  const rows = await listAccess(admin, where, environment);
  const persons = await personsWithAccess(admin, where, environment);
  const main = (
    <>
      <Chooser button="Show">
        <Choice label="In" name="environment" of={seen} chosen={environment} any="any environment" />
      </Chooser>
      <Table
        caption={`The keys and trusts that reach ${where}`}
        columns={columnsOf(admin.now())}
        rows={rows}
        none={
          <>
            No valid key or trust reaches {environment === undefined ? where : `${where} in ${environment}`}.
            {visit.may("keys") && (
              <>
                {" "}
                <a href="/keys/new">Create a key</a> for a machine that should read it.
              </>
            )}
          </>
        }
      />
      <h2>Persons</h2>
      <Table
        caption={`The persons with rights in ${where}`}
        columns={personColumns}
        rows={persons}
        none="Nobody has rights here. An operator gives them: keyhole person grant."
      />
      <p class="quiet">Whoever has the root key and the database can read everything, too.</p>
    </>
  );
  return { title: `Who can read ${where}`, heading: "Who can read it", main };
}

const personColumns: readonly Column<PersonAccess>[] = [
  { heading: "Name", cell: ({ name }) => name },
  { heading: "Signs in as", cell: ({ signIn }) => (signIn === null ? "over SSH" : <Word>{signInText(signIn)}</Word>) },
  ...environmentColumns<PersonAccess>(
    environments,
    ({ rightsIn }, environment) => rightsIn[environment]?.join(", ") || <span class="quiet">nothing</span>,
  ),
];

function columnsOf(now: number): readonly Column<KeyRecord>[] {
  return keyColumns(now, [
    ...environmentColumns<KeyRecord>(environments, ({ environments: reach }, environment) =>
      reach?.includes(environment) === false ? <span class="quiet">no</span> : "can read",
    ),
    { heading: "May read", cell: (one) => one.resources.join(", ") },
  ]);
}
