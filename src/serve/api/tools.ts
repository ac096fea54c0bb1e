import { type Static, type TProperties, Type } from "typebox";
import { Compile } from "typebox/compile";
import { Fault } from "../../core/fault.ts";
import {
  type Environment,
  environments,
  isEnvironment,
  isVariableName,
  reasonCharactersMax,
} from "../../core/names.ts";
import type { Lookup } from "../../core/set-rows.ts";
import { unseen } from "../../core/visible.ts";
import { listTools } from "../../kinds/endpoints.ts";
import { variables } from "../../kinds/variables/entry.ts";
import { listVariables } from "../../kinds/variables/read.ts";
import { requestAction } from "../../record/entry.ts";
import type { Caller } from "../access/authenticate.ts";
import { projects, type Resource, refusalOf, requests } from "../access/grant.ts";
import { noLookup } from "../gates/admit.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { ListTool } from "../gates/endpoint.ts";
import type { Exchange } from "../gates/exchange.ts";
import { oneOf } from "../gates/query.ts";
import { inScope, lookupOf, readingOf } from "../gates/read-endpoint.ts";
import { auditEntry, recorded } from "../gates/record.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import { listProjects } from "./read-projects.ts";
import { fileRequest, readRequest } from "./read-requests.ts";

/*
 * The tools of the Model Context Protocol. They read what the metadata endpoints read, through the same functions. No
 * tool returns a value, and none can: this file imports none of the functions that open one.
 */

/** One call of a tool, whose key has passed gates 2 to 4. */
export type Turn = { readonly parts: ApiParts; readonly exchange: Exchange; readonly caller: Caller };

const project = Type.String({ description: "The project's slug, as list_projects shows it." });
const environment = oneOf(environments, "The environment.");
const place = { project, environment };
/** A request with this many of the longest names stays below the limit of 16 KiB for a body. */
const namesMax = 50;

export const tools: Readonly<Record<string, ReturnType<typeof tool>>> = {
  list_projects: tool(projects, undefined, {
    description: "List the projects that this key reaches.",
    properties: {},
    run: async ({ parts, exchange, caller }) => ({
      projects: await listProjects(readingOf(parts, exchange, caller)),
    }),
  }),
  ...Object.fromEntries(listTools.map((one) => [`list_${one.descriptor.kind}`, listTool(one)])),
  check_required: tool(variables.resource, variables, {
    description: "Find out which of these variables are missing in an environment of a project.",
    properties: {
      ...place,
      names: Type.Array(Type.String(), {
        minItems: 1,
        maxItems: namesMax,
        description: "The names of the variables that are needed.",
      }),
    },
    judge: ({ names }) => {
      for (const name of names) requireVariableName("names", name);
    },
    run: async (turn, { project, environment, names }) => {
      const existing = await existingNames(turn, project, environment, names);
      return { environment, missing: [...new Set(names)].filter((name) => !existing.has(name)) };
    },
  }),
  request_variable: tool(requests, variables, {
    description:
      "Ask a person to create a variable that is missing. Nothing exists until a person approves the request and supplies the value, which is never shown here. Answers the request's id for get_request; if one for the same variable is pending, that one's.",
    readOnly: false,
    properties: {
      ...place,
      name: Type.String({ description: "The name of the variable." }),
      reason: Type.String({
        description: `What it is needed for, in at most ${reasonCharactersMax} characters. Never put a secret here.`,
      }),
    },
    judge: ({ name, reason }) => {
      requireVariableName("name", name);
      if (storedReason(reason) !== "" && [...reason].length <= reasonCharactersMax) return;
      throw invalid("reason", `must have 1 to ${reasonCharactersMax} characters that can be seen`);
    },
    run: async (turn, { project: slug, environment, name, ...given }) => {
      const { parts, exchange, caller } = turn;
      const reason = storedReason(given.reason);
      if ((await existingNames(turn, slug, environment, [name])).has(name)) {
        throw invalid("name", `is the name of a variable that already exists in ${environment}`);
      }
      const project = { id: caller.target?.projectId ?? "", organizationId: caller.grant.organizationId, slug };
      const filed = await fileRequest(readingOf(parts, exchange, caller), project, { environment, name, reason });
      // An equal one that was pending is recorded again: its own entry may have failed.
      await recorded(parts, auditEntry(exchange, caller, project, environment, requestAction, [filed.id, name]));
      return { id: filed.id, status: "pending", expiresAt: filed.expiresAt };
    },
  }),
  get_request: tool(requests, undefined, {
    description: "Ask what became of a request: pending, approved, rejected or expired, with the person's reason.",
    properties: { id: Type.String({ description: "The id that request_variable answered." }) },
    run: ({ parts, exchange, caller }, { id }) => readRequest(readingOf(parts, exchange, caller), id),
  }),
};

