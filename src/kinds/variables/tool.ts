import type { ListTool } from "../tool.ts";
import { variables } from "./entry.ts";
import { listVariableNames } from "./read.ts";

export const listVariables: ListTool = {
  name: "list_variables",
  description: "List the names of the variables of a project in an environment, and when each changed. Never values.",
  descriptor: variables,
  async list(reading, project, environment) {
    const { listing } = await listVariableNames(reading, project, environment, { by: "all" });
    return { environment, variables: JSON.parse(listing) };
  },
};
