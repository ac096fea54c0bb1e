import { type TProperties, Type } from "typebox";
import { contentBytesMax, type Environment, environments, itemsMax, slugRule } from "../core/names.ts";
import type { EndpointDescription } from "../serve/gates/endpoint.ts";
import { oneOf } from "../serve/gates/query.ts";

/*
 * What the description of the API says of the kinds' endpoints. A server does not load it: answers with values are
 * joined from text that is stored as JSON, so no schema builds them. The tests compare every answer with it.
 */

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

export const Variable = record("An environment variable.", {
  key: Type.String({ description: "Its name." }),
  value: Type.Optional(Type.String({ description: "Absent from a metadata read." })),
  updatedAt: members.updatedAt,
});
export const Variables = record("Variables in byte order of name.", {
  environment: members.queriedEnvironment,
  variables: listOf(Variable),
});
const Secrets = record("All variables of an environment as one object.", {
  project: queriedProject,
  environment: members.environment,
  secrets: Type.Record(Type.String(), Type.String(), { description: "Values by name." }),
});

export const Account = record("A shared account.", {
  name: members.name,
  environments: members.environments,
  updatedAt: members.updatedAt,
  values: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: "Fields such as `password`. Absent from a metadata read.",
    }),
  ),
});
export const Accounts = record("Shared accounts in byte order of name.", {
  environment: members.queriedEnvironment,
  accounts: listOf(Account),
});

export const SecretFile = record("A secret file.", {
  name: members.name,
  path: Type.String({ description: "Where a client puts it: relative, with `/` between its parts." }),
  mode: Type.Enum(["0600", "0400"], { type: "string", description: "The permissions that it gets." }),
  size: Type.Integer({ minimum: 0, maximum: contentBytesMax, description: "Bytes of the content." }),
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the content, in hex." }),
  contentType: Type.String({ description: "A media type." }),
  environments: members.environments,
  updatedAt: members.updatedAt,
  content: Type.Optional(
    Type.String({ format: "byte", description: "In base64 with padding. Absent from a metadata read." }),
  ),
});
export const Files = record("Secret files in byte order of path.", {
  project: queriedProject,
  environment: members.environment,
  files: listOf(SecretFile),
});

/** By the path of the endpoint. */
export const kindDescriptions: Readonly<Record<string, EndpointDescription>> = {
  "/projects/{slug}/variables": {
    id: "listVariables",
    summary: "The variables of an environment, or only their names",
    description:
      "`environment` is required unless `metadata_only=true`. Without it, the answer has the distinct names over the environments that the key reaches, each with its latest change. A name that does not exist is not in the answer. `format=env` cannot be combined with `metadata_only=true`.",
    answers: { Variable, Variables },
    refusals: ["too_many_items"],
    example: {
      environment: "production",
      variables: [{ key: "API_TOKEN", value: "made-up", updatedAt: example.updatedAt }],
    },
  },
  "/secrets": {
    id: "getSecrets",
    summary: "All variables of an environment as one object (legacy)",
    description: "For CI actions made before `/projects/{slug}/variables`.",
    answers: { Secrets },
    refusals: ["too_many_items"],
    example: { project: { slug: "web" }, environment: "production", secrets: { API_TOKEN: "made-up" } },
  },
  "/projects/{slug}/accounts": {
    id: "listAccounts",
    summary: "Shared accounts, or only their names",
    description: "Without `environment`, the accounts of every environment that the key reaches.",
    answers: { Account, Accounts },
    refusals: ["too_many_items"],
    example: {
      environment: "production",
      accounts: [
        {
          name: "mail",
          environments: ["production"],
          updatedAt: example.updatedAt,
          values: { user: "shop", password: "made-up" },
        },
      ],
    },
  },
  "/files": {
    id: "listFiles",
    summary: "Secret files with their content, or only their metadata",
    description: "The rule of 1000 files counts all files of the project, whatever is asked for.",
    answers: { SecretFile, Files },
    refusals: ["too_many_items", "content_too_large"],
    example: {
      project: { slug: "web" },
      environment: "production",
      files: [
        {
          name: "greeting",
          path: "etc/greeting.txt",
          mode: "0600",
          size: 6,
          sha256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
          contentType: "text/plain",
          environments: ["production"],
          updatedAt: example.updatedAt,
          content: "aGVsbG8K",
        },
      ],
    },
  },
};
