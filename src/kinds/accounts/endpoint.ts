import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, parseAccountsQuery, soughtBy } from "../../gates/query.ts";
import { listAccountNames, readAccounts } from "./read.ts";
import { accountsJson } from "./render.ts";

export const values: Admission = { bucket: "value", surface: "rest_api", resource: "accounts" };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/accounts, with or without values. */
export async function getAccounts(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, ifNoneMatch, signal, stages } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadata_only") || ifNoneMatch !== undefined;
  const sought = soughtBy("accounts", slug, rawQuery, !onlyLists);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? names : values, sought); // 401 429 403
  const ask = parseAccountsQuery(rawQuery); // 400
  const { environment, metadataOnly } = ask;
  if (environment) inScope(caller, environment); // 403
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["accounts", slug, ask], fingerprint);
  const list = () => listAccountNames(keyhole.source, caller, slug, environment, signal, stages);
  if (metadataOnly) {
    const { accounts, fingerprint } = await list(); // 404 422 503
    return json(exchange, JSON.stringify({ environment, accounts }), etag(fingerprint));
  }
  const unchanged = await unlessChanged(keyhole, exchange, caller, "value", list, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readAccounts(keyhole.source, caller, slug, environment, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
  return released(keyhole, exchange, [entry], read, accountsJson(environment), etag(read.fingerprint)); // 503, or on record
}
