import { readVariables, type Variable } from "../read/variables.ts";
import { renderDotenv } from "../render/dotenv.ts";
import type { Admission } from "./admit.ts";
import { dotenvAnswer, jsonAnswer, listed } from "./body.ts";
import type { Exchange } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { parseSecretsQuery, soughtBy } from "./query.ts";

const secrets: Admission = { bucket: "value", surface: "ci_action", resource: null };

/** GET /secrets, the older pull: the same variables as one object. */
export async function getSecrets(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const caller = await admitted(keyhole, exchange, token, secrets, soughtBy(undefined, exchange.rawQuery)); // 401 429 403
  const { project: slug, environment, format } = parseSecretsQuery(exchange.rawQuery); // 400
  inScope(caller, environment); // 403
  const all = { by: "all" } as const;
  const read = await readVariables(keyhole.source, caller, slug, environment, all, exchange.signal, exchange.stages); // 404 422 503
  const { share } = read;
  try {
    const entry = auditEntry(exchange, caller, read.project, environment, "secrets.read", read.names);
    if (format === "env") {
      const text = read.held.map((variables) => renderDotenv(variables.list()));
      return dotenvAnswer(keyhole, exchange, await released(keyhole, exchange, [entry], text), share); // 422 503
    }
    const before = `{"project":${JSON.stringify({ slug })},"environment":"${environment}","secrets":{`;
    // Written by hand: an object would move names that look like array indices to its front.
    const member = ({ name, value }: Variable) => `${JSON.stringify(name)}:${JSON.stringify(value)}`;
    const body = read.held.map((variables) => listed(share, before, variables.list(), member, "}}"));
    return jsonAnswer(keyhole, exchange, await released(keyhole, exchange, [entry], body), share); // 503, or on record
  } catch (error) {
    share.release();
    throw error;
  }
}
