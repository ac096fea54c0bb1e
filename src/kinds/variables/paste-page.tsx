/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import { requireFreshToCompare } from "../../desk/context.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import { Box, Change, Field } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { setItemsMax } from "../../sets/kind.ts";
import { requireSet, requireSets, shownEnvironments } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { parseEnvFile } from "./env-file.ts";
import { wroteSentence } from "./operations.ts";
import type { Planned } from "./plan-page.tsx";
import { setVariables } from "./write.ts";

/** A text to paste: first what it would do is shown, then exactly that is applied. */
export async function pastePage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const project = await findProject(admin, where, "write");
  const shown = shownEnvironments(project, await requireSets(admin, project, variables));
  const main = (
    <>
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
          <Box name="prune">Also delete what the text does not have</Box>
        </p>
      </Change>
    </>
  );
  return { title: "Paste variables", main };
}

/** Finds out what a text would do, and keeps it. @throws Refused `invalid` that names each line that is wrong */
export async function paste({ admin, where, form, drafts }: Visit): Promise<Answer> {
  const environment = form.environment();
  const { variables: found, warnings, problems } = parseEnvFile(textIn(form));
  if (problems.length > 0) throw new Refused("invalid", ["Nothing was written.", ...firstOf(problems)].join("\n"));
  if (found.length === 0) throw new Refused("invalid", "The text has no variables. Nothing was written.");
  const entries = found.map(({ name, value }) => ({ name, value }));
  const project = await findProject(admin, where, "write", [environment]);
  requireFreshToCompare(admin, placeOf(project), [environment]);
  const { stored } = await requireSet(admin, { project, descriptor: variables, environment });
  const seen = { version: stored.version, projectId: project.id };
  // The version and the project are those that the plan is made for.
  const options = { prune: form.has("prune"), ...seen, warnings: firstOf(warnings) };
  const plan = await setVariables(admin, where, environment, entries, { ...options, dryRun: true });
  const planned: Planned = {
    environment,
    compared: [environment],
    would: plan,
    same: plan.updated - plan.changed.length,
    again: ["Paste another text", projectPagePath(where, "variables/paste", { environment })],
    write: async (visit) => {
      const agreed = { ...options, agreed: plan.deleted };
      const written = await setVariables(visit.admin, where, environment, entries, agreed);
      return { to: projectPagePath(where, "variables"), notice: wroteSentence(where, environment, written) };
    },
  };
  return { to: drafts.keep(projectPagePath(where, "variables/paste"), planned, admin.now()) };
}

/** The text, unless parsing it would keep other people's pages waiting. */
function textIn(form: Form): string {
  const text = form.read("text");
  if (Buffer.byteLength(text) <= textBytesMax && text.split("\n", linesMax + 1).length <= linesMax) return text;
  const most = `${textBytesMax / 1024 / 1024} MiB or ${linesMax} lines`;
  throw new Refused("bound", `The text has more than ${most}. Use keyhole var import for it.`);
}

const textBytesMax = 1024 * 1024;
const linesMax = 3 * setItemsMax;

/** The most sentences about a text that are shown. */
function firstOf(sentences: readonly string[]): string[] {
  const more = sentences.length - sentencesMax;
  return [...sentences.slice(0, sentencesMax), ...(more > 0 ? [`… and ${more} more`] : [])].map(
    (sentence) => `${sentence}.`,
  );
}

const sentencesMax = 21;
