/** @jsxImportSource preact */

import { drawnFacts } from "../../dashboard/parts/drawn.tsx";
import { Facts } from "../../dashboard/parts/parts.tsx";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { ownColumns } from "./operations.ts";
import { ownRights } from "./persons.ts";
import { RightsInWords, RightsList, rightsInForceOf, rightsLines } from "./rights-words.tsx";

/** Who is signed in, and what they may do. */
export async function mePage({ admin }: Visit): Promise<Answer> {
  const own = await ownRights(admin);
  const facts = drawnFacts(own, ownColumns, admin.now());
  const main =
    own.rights === "operator" ? (
      <Facts facts={facts} />
    ) : (
      <>
        <Facts
          facts={{
            ...facts,
            Rights: <RightsList lines={rightsLines(rightsInForceOf(own.name, own.rights), own.name)} />,
          }}
        />
        <RightsInWords />
        <p class="quiet">Operators give and take rights, and so do persons with the right grant.</p>
      </>
    );
  return { title: "Your rights", main };
}
