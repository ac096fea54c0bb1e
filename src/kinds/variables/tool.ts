import type { ListTool } from "../tool.ts";
import { variables } from "./entry.ts";
import { listVariables as list } from "./read.ts";

export const listVariables: ListTool = {
  name: "list_variables",
  description: "List the names of the variables of a project in an environment, and when each changed. Never values.",
  descriptor: variables,
  list: (reading, place) => list(reading, { ...place, selection: { by: "all" } }),
};
