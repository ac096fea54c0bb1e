import type { Surface } from "../../serve/access/grant.ts";

/** What a key or a trust is for, in the words of the pages. Each is a `Prose`. */
export const usesOf: Readonly<Record<Surface, string>> = {
  rest_api: "Programs and CI: `run`, `pull`, the action",
  mcp_server: "Agents: names only",
  ci_action: "Old `/secrets` only",
};
