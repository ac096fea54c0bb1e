import { Type } from "typebox";
import { itemsMax } from "../../core/names.ts";
import type { Endpoint, ListTool } from "../../gates/endpoint.ts";
import { parameters, parseQuery } from "../../gates/query.ts";
import { readEndpoint } from "../../gates/read-endpoint.ts";
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
  },
];

export const tool: ListTool = {
  description: "List the secret files of a project in an environment: path, mode, size, checksum. Never their content.",
  descriptor: files,
  list: listFiles,
};
