import { Type } from "typebox";
import type { Endpoint, ListTool } from "../../gates/endpoint.ts";
import { parseQuery } from "../../gates/query.ts";
import { readEndpoint } from "../../gates/read-endpoint.ts";
import { example, listOf, members, parameters, record } from "../../gates/schema.ts";
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

export const Account = record("A shared account.", {
  name: members.name,
  environments: members.environments,
  updatedAt: members.updatedAt,
  values: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Fields such as `password`. Absent from a metadata read.",
    }),
  ),
});
export const Accounts = record("Shared accounts in byte order of name.", {
  environment: members.queriedEnvironment,
  accounts: listOf(Account),
});

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
    id: "listAccounts",
    summary: "Shared accounts, or only their names",
    description: "Without `environment`, the accounts of every environment that the key reaches.",
    answers: { Account, Accounts },
    refusals: ["too_many_items"],
    example: {
      environment: "production",
      accounts: [
        {
          name: "mail",
          environments: ["production"],
          updatedAt: example.updatedAt,
          values: { user: "shop", password: "made-up" },
        },
      ],
    },
  },
];

export const tool: ListTool = {
  description: "List the names of the shared accounts of a project in an environment. Never their values.",
  descriptor: accounts,
  list: listAccounts,
};
