import type { ListTool } from "../tool.ts";
import { accounts } from "./entry.ts";
import { listAccounts as list } from "./read.ts";

export const listAccounts: ListTool = {
  name: "list_accounts",
  description: "List the names of the shared accounts of a project in an environment. Never their values.",
  descriptor: accounts,
  list,
};
