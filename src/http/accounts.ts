import { type Account, listAccountNames, readAccounts } from "../read/accounts.ts";
import type { Admission } from "./admit.ts";
import { jsonAnswer, listed } from "./body.ts";
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
  const read = await readAccounts(keyhole.source, caller, slug, environment, exchange.signal, exchange.stages); // 404 422 503
  const { share } = read;
  try {
    const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
    const before = `{"environment":${JSON.stringify(environment)},"accounts":[`;
    const written = (account: Account) => JSON.stringify(account);
    const body = read.held.map((accounts) => listed(share, before, accounts, written, "]}"));
    return jsonAnswer(keyhole, exchange, await released(keyhole, exchange, [entry], body), share); // 503, or on record
  } catch (error) {
    share.release();
    throw error;
  }
}
