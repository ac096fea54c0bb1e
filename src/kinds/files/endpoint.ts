import { Type } from "typebox";
import { contentBytesMax, itemsMax } from "../../core/names.ts";
import type { Endpoint, ListTool } from "../../gates/endpoint.ts";
import { parseQuery } from "../../gates/query.ts";
import { readEndpoint } from "../../gates/read-endpoint.ts";
import { example, listOf, members, parameters, queriedProject, record } from "../../gates/schema.ts";
import { files } from "./entry.ts";
import { fingerprintFiles, listFiles, readFiles } from "./read.ts";
import { filesJson } from "./render.ts";

const filesQuery = {
  project: parameters.project,
  environment: parameters.environment,
  metadataOnly: parameters.metadataOnlyOrOne,
  path: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: itemsMax,
      description: `The exact path of a file. May be repeated, up to ${itemsMax} times, as long as the address and the headers together stay below 16 KiB: about 250 paths of 50 characters. Without it, all files are read.`,
    }),
  ),
};

export function parseFiles(raw: string) {
  const { project, environment, metadataOnly, path } = parseQuery(filesQuery, raw);
  const paths = path && [...new Set(path)].sort();
  return { project, environment, metadataOnly: metadataOnly === "true" || metadataOnly === "1", paths };
}

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

export const endpoints: readonly Endpoint[] = [
  {
    path: "/files",
    ...readEndpoint({
      kind: files,
      action: "file.read",
      admission: { bucket: "content", surface: "rest_api", resource: files.resource },
      metadataFlag: "metadataOnly",
      parse: parseFiles,
      isByName: ({ paths }) => paths !== undefined,
      list: listFiles,
      find: fingerprintFiles,
      read: readFiles,
      render: ({ project, environment }) => filesJson(project, environment),
    }),
    // A little longer than the bound on reading files, in `read.ts`.
    timeoutMs: 18_000,
    query: filesQuery,
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
];

export const tool: ListTool = {
  description: "List the secret files of a project in an environment: path, mode, size, checksum. Never their content.",
  descriptor: files,
  list: listFiles,
};
