import { readVariables } from "../read/variables.ts";
import { secretsJson, variablesDotenv } from "../render/variables.ts";
import type { Admission } from "./admit.ts";
import type { Exchange } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { parseSecretsQuery, soughtBy } from "./query.ts";

const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

/** GET /secrets, the legacy pull: the variables of an environment as one object. */
export async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, signal, stages } = exchange;
  const sought = soughtBy("variables", undefined, rawQuery, { values: true, across: false });
  const caller = await admitted(keyhole, exchange, token, secrets, sought); // 401 429 403
  const { project: slug, environment, format } = parseSecretsQuery(rawQuery); // 400
  inScope(caller, environment); // 403
  const read = await readVariables(keyhole.source, caller, slug, environment, { by: "all" }, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "secrets.read", read.names);
  const render = format === "env" ? variablesDotenv : secretsJson(slug, environment);
  return released(keyhole, exchange, [entry], read, render); // 422 503, or on record
}
