import { listAccountNames, readAccounts } from "../read/accounts.ts";
import type { Admission } from "./admit.ts";
import { type Exchange, json } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseAccountsQuery } from "./query.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: "accounts" };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/accounts, with or without values. */
export async function getAccounts(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const admission = isMetadataRead(exchange.rawQuery, "metadata_only") ? names : values;
  const caller = await admitted(keyhole, exchange, token, admission); // 401 429 403
  const { environment, metadataOnly } = parseAccountsQuery(exchange.rawQuery); // 400
  if (environment) inScope(caller, environment); // 403
  if (metadataOnly) {
    const accounts = await listAccountNames(keyhole.source, caller, slug, environment, exchange.stages); // 404 422 503
    return json(exchange, JSON.stringify({ environment, accounts }));
  }
  const read = await readAccounts(keyhole.source, caller, slug, environment, exchange.stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
  const body = read.held.map((accounts) => JSON.stringify({ environment, accounts }));
  return json(exchange, await released(keyhole, exchange, [entry], body)); // 503, or on record
}
