import type { Endpoint, ListTool } from "../serve/gates/endpoint.ts";
import * as accounts from "./accounts/endpoint.ts";
import * as files from "./files/endpoint.ts";
import * as variables from "./variables/endpoint.ts";

/** The endpoints that read items, and the tools that list them for agents: all that a server loads of a kind. */
const kinds = [variables, accounts, files] as const;
export const kindEndpoints: readonly Endpoint[] = kinds.flatMap(({ endpoints }) => endpoints);
export const listTools: readonly ListTool[] = kinds.map(({ tool }) => tool);
