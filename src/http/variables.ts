import { release } from "../audit/release.ts";
import { listVariableNames, readVariables } from "../read/variables.ts";
import { renderDotenv } from "../render/dotenv.ts";
import type { Admission } from "./admit.ts";
import { type Exchange, envAnswer, json } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole } from "./keyhole.ts";
import { isMetadataRead, parseVariablesQuery } from "./query.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: "variables" };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/variables, with or without values. */
export async function getVariables(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const admission = isMetadataRead(exchange.rawQuery, "metadata_only") ? names : values;
  const caller = await admitted(keyhole, exchange, token, admission); // 401 429 403
  const { environment, selection, metadataOnly, format } = parseVariablesQuery(exchange.rawQuery); // 400
  if (environment) inScope(caller, environment); // 403
  if (metadataOnly || !environment) {
    const found = await listVariableNames(keyhole.source, caller, slug, environment, selection); // 404 422 503
    const variables = found.map(({ name, updatedAt }) => ({ key: name, updatedAt }));
    return json(exchange, JSON.stringify({ environment, variables }));
  }
  const read = await readVariables(keyhole.source, caller, slug, environment, selection); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "variables.read", read.names);
  if (format === "env") {
    return envAnswer(exchange, await release(keyhole.journal, [entry], read.held.map(renderDotenv))); // 422 503
  }
  const body = read.held.map((variables) =>
    JSON.stringify({
      environment,
      variables: variables.map(({ name, value, updatedAt }) => ({ key: name, value, updatedAt })),
    }),
  );
  return json(exchange, await release(keyhole.journal, [entry], body)); // 503, or on record
}