/**
 * What to look up with the key for a call of a tool that was not judged yet. The tool reads the same
 * arguments from the same object.
 */
export function lookupOfCall(name: unknown, given: unknown): Lookup {
  const kind = typeof name === "string" && Object.hasOwn(tools, name) ? tools[name]?.kind : undefined;
  const { project, environment } = (given ?? {}) as { readonly project?: unknown; readonly environment?: unknown };
  if (!kind || typeof project !== "string" || typeof environment !== "string") return noLookup;
  return isEnvironment(environment) ? lookupOf(kind, { project, environment }, false) : noLookup;
}

/**
 * The same JSON value without the characters that a screen would act on or not show, such as control and bidirectional
 * characters: stored text may be aimed at people who read a model's transcript.
 */
export function cleaned<T>(value: T): T {
  return JSON.parse(JSON.stringify(value), (_, inner) => (typeof inner === "string" ? cleanText(inner) : inner)) as T;
}

function cleanText(text: string): string {
  return text.replace(/[\t\r\n]+/g, " ").replace(unseen, "");
}

function listTool({ description, descriptor, list }: ListTool) {
  return tool(descriptor.resource, descriptor, {
    description,
    properties: place,
    run: async ({ parts, exchange, caller }, place) =>
      JSON.parse((await list(readingOf(parts, exchange, caller), place)).body),
  });
}

function tool<P extends TProperties>(
  resource: Resource,
  kind: KindDescriptor | undefined,
  given: {
    readonly description: string;
    readonly properties: P;
    readonly readOnly?: boolean;
    /** What the schema does not say of the arguments. */
    readonly judge?: (args: Arguments<P>) => void;
    readonly run: (turn: Turn, args: Arguments<P>) => Promise<object>;
  },
) {
  const { description, properties, readOnly = true, judge, run } = given;
  const input = Type.Object(properties, { additionalProperties: false });
  const check = Compile(input);
  return {
    description,
    /** The JSON Schema of its arguments. */
    input: input as object,
    readOnly,
    /** Of the sets that are looked up with the key. */
    kind,
    /** Gates 4 to 10. */
    run: (turn: Turn, args: unknown): Promise<object> => {
      const { grant, organization } = turn.caller;
      const refusal = refusalOf(organization.plan, grant, { surface: null, resource });
      if (refusal) throw new Fault(refusal, `${refusal}: ${resource.name}`); // 403
      if (!check.Check(args)) throw firstProblem(properties, check.Errors(args)); // 400
      judge?.(args); // 400
      const { environment } = args as { readonly environment?: Environment };
      if (environment !== undefined) inScope(turn.caller, environment); // 403
      return run(turn, args);
    },
  };
}

type Arguments<P extends TProperties> = Static<ReturnType<typeof Type.Object<P>>>;
type Problems = ReturnType<ReturnType<typeof Compile>["Errors"]>;

/** A Fault for the first invalid argument. Its sentence quotes nothing that the caller sent. */
function firstProblem(properties: TProperties, [error]: Problems): Fault {
  const known = (name: string | undefined) => Object.keys(properties).find((one) => one === name);
  if (error?.keyword === "required") return invalid(error.params.requiredProperties[0] ?? "", "is required");
  const name = known(error?.instancePath.split("/")[1]);
  if (name === undefined) {
    const names = Object.keys(properties).join(", ");
    return invalid("arguments", names === "" ? "must be empty" : `must be an object of ${names} alone`);
  }
  if (error?.keyword === "enum") return invalid(name, `must be one of ${error.params.allowedValues.join(", ")}`);
  if (/^m(?:ax|in)Items$/.test(error?.keyword ?? "")) return invalid(name, `must hold 1 to ${namesMax} names`);
  return invalid(name, name === "names" ? "must be a list of texts" : "must be a text");
}

function requireVariableName(argument: string, name: string): void {
  if (isVariableName(name)) return;
  const rule = "letters, digits and _, not starting with a digit, at most 255, and neither _ nor __proto__";
  throw invalid(argument, argument === "names" ? `must hold names of variables only: ${rule}` : `must be ${rule}`);
}

/** The reason, cleaned. */
function storedReason(given: string): string {
  return cleanText(given).trim();
}

/** Which of these names exist. */
async function existingNames(
  { parts, exchange, caller }: Turn,
  project: string,
  environment: Environment,
  names: readonly string[],
): Promise<Set<string>> {
  const query = { project, environment, selection: { by: "names", names } } as const;
  return new Set((await listVariables(readingOf(parts, exchange, caller), query)).names);
}

function invalid(name: string, problem: string): Fault {
  return new Fault("invalid_request", `argument ${name} ${problem}`, { argument: { name, problem } });
}
