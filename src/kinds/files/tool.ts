import type { ListTool } from "../tool.ts";
import { files } from "./entry.ts";
import { listFiles as readListing } from "./read.ts";

export const listFiles: ListTool = {
  name: "list_files",
  description: "List the secret files of a project in an environment: path, mode, size, checksum. Never their content.",
  descriptor: files,
  async list(reading, project, environment) {
    const { files } = await readListing(reading, { project, environment, paths: undefined });
    return { project: { slug: project }, environment, files: JSON.parse(files) };
  },
};
