import { version } from "../../package.json";
import { describeApi } from "../serve/api/description.ts";
import { write } from "./terminal/terminal.ts";
import { type CommandContext, verb } from "./terminal/verb.ts";

export function openapiCommand(context: CommandContext) {
  return verb(
    "openapi",
    "Print the description of the API: an OpenAPI 3.1 document, also in docs/openapi.json.",
    "keyhole openapi > openapi.json",
  ).action(() => write(context.terminal.stdout, `${JSON.stringify(describeApi(version), undefined, 2)}\n`));
}
