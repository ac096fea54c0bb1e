/** @jsxImportSource preact */
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { requireFreshToCompare } from "../../desk/context.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import {
  Box,
  Change,
  Changed,
  changesOf,
  counted,
  Empty,
  Env,
  Field,
  Lead,
  NameAgain,
  Warnings,
} from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Form, Visit } from "../../pages/visit.ts";
import { setItemsMax } from "../../sets/kind.ts";
import { requireSet, requireSets, shownEnvironments } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { parseEnvFile } from "./env-file.ts";
import { wroteSentence } from "./operations.ts";
import { type NewVariable, setVariables, type VariablesWrite, type WriteOptions } from "./write.ts";

/** A text that was pasted, and what it would do. */
type Pasted = {
  readonly environment: Environment;
  readonly entries: readonly NewVariable[];
  /** The version and the project are those that the plan was made for. */
  readonly options: WriteOptions;
  readonly plan: VariablesWrite;
};

/** A text to paste: first what it would do is shown, then exactly that is applied. */
export async function pastePage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const project = await findProject(admin, where, "write");
  const shown = shownEnvironments(project, await requireSets(admin, project, variables));
  const main = (
    <>
      <Change action={projectPagePath(where, "variables/paste")} button="See what it would do">
        <Field name="environment" label="Environment" options={shown} value={visit.environment()} />
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
  const options = { prune: form.has("prune"), ...seen, warnings: firstOf(warnings) };
  const plan = await setVariables(admin, where, environment, entries, { ...options, dryRun: true });
  const pasted: Pasted = { environment, entries, options, plan };
  return { to: drafts.keep(projectPagePath(where, "variables/paste"), pasted, admin.now()) };
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

/** What a pasted text would do, by name. */
export async function planPage(visit: Visit): Promise<Answer> {
  const { where } = visit;
  const { environment, plan } = draftOf(visit);
  const same = plan.updated - plan.changed.length;
  const isNothing = changesOf(plan).length === 0;
  const main = (
    <>
      <Warnings items={plan.warnings} />
      <Changed names={plan} />
      {same > 0 && <p class="quiet">{counted(same, "variable has", "variables have")} the same value already.</p>}
      {isNothing ? (
        <Empty>{environment} has all of this already. There is nothing to apply.</Empty>
      ) : (
        <Change action={visit.url.pathname} button="Apply exactly that">
          {environment === "production" && <NameAgain name={where} what="name of the project" />}
        </Change>
      )}
      <Lead to={projectPagePath(where, "variables/paste", { environment })}>Paste another text</Lead>
    </>
  );
  return {
    title: "What it would do",
    heading: ["What it would do in ", <Env value={environment} />],
    main,
  };
}

/** Writes what the plan says. @throws Refused `conflict` if somebody wrote the environment since */
export async function apply(visit: Visit): Promise<Answer> {
  const { admin, where, form, drafts } = visit;
  const { environment, entries, options, plan } = draftOf(visit);
  form.requireAgain(where, [environment]);
  const written = await setVariables(admin, where, environment, entries, { ...options, agreed: plan.deleted });
  drafts.clear();
  return { to: projectPagePath(where, "variables"), notice: wroteSentence(where, environment, written) };
}

/** The draft of this page. */
function draftOf({ drafts, url, admin }: Visit): Pasted {
  return drafts.read(url.pathname, admin.now()) as Pasted;
}
