import { Type } from "typebox";
import { parameters, parseQuery } from "../../serve/gates/query.ts";

export const accountsQuery = {
  environment: Type.Optional(parameters.environment),
  metadata_only: parameters.metadataOnly,
};

export function parseAccounts(raw: string, project: string) {
  const { environment, metadata_only } = parseQuery(accountsQuery, raw);
  return { project, environment: environment ?? null, metadataOnly: metadata_only === "true" };
}
