/** @jsxImportSource preact */
import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { typedIn } from "../../dashboard/parts/carry-out.ts";
import { Box, Change, Chips, Env, Field, SignInAgain } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import { blame, type Visit } from "../../dashboard/parts/visit.ts";
import { isStaleToCompare, requireFreshToCompare } from "../../people/desk/context.ts";
import { seenOf } from "../../people/desk/plan.ts";
import { findProject, placeOf } from "../../people/desk/projects.ts";
import { requireSet, requireSets, shownEnvironments } from "../../people/editing/open.ts";
import { setItemsMax } from "../../serve/sets/kind.ts";
import { drafted, keepDraft } from "../plan-page.tsx";
import { textOf } from "./edit.ts";
import { variables } from "./entry.ts";
import { edited, importAll } from "./operations.ts";
import { revealVariables } from "./reveal.ts";

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

/** An environment as one text, which the script asks for. What was changed in it is planned as a pasted text is. */
export async function textPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const anywhere = await findProject(admin, where, neededForText);
  const shown = shownEnvironments(anywhere, await requireSets(admin, anywhere, variables));
  const environment = visit.environment() ?? shown[0] ?? environments[0];
  const project = await findProject(admin, where, neededForText, [environment]);
  requireFreshToCompare(admin, placeOf(project), [environment]);
  const set = await requireSet(admin, { project, descriptor: variables, environment });
  const page = (environment?: Environment) => projectPagePath(where, "variables/text", { environment });
  const main = (
    <>
      <Chips
        label="Environments"
        items={shown.map((one) => ({ words: one, to: page(one), isHere: one === environment }))}
      />
      <Change
        action={projectPagePath(where, "variables/paste")}
        button="See what it would do"
        hidden={{ environment, ...seenOf(project, [set]), base: "" }}
        beside={
          <button type="submit" class="quiet" formAction={page()} formNoValidate data-secret="typed">
            Show all values
          </button>
        }
      >
        <Field name="text" label={`All variables of ${environment}`} help={helpOfText} rows={18} required />
      </Change>
    </>
  );
  return { title: `${environment} as text`, heading: [<Env value={environment} />, " as text"], main };
}

const helpOfText =
  "It is on record that you saw them. The text is emptied, with your changes, when you leave or press no key for " +
  "five minutes. If you remove a line, its variable is deleted.";

export const neededForText = ["reveal", "write", "see"] as const;

/** An environment as one text, for the script. It is on record once this resolves. */
export async function showText({ admin, where, form }: Visit): Promise<Answer> {
  const environment = form.environment();
  form.requireProject(await findProject(admin, where, neededForText, [environment]));
  const about = `${where}, ${environment}: nothing is written before you have seen what it would do.`;
  const { text, seen } = await revealVariables(admin, where, environment, (...shown) =>
    fitting(textOf(about, ...shown), "var edit"),
  );
  return { secret: text, seen: { ...seen, base: seen[`version.${environment}`] ?? 0 } };
}

/** Finds out what a text would do, and keeps it. @throws Refused `invalid` that names each line that is wrong */
export async function paste(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const environment = form.environment();
  const isWhole = form.has("base");
  const text = fitting(form.read("text"), isWhole ? "var edit" : "var import");
  // Without what was shown, a line that is not in the text may never have been there: it must delete nothing.
  if (form.find("base") === "") throw new Refused("invalid", "Show all values first. Nothing was done.");
  const prune = form.has("prune") ? (true as const) : undefined;
  const notes = form.has("notes") ? (true as const) : undefined;
  const given = { project: where, environment };
  const deed = isWhole
    ? drafted(edited, { ...given, text, base: form.number("base") })
    : drafted(importAll, { ...given, file: typedIn(text), prune, notes });
  const again = [
    isWhole ? "Open the text again" : "Paste another text",
    projectPagePath(where, isWhole ? "variables/text" : "variables/paste", { environment }),
  ] as const;
  const version = `version.${environment}`;
  const shown = isWhole ? { project: form.read("project"), [version]: form.number(version) } : {};
  const page = projectPagePath(where, "variables/paste");
  return keepDraft(visit, page, { where, kind: "variables", environment, again, ...deed }, shown).catch(blame("text"));
}

/** A text, unless parsing it would keep other people's pages waiting. @param command - that takes a longer one */
function fitting(text: string, command: string): string {
  if (Buffer.byteLength(text) <= textBytesMax && text.split("\n", linesMax + 1).length <= linesMax) return text;
  const most = `${textBytesMax / 1024 / 1024} MiB or ${linesMax} lines`;
  throw new Refused("bound", `The text has more than ${most}. Use keyhole ${command} for it.`, { field: "text" });
}

const textBytesMax = 1024 * 1024;
const linesMax = 3 * setItemsMax;
