import type { Endpoint, ListTool } from "../../serve/gates/endpoint.ts";
import { readEndpoint } from "../../serve/gates/read-endpoint.ts";
import { files } from "./entry.ts";
import { filesQuery, parseFiles } from "./query.ts";
import { fingerprintFiles, listFiles, readFiles } from "./read.ts";
import { filesJson } from "./render.ts";

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
