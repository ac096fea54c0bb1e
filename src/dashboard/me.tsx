/** @jsxImportSource preact */
import { personText } from "../audit/entry.ts";
import { Ago, type Cells, Envs, Name, Table, Word } from "../pages/parts.tsx";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { ownRights, type RightsInPlace } from "../people/persons.ts";

/** Who is signed in, and what they may do. */
export async function mePage({ admin }: Visit): Promise<Answer> {
  const { rights } = await ownRights(admin);
  const main = (
    <>
      <p>
        You are <Word>{personText(admin.actor)}</Word>.
      </p>
      {rights === "operator" ? (
        <p>You hold the root key, so you may do everything.</p>
      ) : (
        <Table
          caption="Your rights"
          columns={columnsAt(admin.now())}
          rows={rights}
          none="You have no rights here yet."
        />
      )}
      {rights !== "operator" && <p class="quiet">An operator gives and takes rights. No page does.</p>}
    </>
  );
  return { title: "Your rights", main };
}

const columnsAt = (now: number): Cells<RightsInPlace> => ({
  In: ({ organization, project }) => (
    <Name>{project === null ? `every project of ${organization}` : `${organization}/${project}`}</Name>
  ),
  "You may": ({ rights }) => rights.join(", "),
  Environments: ({ environments }) => <Envs values={environments} />,
  Ends: ({ until }) => (until === null ? <span class="quiet">never</span> : <Ago at={until} now={now} />),
});
