import type { Admission } from "../../serve/gates/admit.ts";
import type { Endpoint, ListTool } from "../../serve/gates/endpoint.ts";
import { readEndpoint } from "../../serve/gates/read-endpoint.ts";
import { variables } from "./entry.ts";
import { parseSecrets, parseVariables, secretsQuery, variablesQuery } from "./query.ts";
import { listVariables, readVariables } from "./read.ts";
import { secretsJson, variablesDotenv, variablesJson } from "./render.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: variables.resource };
const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

export const endpoints: readonly Endpoint[] = [
  {
    path: "/projects/{slug}/variables",
    ...readEndpoint({
      kind: variables,
      action: "variables.read",
      admission: values,
      metadataFlag: "metadata_only",
      parse: parseVariables,
      isByName: ({ selection }) => selection.by !== "all",
      list: listVariables,
      read: readVariables,
      render: ({ environment, format }) => (format === "env" ? variablesDotenv : variablesJson(environment)),
    }),
    query: variablesQuery,
  },
  {
    path: "/secrets",
    ...readEndpoint({
      kind: variables,
      action: "secrets.read",
      admission: secrets,
      parse: parseSecrets,
      list: listVariables,
      read: readVariables,
      render: ({ project, environment, format }) =>
        format === "env" ? variablesDotenv : secretsJson(project, environment),
    }),
    query: secretsQuery,
  },
];

export const tool: ListTool = {
  description: "List the names of the variables of a project in an environment, and when each changed. Never values.",
  descriptor: variables,
  list: (reading, place) => listVariables(reading, { ...place, selection: { by: "all" } }),
};
