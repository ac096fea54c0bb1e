import type { Endpoint, ListTool } from "../../serve/gates/endpoint.ts";
import { readEndpoint } from "../../serve/gates/read-endpoint.ts";
import { accounts } from "./entry.ts";
import { accountsQuery, parseAccounts } from "./query.ts";
import { listAccounts, readAccounts } from "./read.ts";
import { accountsJson } from "./render.ts";

export const endpoints: readonly Endpoint[] = [
  {
    path: "/projects/{slug}/accounts",
    ...readEndpoint({
      kind: accounts,
      action: "accounts.read",
      admission: { bucket: "value", surface: "rest_api", resource: accounts.resource },
      metadataFlag: "metadata_only",
      parse: parseAccounts,
      list: listAccounts,
      read: readAccounts,
      render: ({ environment }) => accountsJson(environment),
    }),
    query: accountsQuery,
  },
];

export const tool: ListTool = {
  description: "List the names of the shared accounts of a project in an environment. Never their values.",
  descriptor: accounts,
  list: listAccounts,
};
