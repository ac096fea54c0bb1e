import { Argument } from "@commander-js/extra-typings";
import { environments } from "../core/names.ts";
import { verb } from "./command.ts";

/** A command about one project, which is its first argument. */
export function projectVerb(...description: Parameters<typeof verb>) {
  return verb(...description).argument("<project>", "ORG/PROJECT, or PROJECT if only one organization exists");
}

/** A command about one environment of a project: its first two arguments. */
export function environmentVerb(...description: Parameters<typeof verb>) {
  return projectVerb(...description).addArgument(new Argument("<env>", "the environment").choices(environments));
}
