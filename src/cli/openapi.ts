import { version } from "../../package.json";
import { describeApi } from "../serve/api/description.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { write } from "./terminal/terminal.ts";

const print = processCommand({
  path: "openapi",
  about: "Print the description of the API: an OpenAPI 3.1 document, also in docs/openapi.json.",
  examples: ["keyhole openapi > openapi.json"],
  inputs: {},
  action: ({ terminal }) => write(terminal.stdout, `${JSON.stringify(describeApi(version), undefined, 2)}\n`),
});

export const openapi: CommandGroup = { rows: [print] };
