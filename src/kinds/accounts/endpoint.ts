import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, lookupOf, parseAccountsQuery } from "../../gates/query.ts";
import { accounts } from "./entry.ts";
import { listAccountNames, readAccounts } from "./read.ts";
import { accountsJson } from "./render.ts";

export const values: Admission = { bucket: "value", surface: "rest_api", resource: accounts.resource };
const names: Admission = { ...values, bucket: "metadata" };

/** GET /projects/{slug}/accounts, with or without values. */
export async function getAccounts(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadata_only") || ifNoneMatch !== undefined;
  const lookup = lookupOf(accounts.kind, slug, rawQuery, !onlyLists);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? names : values, lookup); // 401 429 403
  const query = parseAccountsQuery(rawQuery); // 400
  const { environment, metadataOnly } = query;
  if (environment) inScope(caller, environment); // 403
  const reading = readingOf(keyhole, exchange, caller);
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["accounts", slug, query], fingerprint);
  const list = () => listAccountNames(reading, slug, environment);
  if (metadataOnly) {
    const { accounts, fingerprint } = await list(); // 404 422 503
    return json(exchange, JSON.stringify({ environment, accounts }), etag(fingerprint));
  }
  const unchanged = await unlessChanged(keyhole, exchange, caller, "value", list, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readAccounts(reading, slug, environment); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "accounts.read", read.names);
  return released(keyhole, exchange, [entry], read, accountsJson(environment), etag(read.fingerprint)); // 503, or on record
}
