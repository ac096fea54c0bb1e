import { Type } from "typebox";
import { type Admission, admit } from "../gates/admit.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Endpoint } from "../gates/endpoint.ts";
import { type Exchange, json } from "../gates/exchange.ts";
import { noParameters, parseQuery } from "../gates/query.ts";
import { example, members, record } from "../gates/schema.ts";

const admission: Admission = { bucket: "metadata", surface: null, resource: null };

/** GET /organization: the organization of any valid key. */
async function getOrganization(parts: ApiParts, exchange: Exchange, token: string | undefined) {
  const caller = await admit(parts.gate, exchange, token, admission); // 401 429 403
  parseQuery(noParameters, exchange.rawQuery); // 400
  const { id, name, slug, plan } = caller.organization;
  return json(exchange, JSON.stringify({ id, name, slug, plan }));
}

const { id, name, slug } = members;
export const Organization = record("The organization of a key.", {
  id,
  name,
  slug,
  plan: Type.Enum(["free", "pro"], { type: "string", description: "Only `pro` includes the API." }),
});

export const endpoint: Endpoint = {
  path: "/organization",
  get: getOrganization,
  admission,
  query: noParameters,
  id: "getOrganization",
  summary: "The organization of the key",
  description: "Answers any valid key, whatever its surfaces and resources.",
  answers: { Organization },
  refusals: [],
  example: { id: example.id, name: "Acme", slug: "acme", plan: "pro" },
};
