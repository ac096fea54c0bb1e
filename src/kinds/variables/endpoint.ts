import { Type } from "typebox";
import { isVariableName, itemsMax, type Selection } from "../../core/names.ts";
import type { Admission } from "../../gates/admit.ts";
import type { Endpoint, ListTool } from "../../gates/endpoint.ts";
import { invalidParameter, parameters, parseQuery, text } from "../../gates/query.ts";
import { readEndpoint } from "../../gates/read-endpoint.ts";
import { variables } from "./entry.ts";
import { listVariables, readVariables } from "./read.ts";
import { secretsJson, variablesDotenv, variablesJson } from "./render.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: variables.resource };
const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

const narrowing = "Needs `environment`, unless `metadata_only=true`.";
const variablesQuery = {
  environment: Type.Optional(parameters.environment),
  keys: Type.Optional(text(`Exact names with commas between them, at most ${itemsMax}. ${narrowing}`)),
  prefix: Type.Optional(text(`What names must begin with. ${narrowing}`)),
  metadata_only: parameters.metadataOnly,
  format: parameters.format,
};

export function parseVariables(raw: string, project: string) {
  const { environment, keys, prefix, metadata_only, format = "json" } = parseQuery(variablesQuery, raw);
  const metadataOnly = metadata_only === "true";
  if (environment === undefined && !metadataOnly) throw invalidParameter("environment", "is required");
  if (format === "env" && metadataOnly) throw invalidParameter("format", "must not be env with metadata_only=true");
  return { project, environment: environment ?? null, selection: selectionOf(keys, prefix), metadataOnly, format };
}

function selectionOf(keys: string | undefined, prefix: string | undefined): Selection {
  if (keys !== undefined) {
    const names = keys.split(",");
    if (names.length > itemsMax) throw invalidParameter("keys", `may hold at most ${itemsMax} names`);
    if (names.includes("")) throw invalidParameter("keys", "has an empty name");
    // No variable can have another name, and PostgreSQL would refuse some texts, such as one with a NUL.
    const possible = names.filter((name) => isVariableName(name) && name.startsWith(prefix ?? ""));
    return { by: "names", names: [...new Set(possible)].sort() };
  }
  if (prefix === undefined) return { by: "all" };
  return /^[A-Za-z0-9_]+$/.test(prefix) ? { by: "prefix", prefix } : { by: "names", names: [] };
}

const { project, environment, format } = parameters;
const secretsQuery = { project, environment, format };

export function parseSecrets(raw: string) {
  const { project, environment, format = "json" } = parseQuery(secretsQuery, raw);
  return { project, environment, selection: { by: "all" } as const, metadataOnly: false, format };
}

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
