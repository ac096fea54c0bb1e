import type { ListTool } from "../tool.ts";
import { files } from "./entry.ts";
import { listFiles as list } from "./read.ts";

export const listFiles: ListTool = {
  name: "list_files",
  description: "List the secret files of a project in an environment: path, mode, size, checksum. Never their content.",
  descriptor: files,
  list,
};
