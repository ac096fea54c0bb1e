import { type TProperties, Type } from "typebox";
import { type Environment, environments, itemsMax, slugRule } from "../core/names.ts";

/*
 * Words of the schemas: those that judge queries, and those that describe answers. Answers with values are joined from
 * text that is stored as JSON, so no schema builds them. Instead, the tests compare every answer with the description.
 */

/** One of some texts. */
export function oneOf<const T extends string>(values: readonly T[], description: string) {
  return Type.Enum([...values], { type: "string", description });
}

/** A text that is not empty. */
export function text(description: string) {
  return Type.String({ minLength: 1, description });
}

/** Parameters that several endpoints have. */
const namesOnly = "With `true`, the answer has no values, and the request is charged to the metadata bucket.";
export const parameters = {
  project: text("The slug of a project."),
  environment: oneOf(environments, "The environment to read."),
  format: Type.Optional(oneOf(["json", "env"], "The form of the answer; `env` is dotenv text. Default: `json`.")),
  metadataOnly: Type.Optional(oneOf(["true", "false"], namesOnly)),
  metadataOnlyOrOne: Type.Optional(oneOf(["true", "1", "false", "0"], namesOnly.replace("`true`", "`true` or `1`"))),
};

/** Members that several answers have. */
const environment = oneOf(environments, "An environment.");
export const members = {
  environment,
  /** The environments of an item. */
  environments: Type.Array(environment, { description: "The environments that have it and that the key reaches." }),
  /** The environment of an answer that may be about all of them. */
  queriedEnvironment: Type.Unsafe<Environment | null>({
    type: ["string", "null"],
    enum: [...environments, null],
    description: "The environment that was asked for; null if none was.",
  }),
  slug: Type.String({ pattern: slugRule, description: "The name in paths and parameters." }),
  id: Type.String({ format: "uuid", description: "Never changes." }),
  name: Type.String({ description: "For people." }),
  updatedAt: time("The last change"),
};

/** A moment. @param description - without its unit */
export function time(description: string) {
  return Type.Integer({
    format: "int64",
    minimum: 0,
    description: `${description}, in milliseconds since 1970 (UTC).`,
  });
}

/** An object that has exactly these members. */
export function record<P extends TProperties>(description: string, properties: P) {
  return Type.Object(properties, { description, additionalProperties: false });
}

/** The project of an answer that is not below its path. */
export const queriedProject = record("The project that was asked for.", { slug: members.slug });

/** A list of items, as many as an answer may hold. */
export function listOf<T extends Parameters<typeof Type.Array>[0]>(item: T) {
  return Type.Array(item, { maxItems: itemsMax });
}

/** What examples show. */
export const example = { updatedAt: 1_767_225_600_000, id: "0199a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b" };
