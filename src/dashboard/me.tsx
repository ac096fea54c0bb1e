/** @jsxImportSource preact */
import { ownColumns } from "../operations/persons.ts";
import { drawnFacts } from "../pages/drawn.tsx";
import { Facts } from "../pages/parts.tsx";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { ownRights } from "../people/persons.ts";

/** Who is signed in, and what they may do. */
export async function mePage({ admin }: Visit): Promise<Answer> {
  const own = await ownRights(admin);
  const main = (
    <>
      <Facts facts={drawnFacts(own, ownColumns, admin.now())} />
      {own.rights !== "operator" && <p class="quiet">An operator gives and takes rights. No page does.</p>}
    </>
  );
  return { title: "Your rights", main };
}
