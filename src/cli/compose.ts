import { fetchVariables, refuseSteering } from "../client/variables.ts";
import { isVariableName } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { jsonLine } from "../core/visible.ts";
import { counted } from "../core/words/text.ts";
import { choice, input } from "../people/desk/inputs.ts";
import { atMachine, variablesInputs } from "./machine.ts";
import { commandFor, processCommand } from "./terminal/draw.ts";
import { write } from "./terminal/terminal.ts";
import { type CommandContext, verb } from "./terminal/verb.ts";

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
  const about = "Called by Docker Compose for a service with `provider: {type: keyhole}`.";
  const down = verb("down", "Do nothing, because `up` leaves nothing behind.", "keyhole compose down secrets")
    .argument("[service]", "the name of the provider's service")
    .allowUnknownOption()
    .allowExcessArguments()
    .action(() => {});
  return commandFor({ about, rows: [up] }, context)
    .addCommand(down)
    .option("--project-name <name>", "Compose's own project, which Keyhole does not need");
}

const up = processCommand({
  path: "compose up",
  about: "Give the variables of an environment to the services that depend on this one.",
  examples: ["keyhole compose up --project=web --env=production secrets"],
  inputs: {
    ...variablesInputs,
    service: input("<service>", "the name of the provider's service"),
    names: choice(
      "--names <names>",
      "prefixed (default): begin names with the service's; exact: do not (Compose 5.2 and newer)",
      ["prefixed", "exact"],
    ),
  },
  action: async (context, { service, names = "prefixed", allowName, ...options }) => {
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
  },
});

/** A line that Compose reads. */
function toCompose(type: "info" | "setenv" | "rawsetenv", message: string): string {
  return jsonLine({ type, message });
}
