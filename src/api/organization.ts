import { type Admission, admit } from "../gates/admit.ts";
import { type Exchange, json } from "../gates/exchange.ts";
import type { Keyhole } from "../gates/keyhole.ts";
import { parseNoQuery } from "../gates/query.ts";

export const organization: Admission = { bucket: "metadata", surface: null, resource: null };

/** GET /organization: the organization of any valid key. */
export async function getOrganization(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const caller = await admit(keyhole.gate, exchange, token, organization); // 401 429 403
  parseNoQuery(exchange.rawQuery); // 400
  const { id, name, slug, plan } = caller.organization;
  return json(exchange, JSON.stringify({ id, name, slug, plan }));
}
