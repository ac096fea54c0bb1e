import { Option } from "@commander-js/extra-typings";
import { fetchVariables, refuseSteering } from "../client/variables.ts";
import { isVariableName } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { jsonLine } from "../core/visible.ts";
import { counted } from "../core/words/text.ts";
import { atMachine, variablesVerb } from "./machine.ts";
import { write } from "./terminal/terminal.ts";
import { type CommandContext, noun, verb } from "./terminal/verb.ts";

/**
 * `keyhole compose …`, which Docker Compose calls for a service with `provider: {type: keyhole}`. It passes the options
 * of the provider as flags, drops stderr, and reads messages of JSON from stdout: `main.ts` sends errors there, too.
 *
 * There is no `compose metadata`: with it, Compose would drop every option that it does not list, and a misspelt `keys`
 * would give a service all variables.
 *
 * @see https://github.com/docker/compose/blob/v5.5.0/docs/extension.md
 */
export function composeCommand(context: CommandContext) {
  const up = variablesVerb(
    "up",
    "Give the variables of an environment to the services that depend on this one.",
    "keyhole compose up --project=web --env=production secrets",
  )
    .argument("<service>", "the name of the provider's service")
    .addOption(
      new Option("--names <names>", "prefixed: begin names with the service's; exact: do not (Compose 5.2 and newer)")
        .choices(["prefixed", "exact"])
        .default("prefixed" as const, "prefixed"),
    )
    .action(async (service, { names, allowName, ...options }) => {
      let sent = Promise.resolve();
      const say = (message: string) => {
        sent = sent.then(() => write(context.terminal.stdout, toCompose("info", message)));
      };
      await atMachine({ ...context, json: false, say }, options, async (machine) => {
        const variables = await fetchVariables(machine, options);
        const prefix = names === "prefixed" ? `${service.toUpperCase()}_` : "";
        const set = variables.map(({ name, value }) => ({ name: `${prefix}${name}`, value }));
        const wrong = set.find(({ name }) => !isVariableName(name));
        if (wrong !== undefined) {
          const words = `Compose would set ${wrong.name}, which cannot be the name of a variable`;
          throw usageProblem(`${words}: rename the service ${service} to letters, digits and _.`);
        }
        refuseSteering(set, allowName);
        const type = names === "prefixed" ? "setenv" : "rawsetenv";
        const messages = variables.map(({ name, value }) => toCompose(type, `${name}=${value}`));
        await sent;
        await write(context.terminal.stdout, messages.join(""));
        const { project, environment } = machine.asked;
        machine.say(`${counted(variables.length, "variable")} of ${project}, ${environment}`);
      });
      await sent;
    });
  const down = verb("down", "Do nothing, because `up` leaves nothing behind.", "keyhole compose down secrets")
    .argument("[service]", "the name of the provider's service")
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {});
  return noun("compose", "Called by Docker Compose for a service with `provider: {type: keyhole}`.", up, down).option(
    "--project-name <name>",
    "Compose's own project, which Keyhole does not need",
  );
}

/** A line that Compose reads. */
function toCompose(type: "info" | "setenv" | "rawsetenv", message: string): string {
  return jsonLine({ type, message });
}
