import type { NamedValue } from "../core/formats/dotenv.ts";
import type { LookResult } from "./looks.ts";
import { type Command, childEnvironment, findProgram } from "./run.ts";
import { askVariables, refuseMissing, refuseSteering, type Source, type VariableOptions } from "./variables.ts";

/** How a command is made from the variables of an environment. */
export type Recipe = VariableOptions & {
  /** The program and its arguments. */
  readonly argv: readonly [string, ...string[]];
  /** What it could inherit: entries as `core/settings/inherited.ts` describes them. */
  readonly own: readonly string[];
  readonly inherit: boolean;
  readonly preserve: true | undefined;
  readonly allowName?: readonly string[] | undefined;
};

/** A command, the names that were withheld from it, and the variables that it was made from. */
export type Prepared = Command & { readonly withheld: readonly string[]; readonly from: readonly NamedValue[] };

/** @throws Problem if a required variable is missing, one steers programs, or the program cannot be found */
export function prepare({ asked, client }: Source, variables: readonly NamedValue[], recipe: Recipe): Prepared {
  refuseMissing(asked, variables, recipe);
  refuseSteering(variables, recipe.allowName);
  const { env, withheld } = childEnvironment(recipe.own, variables, { ...recipe, apiKey: client.key });
  return { path: findProgram(recipe.argv[0], env), argv: recipe.argv, env, withheld, from: variables };
}

/**
 * Returns a look for `watchFor`: it gives the command as it is now if its environment or a file changed. A look that
 * fails loses no change, because the next one compares with the same command, without a wait.
 * @param first - the command that runs
 * @param pull - puts files in place, and returns the paths of those that changed; undefined for a command without files
 */
export function looksFor(source: Source, recipe: Recipe, first: Prepared, pull?: () => Promise<readonly string[]>) {
  let running = first;
  let hasFailed = false;
  return async (waitS: number): Promise<LookResult<Prepared | undefined>> => {
    // Variables and files are waited for together: an answer that waited, or a failure, ends the other wait.
    const over = new AbortController();
    const waiting = { waitS: hasFailed ? undefined : waitS, signal: over.signal };
    hasFailed = true;
    const end = () => {
      if (source.client.waited) over.abort();
    };
    const files = pull && source.client.listFiles(source.asked, waiting).finally(end);
    const asked = askVariables(source, recipe, waiting).finally(end);
    const [variables] = await Promise.all([asked, files]).finally(() => over.abort());
    const { waited } = source.client;
    const found = variables === running.from ? running : prepare(source, variables, recipe);
    const written = (await pull?.()) ?? [];
    const isSame = written.length === 0 && Bun.deepEquals(found.env, running.env);
    running = found;
    hasFailed = false;
    return { found: isSame ? undefined : found, waited };
  };
}
