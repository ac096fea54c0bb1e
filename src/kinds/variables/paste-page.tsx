/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import { typedIn } from "../../dashboard/parts/carry-out.ts";
import { Box, Change, Field, SignInAgain } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import { blame, type Form, type Visit } from "../../dashboard/parts/visit.ts";
import { isStaleToCompare } from "../../people/desk/context.ts";
import { findProject, placeOf } from "../../people/desk/projects.ts";
import { requireSets, shownEnvironments } from "../../people/editing/open.ts";
import { setItemsMax } from "../../serve/sets/kind.ts";
import { drafted, keepDraft } from "../plan-page.tsx";
import { variables } from "./entry.ts";
import { importAll } from "./operations.ts";

/** A text to paste: first what it would do is shown, then exactly that is applied. */
export async function pastePage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const project = await findProject(admin, where, "write");
  const shown = shownEnvironments(project, await requireSets(admin, project, variables));
  const main = (
    <>
      {isStaleToCompare(admin, placeOf(project), shown) && <SignInAgain to="paste into production" />}
      <Change
        action={projectPagePath(where, "variables/paste")}
        button="See what it would do in"
        choice={{ name: "environment", options: shown, value: visit.environment() }}
      >
        <Field
          name="text"
          label="Text of an .env file"
          help="Lines such as NAME=value. Nothing is written yet."
          rows={14}
          required
        />
        <p>
          <Box name="prune">Also delete what the text does not have</Box>{" "}
          <Box name="notes">The comment above a line becomes its note</Box>
        </p>
      </Change>
    </>
  );
  return { title: "Paste variables", main };
}

/** Finds out what a text would do, and keeps it. @throws Refused `invalid` that names each line that is wrong */
export async function paste(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const environment = form.environment();
  const prune = form.has("prune") ? (true as const) : undefined;
  const notes = form.has("notes") ? (true as const) : undefined;
  const imports = { project: where, environment, file: typedIn(textIn(form)), prune, notes };
  const again = ["Paste another text", projectPagePath(where, "variables/paste", { environment })] as const;
  const page = projectPagePath(where, "variables/paste");
  return keepDraft(visit, page, { where, kind: "variables", environment, again, ...drafted(importAll, imports) }).catch(
    blame("text"),
  );
}

/** The text, unless parsing it would keep other people's pages waiting. */
function textIn(form: Form): string {
  const text = form.read("text");
  if (Buffer.byteLength(text) <= textBytesMax && text.split("\n", linesMax + 1).length <= linesMax) return text;
  const most = `${textBytesMax / 1024 / 1024} MiB or ${linesMax} lines`;
  throw new Refused("bound", `The text has more than ${most}. Use keyhole var import for it.`, { field: "text" });
}

const textBytesMax = 1024 * 1024;
const linesMax = 3 * setItemsMax;
