import type { ListTool } from "../tool.ts";
import { accounts } from "./entry.ts";
import { listAccountNames } from "./read.ts";

export const listAccounts: ListTool = {
  name: "list_accounts",
  description: "List the names of the shared accounts of a project in an environment. Never their values.",
  descriptor: accounts,
  async list(reading, project, environment) {
    const { accounts } = await listAccountNames(reading, project, environment);
    return { environment, accounts };
  },
};
