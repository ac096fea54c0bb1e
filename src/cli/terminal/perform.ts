import { writeFile } from "node:fs/promises";
import { modesTo } from "../../core/modes.ts";
import { exits, Problem } from "../../core/problem.ts";
import { requireFree, writeWhole } from "../../core/whole-file.ts";
import { counted } from "../../core/words/text.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { fileOf, type ReadInput } from "../../people/desk/inputs.ts";
import { carryOutShown, type Interaction, type Operation } from "../../people/desk/operation.ts";
import type { Outcome, SecretOutput } from "../../people/desk/outcome.ts";
import { wouldDo } from "../../people/desk/plan.ts";
import { withAdmin } from "./admin.ts";
import { answer, answerRows, blockOf, handOver, requireReader } from "./answer.ts";
import { askAt, showFirst } from "./ask.ts";
import { toProblem } from "./failure.ts";
import { withProgress } from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/**
 * Runs an operation, and shows what came of it. If it has a plan, it asks first, or with `dryRun` only says what it would
 * do.
 * @param given - by the names of its inputs
 */
export async function perform(
  context: CommandContext,
  row: Operation,
  given: Readonly<Record<string, unknown>>,
  { yes = false, dryRun = false, limit }: { yes?: boolean; dryRun?: boolean; limit?: number | undefined } = {},
): Promise<void> {
  row.check?.(given);
  const carryOut = async (admin: AdminContext, report: Interaction["report"]) => {
    const person = { env: context.env, report };
    if (row.plan === undefined) return row.run(admin, given, person);
    const plan = await row.plan(admin, given, person);
    if (dryRun) return wouldDo(plan);
    if (row.showsFirst) {
      await showFirst(context, plan);
      await readAfter(row, given, plan.document);
    }
    await askAt(context, row, yes)(plan);
    return carryOutShown(admin, row, given, person, plan);
  };
  const run = () => {
    const work = (report: Interaction["report"]) =>
      withAdmin(context, (admin) => carryOut(admin, report), { begin: row.begins });
    return row.progress === undefined
      ? work(() => {})
      : withProgress(context.terminal.stderr, ...row.progress, (report) => work(report));
  };
  const { out: named, force, wide } = given as { out?: string; force?: true; wide?: true };
  const out = dryRun ? undefined : fileOf(named);
  if (out !== undefined && !("force" in row.inputs)) requireFree(out);
  if (out === undefined && !dryRun) requireReader(context.terminal.stdout, row);
  const outcome = out === undefined ? await run() : await runInto(context, out, force === true, run);
  const { document, sentence = "", warnings = [], shows } = outcome;
  for (const warning of warnings) context.say(warning);
  if (shows === undefined) return answer(context, document, sentence);
  if ("text" in shows) return answer(context, document, sentence, shows.text);
  if ("facts" in shows) return answer(context, document, sentence, blockOf(context, context.terminal.stdout, shows));
  if ("rows" in shows) {
    const more = shows.count - (limit ?? shows.count);
    const isEach = Array.isArray(document) && document.length === shows.count;
    const part = isEach ? document.slice(0, limit) : document;
    const rows = limit === undefined ? shows.rows : [...Iterator.from(shows.rows).take(limit)];
    await answerRows(context, part, { ...shows, rows }, wide === true, sentence);
    if (more > 0) context.say(`${counted(more, "more row")}: raise --limit to see ${more === 1 ? "it" : "them"}.`);
    if (outcome.ends !== undefined) throw outcome.ends;
    return;
  }
  if (out === undefined) {
    const secret = named === undefined || shows.whereItWent === undefined ? shows : { ...shows, whereItWent: () => "" };
    return undoneIfLost(context, shows, handOver(context, document as object, secret, sentence));
  }
  const where = shows.whereItWent?.(out) ?? `Wrote ${shows.what.replace(/^The /, "the ")} to ${out}.`;
  await answer(context, { ...(document as object), out }, [sentence, where].filter(Boolean).join("\n"));
}

/** Reads what is typed after the plan was shown. The transaction must not wait for it. */
async function readAfter(row: Operation, given: Readonly<Record<string, unknown>>, shown: object): Promise<void> {
  for (const [name, { source }] of Object.entries(row.inputs)) {
    if (source !== undefined) await (given[name] as ReadInput).read({ ...shown });
  }
}

/** Runs an operation whose secret goes to a file. It does not run if the file cannot be written. */
async function runInto(context: CommandContext, path: string, force: boolean, run: () => Promise<Outcome>) {
  let outcome: Outcome | undefined;
  const fill = async (draft: string) => {
    outcome = await run();
    await writeFile(draft, (outcome.shows as SecretOutput).secret);
  };
  const write = writeWhole("export", path, force, fill, modesTo(context.say));
  await write.catch((error: unknown) => {
    if (outcome === undefined) throw error;
    return undoneIfLost(context, outcome.shows as SecretOutput, Promise.reject(error));
  });
  return outcome as Outcome;
}

/** Undoes an operation whose secret nobody got. */
async function undoneIfLost(context: CommandContext, { ifLost }: SecretOutput, delivery: Promise<void>): Promise<void> {
  await delivery.catch(async (error: unknown) => {
    if (ifLost === undefined) throw error;
    const words = `${toProblem(error, context).message} ${await withAdmin(context, ifLost)}`;
    throw new Problem(exits.failed, "unwritable", words, { cause: error });
  });
}
