import { readVariables } from "../read/variables.ts";
import { renderDotenv } from "../render/dotenv.ts";
import type { Admission } from "./admit.ts";
import { type Exchange, envAnswer, json } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { parseSecretsQuery, soughtBy } from "./query.ts";

const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

/** GET /secrets, the older pull: the same variables as one object. */
export async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const caller = await admitted(keyhole, exchange, token, secrets, soughtBy(undefined, exchange.rawQuery)); // 401 429 403
  const { project: slug, environment, format } = parseSecretsQuery(exchange.rawQuery); // 400
  inScope(caller, environment); // 403
  const read = await readVariables(keyhole.source, caller, slug, environment, { by: "all" }, exchange.stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "secrets.read", read.names);
  if (format === "env") {
    return envAnswer(
      exchange,
      await released(
        keyhole,
        exchange,
        [entry],
        read.held.map((variables) => renderDotenv(variables.list())),
      ),
    ); // 422 503
  }
  const body = read.held.map((variables) => {
    // Written by hand: an object would move names that look like array indices to its front.
    const members = variables.list().map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    return `{"project":${JSON.stringify({ slug })},"environment":"${environment}","secrets":{${members.join(",")}}}`;
  });
  return json(exchange, await released(keyhole, exchange, [entry], body)); // 503, or on record
}
