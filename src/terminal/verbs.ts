import { Argument } from "@commander-js/extra-typings";
import { environments } from "../core/names.ts";
import { verb } from "./command.ts";
import { parseChoices, parseCount } from "./options.ts";

/* Verbs, with the arguments and options that several commands share. */

/** A command about one project, which is its first argument. */
export function projectVerb(...description: Parameters<typeof verb>) {
  return verb(...description).argument("<project>", "ORG/PROJECT, or PROJECT if only one organization exists");
}

/** A command about one environment of a project: its first two arguments. */
export function environmentVerb(...description: Parameters<typeof verb>) {
  return projectVerb(...description).addArgument(new Argument("<env>", "the environment").choices(environments));
}

/** A command about one or several environments of a project: its first two arguments. */
export function environmentsVerb(...description: Parameters<typeof verb>) {
  const several = new Argument("<env>", "the environment, or several, comma-separated").choices(environments);
  return projectVerb(...description).addArgument(several.argParser(parseChoices(environments)));
}

/** A command about one key, trust or request, which its id names. @param noun - what it is */
export function idVerb(noun: string, ...description: Parameters<typeof verb>) {
  return verb(...description).argument("<id>", `the ${noun}'s id, or its first 8 or more characters`);
}

/** The command `list` of keys, trusts or requests. @param noun - what one of them is */
export function listVerb(noun: string, description: string, ...examples: [string, ...string[]]) {
  return verb("list", description, ...examples)
    .option("--org <org>", `only ${noun}s of this organization`)
    .option(...wideOption);
}

/** The option of a command that ends with `answerList`. */
export const wideOption = ["--wide", "show everything; on a narrow terminal, as a block for each entry"] as const;

/** The option of each command that calls `confirm`. */
export const yesOption = ["--yes", "do it without asking"] as const;

/** The option of a command that writes variables: what they looked at must still be there. */
export const ifVersionOption = [
  "--if-version <number>",
  "only if the variables are still at this version, the first that `keyhole history` lists",
  parseCount,
] as const;
