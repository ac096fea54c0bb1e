import { type TInteger, Type } from "typebox";
import { projects } from "../access/grant.ts";
import { slugPattern } from "../core/names.ts";
import { type Admission, admit, noLookup } from "../gates/admit.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Endpoint } from "../gates/endpoint.ts";
import { type Exchange, json } from "../gates/exchange.ts";
import { noParameters, parseQuery } from "../gates/query.ts";
import { readingOf } from "../gates/read-endpoint.ts";
import { example, listOf, members, record, time } from "../gates/schema.ts";
import { everyKind } from "../kinds/kind.ts";
import { listProjects, readProject } from "./read-projects.ts";

const admission: Admission = { bucket: "metadata", surface: "rest_api", resource: projects };

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

const { id, name, slug, updatedAt } = members;
const summary = { id, name, slug, ...countsOf(true) };
export const ProjectSummary = record("A project in a list.", summary);
const Projects = record("The projects that the key reaches, in byte order of slug.", {
  projects: listOf(ProjectSummary),
});
export const Project = record("A project.", {
  ...summary,
  environments: Type.Array(members.environment, { description: "The environments that the key reaches." }),
  ...countsOf(false),
  createdAt: time("The creation"),
  updatedAt,
});

const shown = { id: example.id, name: "Web shop", slug: "web", ...exampleCounts(true) };
export const endpoints: readonly Endpoint[] = [
  {
    path: "/projects",
    get: getProjects,
    admission,
    query: noParameters,
    id: "listProjects",
    summary: "The projects that the key reaches",
    description: "Counts are those of the environments that the key reaches.",
    answers: { ProjectSummary, Projects },
    refusals: ["too_many_items"],
    example: { projects: [shown] },
  },
  {
    path: "/projects/{slug}",
    get: getProject,
    admission,
    query: noParameters,
    id: "getProject",
    summary: "One project",
    description: "A project that the key does not reach is not found.",
    answers: { Project },
    refusals: [],
    example: {
      ...shown,
      environments: ["production"],
      ...exampleCounts(false),
      createdAt: example.updatedAt,
      updatedAt: example.updatedAt,
    },
  },
];

/** The counts of the kinds that lists of projects show, or of the others. */
function countsOf(inLists: boolean): Record<`${string}Count`, TInteger> {
  const kinds = everyKind.filter(({ isCountedInLists }) => isCountedInLists === inLists);
  return Object.fromEntries(
    kinds.map(({ item, counted }) => {
      const description = `${counted} in the environments that the key reaches.`;
      return [`${item}Count`, Type.Integer({ minimum: 0, description })];
    }),
  );
}

function exampleCounts(inLists: boolean): Record<string, number> {
  return Object.fromEntries(Object.keys(countsOf(inLists)).map((name) => [name, 2]));
}
