import { Type } from "typebox";
import { isVariableName, itemsMax, type Selection } from "../../core/names.ts";
import { invalidParameter, parameters, parseQuery, text } from "../../serve/gates/query.ts";

/* What a machine may ask about variables. The stand-in for tests of programs (`testing.ts`) takes the same. */

const narrowing = "Needs `environment`, unless `metadata_only=true`.";
export const variablesQuery = {
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
export const secretsQuery = { project, environment, format };

export function parseSecrets(raw: string) {
  const { project, environment, format = "json" } = parseQuery(secretsQuery, raw);
  return { project, environment, selection: { by: "all" } as const, metadataOnly: false, format };
}
