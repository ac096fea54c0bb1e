import { listAccountNames, readAccounts } from "../read/accounts.ts";
import { accountsJson } from "../render/accounts.ts";
import { type Admission, admit } from "./admit.ts";
import { type Exchange, json } from "./exchange.ts";
import { auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseAccountsQuery, soughtBy } from "./query.ts";

const values: Admission = { bucket: "value", surface: "rest_api", resource: "accounts" };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/accounts, with or without values. */
export async function getAccounts(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, signal, stages } = exchange;
  const isMetadata = isMetadataRead(rawQuery, "metadata_only");
  const sought = soughtBy("accounts", slug, rawQuery, !isMetadata);
  const caller = await admit(keyhole.gate, exchange, token, isMetadata ? names : values, sought); // 401 429 403
  const { environment, metadataOnly } = parseAccountsQuery(rawQuery); // 400
  if (environment) inScope(caller, environment); // 403
  if (metadataOnly) {
    const accounts = await listAccountNames(keyhole.source, caller, slug, environment, signal, stages); // 404 422 503
    return json(exchange, JSON.stringify({ environment, accounts }));
  }
  const read = await readAccounts(keyhole.source, caller, slug, environment, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
  return released(keyhole, exchange, [entry], read, accountsJson(environment)); // 503, or on record
}
