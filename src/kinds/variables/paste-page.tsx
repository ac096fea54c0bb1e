/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import { requireFreshToCompare } from "../../desk/context.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import { requireSet, requireSets, shownEnvironments } from "../../editing/open.ts";
import { Box, Change, Field } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { setItemsMax } from "../../sets/kind.ts";
import { variables } from "./entry.ts";
import { parseEnvFile } from "./env-file.ts";
import { wroteSentence } from "./operations.ts";
import { keepDraft } from "./plan-page.tsx";
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
export async function paste(visit: Visit): Promise<Answer> {
  const { admin, where, form } = visit;
  const environment = form.environment();
  const { variables: found, warnings, problems } = parseEnvFile(textIn(form));
  if (problems.length > 0) throw new Refused("invalid", ["Nothing was written.", ...firstOf(problems)].join("\n"));
  if (found.length === 0) throw new Refused("invalid", "The text has no variables. Nothing was written.");
  const entries = found.map(({ name, value }) => ({ name, value }));
  const project = await findProject(admin, where, "write", [environment]);
  const { stored } = await requireSet(admin, { project, descriptor: variables, environment });
  // Only this version of this project's environment is planned for and written.
  const seen = { version: stored.version, projectId: project.id };
  const options = { prune: form.has("prune"), ...seen, warnings: firstOf(warnings) };
  return keepDraft(visit, projectPagePath(where, "variables/paste"), {
    environment,
    plan: async (now) => {
      requireFreshToCompare(now, placeOf(project), [environment]);
      const plan = await setVariables(now, where, environment, entries, { ...options, dryRun: true });
      const { added, changed, deleted, updated } = plan;
      return { added, changed, deleted, warnings: plan.warnings, same: updated - changed.length };
    },
    again: ["Paste another text", projectPagePath(where, "variables/paste", { environment })],
    write: async ({ admin }) => {
      const written = await setVariables(admin, where, environment, entries, options);
      return { to: projectPagePath(where, "variables"), notice: wroteSentence(where, environment, written) };
    },
  });
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
