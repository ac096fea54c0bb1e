import { Type } from "typebox";
import { etagOf } from "../../access/etag.ts";
import { isVariableName, itemsMax, type Selection } from "../../core/names.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import type { Endpoint } from "../../gates/endpoint.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { invalidParameter, isMetadataRead, lookupOf, parseQuery, querySchema } from "../../gates/query.ts";
import { example, listOf, members, parameters, queriedProject, record, text } from "../../gates/schema.ts";
import { variables } from "./entry.ts";
import { listVariableNames, readVariables } from "./read.ts";
import { secretsJson, variablesDotenv, variablesJson } from "./render.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: variables.resource };
const names: Admission = { ...values, bucket: "metadata" };
const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };
const secretsIfChanged: Admission = { ...secrets, bucket: "metadata" };

const narrowing = "Needs `environment`, unless `metadata_only=true`.";
const variablesQuery = querySchema({
  environment: Type.Optional(parameters.environment),
  keys: Type.Optional(text(`Exact names with commas between them, at most ${itemsMax}. ${narrowing}`)),
  prefix: Type.Optional(text(`What names must begin with. ${narrowing}`)),
  metadata_only: parameters.metadataOnly,
  format: parameters.format,
});

/** GET /projects/{slug}/variables, with or without values. */
async function getVariables(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadata_only") || ifNoneMatch !== undefined;
  const lookup = lookupOf(variables, slug, rawQuery, !onlyLists);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? names : values, lookup); // 401 429 403
  const query = parseVariables(rawQuery); // 400
  const { environment, selection, metadataOnly, format } = query;
  if (environment) inScope(caller, environment); // 403
  const reading = readingOf(keyhole, exchange, caller);
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["variables", slug, query], fingerprint);
  const list = () => listVariableNames(reading, slug, environment, selection);
  if (metadataOnly || !environment) {
    const { listing, fingerprint } = await list(); // 404 422 503
    const body = `{"environment":${JSON.stringify(environment)},"variables":${listing}}`;
    return json(exchange, body, etag(fingerprint));
  }
  const unchanged = await unlessChanged(keyhole, exchange, caller, "value", list, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readVariables(reading, slug, environment, selection); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "variables.read", read.names);
  const render = format === "env" ? variablesDotenv : variablesJson(environment);
  return released(keyhole, exchange, [entry], read, render, etag(read.fingerprint)); // 422 503, or on record
}

/** The parsed query. @throws Fault `invalid_request` */
export function parseVariables(raw: string) {
  const { environment, keys, prefix, metadata_only, format = "json" } = parseQuery(variablesQuery, raw);
  const metadataOnly = metadata_only === "true";
  if (environment === undefined && !metadataOnly) throw invalidParameter("environment", "is required");
  if (format === "env" && metadataOnly) throw invalidParameter("format", "must not be env with metadata_only=true");
  return { environment: environment ?? null, selection: selectionOf(keys, prefix), metadataOnly, format };
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
const secretsQuery = querySchema({ project, environment, format });

/** GET /secrets, the legacy pull: the variables of an environment as one object. */
async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, ifNoneMatch } = exchange;
  const isConditional = ifNoneMatch !== undefined;
  const lookup = lookupOf(variables, undefined, rawQuery, !isConditional);
  const admission = isConditional ? secretsIfChanged : secrets;
  const caller = await admit(keyhole.gate, exchange, token, admission, lookup); // 401 429 403
  const query = parseSecrets(rawQuery); // 400
  const { project: slug, environment, format } = query;
  inScope(caller, environment); // 403
  const reading = readingOf(keyhole, exchange, caller);
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["secrets", query], fingerprint);
  const list = () => listVariableNames(reading, slug, environment, { by: "all" });
  const unchanged = await unlessChanged(keyhole, exchange, caller, "value", list, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readVariables(reading, slug, environment, { by: "all" }); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "secrets.read", read.names);
  const render = format === "env" ? variablesDotenv : secretsJson(slug, environment);
  return released(keyhole, exchange, [entry], read, render, etag(read.fingerprint)); // 422 503, or on record
}

/** The parsed query. @throws Fault `invalid_request` */
export function parseSecrets(raw: string) {
  const { project, environment, format = "json" } = parseQuery(secretsQuery, raw);
  return { project, environment, format };
}

export const Variable = record("An environment variable.", {
  key: Type.String({ description: "Its name." }),
  value: Type.Optional(Type.String({ description: "Absent from a metadata read." })),
  updatedAt: members.updatedAt,
});
export const Variables = record("Variables in byte order of name.", {
  environment: members.queriedEnvironment,
  variables: listOf(Variable),
});
const Secrets = record("All variables of an environment as one object.", {
  project: queriedProject,
  environment: members.environment,
  secrets: Type.Record(Type.String(), Type.String(), { description: "Values by name." }),
});

export const endpoints: readonly Endpoint[] = [
  {
    path: "/projects/{slug}/variables",
    get: getVariables,
    admission: values,
    query: variablesQuery,
    id: "listVariables",
    summary: "The variables of an environment, or only their names",
    description:
      "`environment` is required unless `metadata_only=true`. Without it, the answer has the distinct names over the environments that the key reaches, each with its latest change. A name that does not exist is not in the answer. `format=env` cannot be combined with `metadata_only=true`.",
    answers: { Variable, Variables },
    refusals: ["too_many_items"],
    example: {
      environment: "production",
      variables: [{ key: "API_TOKEN", value: "made-up", updatedAt: example.updatedAt }],
    },
  },
  {
    path: "/secrets",
    get: getSecrets,
    admission: secrets,
    query: secretsQuery,
    id: "getSecrets",
    summary: "All variables of an environment as one object (legacy)",
    description: "For CI actions made before `/projects/{slug}/variables`.",
    answers: { Secrets },
    refusals: ["too_many_items"],
    example: { project: { slug: "web" }, environment: "production", secrets: { API_TOKEN: "made-up" } },
  },
];
