import { slugPattern } from "../../core/names.ts";
import { projects } from "../access/grant.ts";
import { type Admission, admit, noLookup } from "../gates/admit.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Endpoint } from "../gates/endpoint.ts";
import { type Exchange, json } from "../gates/exchange.ts";
import { noParameters, parseQuery } from "../gates/query.ts";
import { readingOf } from "../gates/read-endpoint.ts";
import { listProjects, readProject } from "./read-projects.ts";

const anyKey: Admission = { bucket: "metadata", surface: null, resource: null };
const admission: Admission = { bucket: "metadata", surface: "rest_api", resource: projects };

/** GET /organization: the organization of any valid key. */
async function getOrganization(parts: ApiParts, exchange: Exchange, token: string | undefined) {
  const caller = await admit(parts.gate, exchange, token, anyKey); // 401 429 403
  parseQuery(noParameters, exchange.rawQuery); // 400
  const { id, name, slug, plan } = caller.organization;
  return json(exchange, JSON.stringify({ id, name, slug, plan }));
}

/** GET /projects: those in the key's scope; an empty list if there are none. */
async function getProjects(parts: ApiParts, exchange: Exchange, token: string | undefined) {
  const caller = await admit(parts.gate, exchange, token, admission); // 401 429 403
  parseQuery(noParameters, exchange.rawQuery); // 400
  const found = await listProjects(readingOf(parts, exchange, caller)); // 422 503
  return json(exchange, JSON.stringify({ projects: found }));
}

/** GET /projects/{slug}. */
async function getProject(parts: ApiParts, exchange: Exchange, token: string | undefined, slug: string) {
  const lookup = { ...noLookup, slug: slugPattern.test(slug) ? slug : "" };
  const caller = await admit(parts.gate, exchange, token, admission, lookup); // 401 429 403
  parseQuery(noParameters, exchange.rawQuery); // 400
  const project = await readProject(readingOf(parts, exchange, caller), slug); // 404 503
  return json(exchange, JSON.stringify(project));
}

export const endpoints: readonly Endpoint[] = [
  { path: "/organization", get: getOrganization, admission: anyKey, query: noParameters },
  { path: "/projects", get: getProjects, admission, query: noParameters },
  { path: "/projects/{slug}", get: getProject, admission, query: noParameters },
];
