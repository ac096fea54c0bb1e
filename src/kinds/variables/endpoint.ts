import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, lookupOf, parseSecretsQuery, parseVariablesQuery } from "../../gates/query.ts";
import { variables } from "./entry.ts";
import { listVariableNames, readVariables } from "./read.ts";
import { secretsJson, variablesDotenv, variablesJson } from "./render.ts";

export const values: Admission = { bucket: "value", surface: "rest_api", resource: variables.resource };
const names: Admission = { ...values, bucket: "metadata" };
export const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };
const secretsIfChanged: Admission = { ...secrets, bucket: "metadata" };

/** GET /projects/{slug}/variables, with or without values. */
export async function getVariables(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadata_only") || ifNoneMatch !== undefined;
  const lookup = lookupOf(variables.kind, slug, rawQuery, !onlyLists);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? names : values, lookup); // 401 429 403
  const query = parseVariablesQuery(rawQuery); // 400
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

/** GET /secrets, the legacy pull: the variables of an environment as one object. */
export async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, ifNoneMatch } = exchange;
  const isConditional = ifNoneMatch !== undefined;
  const lookup = lookupOf(variables.kind, undefined, rawQuery, !isConditional);
  const admission = isConditional ? secretsIfChanged : secrets;
  const caller = await admit(keyhole.gate, exchange, token, admission, lookup); // 401 429 403
  const query = parseSecretsQuery(rawQuery); // 400
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
