import { projects } from "../access/grant.ts";
import { slugPattern } from "../core/names.ts";
import { type Admission, admit, noLookup } from "../gates/admit.ts";
import { type Exchange, json } from "../gates/exchange.ts";
import { type Keyhole, readingOf } from "../gates/keyhole.ts";
import { parseNoQuery } from "../gates/query.ts";
import { listProjects, readProject } from "./read-projects.ts";

export const admission: Admission = { bucket: "metadata", surface: "rest_api", resource: projects };

/** GET /projects: those in the key's scope; an empty list if there are none. */
export async function getProjects(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const caller = await admit(keyhole.gate, exchange, token, admission); // 401 429 403
  parseNoQuery(exchange.rawQuery); // 400
  const found = await listProjects(readingOf(keyhole, exchange, caller)); // 422 503
  return json(exchange, JSON.stringify({ projects: found }));
}

/** GET /projects/{slug}. */
export async function getProject(keyhole: Keyhole, exchange: Exchange, token: string | undefined, slug: string) {
  const lookup = { ...noLookup, slug: slugPattern.test(slug) ? slug : "" };
  const caller = await admit(keyhole.gate, exchange, token, admission, lookup); // 401 429 403
  parseNoQuery(exchange.rawQuery); // 400
  const project = await readProject(readingOf(keyhole, exchange, caller), slug); // 404 503
  return json(exchange, JSON.stringify(project));
}
