import type { Endpoint } from "../gates/endpoint.ts";
import { endpoints as accounts } from "./accounts/endpoint.ts";
import { listAccounts } from "./accounts/tool.ts";
import { endpoints as files } from "./files/endpoint.ts";
import { listFiles } from "./files/tool.ts";
import type { ListTool } from "./tool.ts";
import { endpoints as variables } from "./variables/endpoint.ts";
import { listVariables } from "./variables/tool.ts";

/** The endpoints that read items, and the tools that list them for agents: all that a server loads of a kind. */
export const kindEndpoints: readonly Endpoint[] = [...variables, ...accounts, ...files];
export const listTools: readonly ListTool[] = [listVariables, listAccounts, listFiles];
