import { type TInteger, Type } from "typebox";
import { example, kindDescriptions, listOf, members, record, time } from "../../kinds/answers.ts";
import { everyKind } from "../../kinds/kind.ts";
import type { EndpointDescription } from "../gates/endpoint.ts";

const { id, name, slug, updatedAt } = members;
export const Organization = record("The organization of a key.", {
  id,
  name,
  slug,
  plan: Type.Enum(["free", "pro"], { type: "string", description: "Only `pro` includes the API." }),
});

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

/** What the description of the API says of each endpoint, by its path. */
export const descriptions: Readonly<Record<string, EndpointDescription>> = {
  "/organization": {
    id: "getOrganization",
    summary: "The organization of the key",
    description: "Answers any valid key, whatever its surfaces and resources.",
    answers: { Organization },
    example: { id: example.id, name: "Acme", slug: "acme", plan: "pro" },
  },
  "/projects": {
    id: "listProjects",
    summary: "The projects that the key reaches",
    description: "Counts are those of the environments that the key reaches.",
    answers: { ProjectSummary, Projects },
    refusals: ["too_many_items"],
    example: { projects: [shown] },
  },
  "/projects/{slug}": {
    id: "getProject",
    summary: "One project",
    description: "A project that the key does not reach is not found.",
    answers: { Project },
    example: {
      ...shown,
      environments: ["production"],
      ...exampleCounts(false),
      createdAt: example.updatedAt,
      updatedAt: example.updatedAt,
    },
  },
  ...kindDescriptions,
};

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
  return Object.fromEntries(Object.keys(countsOf(inLists)).map((name) => [name, 1]));
}
