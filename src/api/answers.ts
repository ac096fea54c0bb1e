import { type Static, type TProperties, Type } from "typebox";
import { contentBytesMax, type Environment, environments, itemsMax, slugRule } from "../core/names.ts";

/*
 * What answers look like. The description of the API (`description.ts`) is made of these, and the tests compare every
 * answer with them. Answers with values are joined from text that is stored as JSON, so no schema builds them.
 */

const environment = Type.Enum([...environments], { type: "string", description: "An environment." });
const reached = Type.Array(environment, {
  description: "The environments that have it and that the key reaches.",
});
const asked = Type.Unsafe<Environment | null>({
  type: ["string", "null"],
  enum: [...environments, null],
  description: "The environment that was asked for; null if none was.",
});
const slug = Type.String({ pattern: slugRule, description: "The name in paths and parameters." });
const id = Type.String({ format: "uuid", description: "Never changes." });
const name = Type.String({ description: "For people." });
const time = (description: string) =>
  Type.Integer({ format: "int64", minimum: 0, description: `${description}, in milliseconds since 1970 (UTC).` });
const updatedAt = time("The last change");
const count = (description: string) => Type.Integer({ minimum: 0, description });

const summary = {
  id,
  name,
  slug,
  variableCount: count("Distinct names of variables in the environments that the key reaches."),
  accountCount: count("Accounts in the environments that the key reaches."),
};

export const Organization = record("The organization of a key.", {
  id,
  name,
  slug,
  plan: Type.Enum(["free", "pro"], { type: "string", description: "Only `pro` includes the API." }),
});
export const ProjectSummary = record("A project in a list.", summary);
export const Projects = record("The projects that the key reaches, in byte order of slug.", {
  projects: Type.Array(ProjectSummary, { maxItems: itemsMax }),
});
export const Project = record("A project.", {
  ...summary,
  environments: Type.Array(environment, { description: "The environments that the key reaches." }),
  fileCount: count("Secret files in the environments that the key reaches."),
  createdAt: time("The creation"),
  updatedAt,
});

export const Variable = record("An environment variable.", {
  key: Type.String({ description: "Its name." }),
  value: Type.Optional(Type.String({ description: "Absent from a metadata read." })),
  updatedAt,
});
export const Variables = record("Variables in byte order of name.", {
  environment: asked,
  variables: Type.Array(Variable, { maxItems: itemsMax }),
});

export const Account = record("A shared account.", {
  name,
  environments: reached,
  updatedAt,
  values: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Fields such as `password`. Absent from a metadata read.",
    }),
  ),
});
export const Accounts = record("Shared accounts in byte order of name.", {
  environment: asked,
  accounts: Type.Array(Account, { maxItems: itemsMax }),
});

export const SecretFile = record("A secret file.", {
  name,
  path: Type.String({ description: "Where a client puts it: relative, with `/` between its parts." }),
  mode: Type.Enum(["0600", "0400"], { type: "string", description: "The permissions that it gets." }),
  size: Type.Integer({ minimum: 0, maximum: contentBytesMax, description: "Bytes of the content." }),
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the content, in hex." }),
  contentType: Type.String({ description: "A media type." }),
  environments: reached,
  updatedAt,
  content: Type.Optional(
    Type.String({ format: "byte", description: "In base64 with padding. Absent from a metadata read." }),
  ),
});
export const Files = record("Secret files in byte order of path.", {
  project: record("The project that was asked for.", { slug }),
  environment,
  files: Type.Array(SecretFile, { maxItems: itemsMax }),
});

export const Secrets = record("All variables of an environment as one object.", {
  project: record("The project that was asked for.", { slug }),
  environment,
  secrets: Type.Record(Type.String(), Type.String(), { description: "Values by name." }),
});

export type Organization = Static<typeof Organization>;
export type ProjectSummary = Static<typeof ProjectSummary>;
export type Project = Static<typeof Project>;

/** An object that has exactly these members. */
function record<P extends TProperties>(description: string, properties: P) {
  return Type.Object(properties, { description, additionalProperties: false });
}
