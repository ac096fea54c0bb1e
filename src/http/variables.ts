import { listVariableNames, readVariables } from "../read/variables.ts";
import { secretsJson, variablesDotenv, variablesJson } from "../render/variables.ts";
import { type Admission, admit } from "./admit.ts";
import { type Exchange, json } from "./exchange.ts";
import { auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseSecretsQuery, parseVariablesQuery, soughtBy } from "./query.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: "variables" };
const names: Admission = { ...values, bucket: "metadata" };
const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

/** GET /projects/{slug}/variables, with or without values. */
export async function getVariables(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, signal, stages } = exchange;
  const isMetadata = isMetadataRead(rawQuery, "metadata_only");
  const sought = soughtBy("variables", slug, rawQuery, !isMetadata);
  const caller = await admit(keyhole.gate, exchange, token, isMetadata ? names : values, sought); // 401 429 403
  const { environment, selection, metadataOnly, format } = parseVariablesQuery(rawQuery); // 400
  if (environment) inScope(caller, environment); // 403
  if (metadataOnly || !environment) {
    const listing = await listVariableNames(keyhole.source, caller, slug, environment, selection, signal, stages); // 404 422 503
    return json(exchange, `{"environment":${JSON.stringify(environment)},"variables":${listing}}`);
  }
  const read = await readVariables(keyhole.source, caller, slug, environment, selection, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "variables.read", read.names);
  const render = format === "env" ? variablesDotenv : variablesJson(environment);
  return released(keyhole, exchange, [entry], read, render); // 422 503, or on record
}

/** GET /secrets, the legacy pull: the variables of an environment as one object. */
export async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, signal, stages } = exchange;
  const sought = soughtBy("variables", undefined, rawQuery, true);
  const caller = await admit(keyhole.gate, exchange, token, secrets, sought); // 401 429 403
  const { project: slug, environment, format } = parseSecretsQuery(rawQuery); // 400
  inScope(caller, environment); // 403
  const read = await readVariables(keyhole.source, caller, slug, environment, { by: "all" }, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "secrets.read", read.names);
  const render = format === "env" ? variablesDotenv : secretsJson(slug, environment);
  return released(keyhole, exchange, [entry], read, render); // 422 503, or on record
}
