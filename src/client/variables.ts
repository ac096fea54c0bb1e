import type { NamedValue } from "../core/formats/dotenv.ts";
import { isVariableName } from "../core/names.ts";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { didYouMean } from "../core/words/nearest.ts";
import { isSteering } from "../core/words/steering.ts";
import type { Asked } from "./answers.ts";
import { type ChangeWait, type Client, queryBytesMax } from "./client.ts";
import type { Selection } from "./npm/answers.ts";

/** A project's environment, and the client that asks for it. */
export type Source = { readonly asked: Asked; readonly client: Client };

/** Which variables a command takes, and which it needs. */
export type VariableOptions = Selection & {
  readonly require?: readonly string[] | undefined;
  readonly allowEmpty?: true | undefined;
};

/** Fetches the variables that the options ask for. @throws Problem, also if a required one or all are missing */
export async function fetchVariables(source: Source, options: VariableOptions): Promise<readonly NamedValue[]> {
  const variables = await askVariables(source, options);
  refuseMissing(source.asked, variables, options);
  return variables;
}

/** The variables that the options select, whatever is missing. */
export async function askVariables({ asked, client }: Source, options: VariableOptions, waiting?: ChangeWait) {
  const { keys, prefix, require = [] } = options;
  for (const [option, names] of Object.entries({ "--keys": keys ?? [], "--require": require })) {
    const wrong = names.find((name) => !isVariableName(name));
    if (wrong !== undefined) throw usageProblem(`${option} takes names of variables, and '${wrong}' cannot be one.`);
  }
  if (prefix === "") throw usageProblem("--prefix is empty: leave it out to take all.");
  if ((keys ?? []).join(",").length + (prefix ?? "").length * 3 > queryBytesMax) {
    throw usageProblem("--keys and --prefix are too long for one request: take all, or use a shorter --prefix.");
  }
  return client.variables(asked, { keys, prefix }, waiting);
}

/** @throws Problem if a required variable or all of them are missing */
export function refuseMissing(asked: Asked, variables: readonly NamedValue[], options: VariableOptions): void {
  const { keys, prefix, require = [] } = options;
  const present = new Set(variables.map(({ name }) => name));
  const missing = [...new Set([...(keys ?? []), ...require])].filter((name) => !present.has(name));
  const where = `${asked.project}, ${asked.environment}`;
  if (missing.length > 0) {
    // The answer has what was asked for, and other names only if that was all.
    const others = [...present].filter((name) => !keys?.includes(name) && !require.includes(name));
    const words = `Not found in ${where}: ${missing.join(", ")}.${didYouMean(missing, others)}`;
    throw new Problem(exits.notFound, "missing_variables", words);
  }
  if (variables.length === 0 && !options.allowEmpty) {
    const what = prefix === undefined ? "no variables" : `no variables that begin with ${prefix}`;
    throw new Problem(exits.notFound, "empty_set", `There are ${what} in ${where}; --allow-empty accepts that.`);
  }
}

/** @throws Problem that names the variables on which loaders, shells or CI runners would act */
export function refuseSteering(variables: readonly NamedValue[], allowed: readonly string[] = []): void {
  const names = variables.map(({ name }) => name).filter((name) => isSteering(name) && !allowed.includes(name));
  if (names.length === 0) return;
  const reason = `Refused, because loaders, shells or CI runners act on them: ${names.join(", ")}.`;
  const words = `${reason} If you want that: --allow-name ${names.join(",")}.`;
  throw new Problem(exits.failed, "steering_names", words);
}
