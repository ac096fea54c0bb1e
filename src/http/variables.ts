import { listVariableNames, readVariables } from "../read/variables.ts";
import { renderDotenv } from "../render/dotenv.ts";
import type { Admission } from "./admit.ts";
import { dotenvAnswer, enclosed, isWhole, jsonAnswer } from "./body.ts";
import { type Exchange, json, wholeBytesMax } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseVariablesQuery, soughtBy } from "./query.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: "variables" };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/variables, with or without values. */
export async function getVariables(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const admission = isMetadataRead(exchange.rawQuery, "metadata_only") ? names : values;
  const sought = soughtBy(slug, exchange.rawQuery);
  const caller = await admitted(keyhole, exchange, token, admission, sought); // 401 429 403
  const { environment, selection, metadataOnly, format } = parseVariablesQuery(exchange.rawQuery); // 400
  if (environment) inScope(caller, environment); // 403
  if (metadataOnly || !environment) {
    const listing = await listVariableNames(keyhole.source, caller, slug, environment, selection, exchange.stages); // 404 422 503
    return json(exchange, `{"environment":${JSON.stringify(environment)},"variables":${listing}}`);
  }
  const read = await readVariables(
    keyhole.source,
    caller,
    slug,
    environment,
    selection,
    exchange.signal,
    exchange.stages,
  ); // 404 422 503
  const { share } = read;
  try {
    const entry = auditEntry(exchange, caller, read.project, environment, "variables.read", read.names);
    if (format === "env") {
      const text = read.held.map((variables) => renderDotenv(variables.list()));
      return dotenvAnswer(keyhole, exchange, await released(keyhole, exchange, [entry], text), share); // 422 503
    }
    const before = `{"environment":"${environment}","variables":`;
    const body = read.held.map((variables) =>
      isWhole(share) ? joined(before, variables.array(), "}") : enclosed(before, variables.pieces(), "}"),
    );
    return jsonAnswer(keyhole, exchange, await released(keyhole, exchange, [entry], body), share); // 503, or on record
  } catch (error) {
    share.release();
    throw error;
  }
}

/** As Bun sends it with the least work: text where that is small, else bytes. Those of the array are zeroed. */
function joined(before: string, array: string | Buffer, after: string): string | Buffer {
  if (typeof array === "string") return `${before}${array}${after}`;
  const whole =
    array.length > wholeBytesMax
      ? Buffer.concat([Buffer.from(before), array, Buffer.from(after)])
      : `${before}${array.toString("utf8")}${after}`;
  array.fill(0);
  return whole;
}
