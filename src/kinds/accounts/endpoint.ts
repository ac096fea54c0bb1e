import { Type } from "typebox";
import type { Endpoint, ListTool } from "../../gates/endpoint.ts";
import { parameters, parseQuery } from "../../gates/query.ts";
import { readEndpoint } from "../../gates/read-endpoint.ts";
import { accounts } from "./entry.ts";
import { listAccounts, readAccounts } from "./read.ts";
import { accountsJson } from "./render.ts";

const accountsQuery = {
  environment: Type.Optional(parameters.environment),
  metadata_only: parameters.metadataOnly,
};

function parseAccounts(raw: string, project: string) {
  const { environment, metadata_only } = parseQuery(accountsQuery, raw);
  return { project, environment: environment ?? null, metadataOnly: metadata_only === "true" };
}

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
