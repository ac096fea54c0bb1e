import type { Surface } from "../../serve/access/grant.ts";

/** What a key or a trust is for, in the words of the pages. Each is a `Prose`. */
export const usesOf: Readonly<Record<Surface, string>> = {
  rest_api: "Programs and CI: `run`, `pull`, the action",
  mcp_server: "Agents: names only",
  ci_action: "Only the older path `/secrets`",
};

/** What a resource lets a key read, for resources whose names do not say it. */
export const readsOf: Readonly<Record<string, string>> = {
  projects: "the list of its projects",
  requests: "requests for variables, which it files",
};
