import { createMcpHandler, ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import { Deadline } from "../../core/deadline.ts";
import { Fault, type FaultCode } from "../../core/fault.ts";
import { jsonType } from "../../core/formats/json.ts";
import { Waiters } from "../../core/waiters.ts";
import { type Admission, admit } from "../gates/admit.ts";
import type { McpEndpoint } from "../gates/api-parts.ts";
import { headersOf } from "../gates/exchange.ts";
import { problemOf } from "./problem.ts";
import { cleaned, lookupOfCall, type Turn, tools } from "./tools.ts";

/*
 * POST /mcp. The SDK speaks the protocol, in all its revisions; here are the gates around it. Nothing is kept between
 * requests: there is no session, no stream that stays open, and no message from the server's side.
 */

const admission: Admission = { bucket: "metadata", surface: "mcp_server", resource: null };

/** The endpoint. @param origins - those that browsers may come from */
export function mcpEndpoint(origins: ReadonlySet<string>, version: string): McpEndpoint {
  const handler = createMcpHandler(({ authInfo }) => serverFor(authInfo?.extra?.["turn"] as McpTurn, version), {
    maxSubscriptions: 0,
    keepAliveMs: 0,
  });
  const bodies = new Waiters();
  return async (parts, exchange, token, request) => {
    const body = await bodies.wait(() => readBody(request)); // 429
    const { method, params } = (body.message ?? {}) as { readonly method?: unknown; readonly params?: ToolCall };
    const lookup = lookupOfCall(method === "tools/call" ? params?.name : undefined, params?.arguments);
    const caller = await admit(parts.gate, exchange, token, admission, lookup); // 401 429 403
    requireOrigin(request, origins); // 403
    if (body.problem !== undefined) throw new Fault("invalid_request", `body ${body.problem}`, { body: body.problem }); // 400
    const turn: McpTurn = { parts, exchange, caller, failure: undefined };
    const authInfo = { token: "", clientId: caller.grant.keyId, scopes: [], extra: { turn } };
    const answer = await handler.fetch(plainly(request), { parsedBody: body.message, authInfo });
    const text = await answer.text();
    if (answer.status >= 400) exchange.refusal ??= new Fault("invalid_request", "refused by the protocol");
    if (turn.failure !== undefined) throw turn.failure; // 401 403 500 503
    exchange.bytes = Buffer.byteLength(text);
    const headers = headersOf(exchange, answer.headers.get("content-type") ?? jsonType);
    if (text === "") delete headers["Content-Type"];
    return new Response(text === "" ? null : text, { status: answer.status, headers });
  };
}

type ToolCall = { readonly name?: unknown; readonly arguments?: unknown };

/** A turn, and what ended it although the protocol has answered. */
type McpTurn = Turn & { failure: unknown };

/** The body, or what is wrong with it. A batch would do many things for one token. Never throws. */
async function readBody(request: Request): Promise<{ message?: unknown; problem?: string }> {
  try {
    const message: unknown = JSON.parse(await bodyDeadline.of(request.text()));
    if (typeof message === "object" && message !== null && !Array.isArray(message)) return { message };
    return { problem: "must be one JSON-RPC message, not a batch" };
  } catch {
    return { problem: "must be JSON" };
  }
}

/** A request that holds back its body must not become a 503: only its client is to blame. */
const bodyDeadline = new Deadline(2000, () => new Fault("invalid_request", "no body", { body: "did not arrive" }));

/** A browser names the page of a request, so that a web page cannot use a server it can reach. */
function requireOrigin({ headers }: Request, origins: ReadonlySet<string>): void {
  const origin = headers.get("origin");
  if (origin === null || origins.has(origin)) return;
  throw new Fault("surface_required", "a browser's page whose origin is not one of KEYHOLE_MCP_ORIGINS");
}

/**
 * The request as the SDK reads it: it looks for the names of both types in `Accept`, and knows no ranges. Of the ranges
 * that fit a type, the most specific one decides.
 * @see https://www.rfc-editor.org/rfc/rfc9110#section-12.5.1
 */
function plainly({ url, method, headers, signal }: Request): Request {
  const ranges = (headers.get("accept")?.trim() || "*/*").toLowerCase().split(",");
  const taken = new Map(ranges.map((range) => [range.split(";")[0]?.trim(), !isRefused.test(range)]));
  const isTaken = (type: string) => taken.get(type) ?? taken.get(type.replace(/\/.*/, "/*")) ?? taken.get("*/*");
  const accept = ["application/json", "text/event-stream"].filter(isTaken).join();
  return new Request(url, { method, headers: { ...Object.fromEntries(headers), accept }, signal });
}

const isRefused = /;\s*q\s*=\s*0(?:\.0*)?\s*(?:;|$)/;

/** The protocol's server for one message. */
function serverFor(turn: McpTurn, version: string): Server {
  const server = new Server(
    { name: "keyhole", version },
    // The default validator is for questions to the client, and none is asked; it would cost a compiler per request.
    { capabilities: { tools: {} }, instructions, jsonSchemaValidator: noValidator },
  );
  server.setRequestHandler("tools/list", () => ({ tools: listed }));
  server.setRequestHandler("tools/call", async ({ params }) => {
    const tool = Object.hasOwn(tools, params.name) ? tools[params.name] : undefined;
    if (tool === undefined) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such tool.");
    try {
      const found = cleaned(await tool.run(turn, params.arguments ?? {}));
      return { content: [{ type: "text", text: JSON.stringify(found) }], structuredContent: { ...found } };
    } catch (error) {
      if (error instanceof Fault && toolErrors.has(error.code)) {
        turn.exchange.refusal = error;
        const { body } = problemOf(error);
        return { isError: true, content: [{ type: "text", text: body }], structuredContent: JSON.parse(body) };
      }
      turn.failure = error;
      throw new ProtocolError(ProtocolErrorCode.InternalError, "Internal error.");
    }
  });
  return server;
}

/** What a model can do something about is an answer of the tool; anything else ends the request as everywhere. */
const toolErrors: ReadonlySet<FaultCode> = new Set([
  "invalid_request",
  "resource_required",
  "environment_not_in_scope",
  "project_not_found",
  "not_found",
  "too_many_items",
]);

const noValidator = {
  getValidator: () => {
    throw new Error("this server asks its clients nothing");
  },
};

const listed = Object.entries(tools).map(([name, { description, input, readOnly }]) => ({
  name,
  description,
  inputSchema: { ...input, type: "object" as const },
  annotations: { readOnlyHint: readOnly, destructiveHint: false, openWorldHint: false },
}));

const instructions =
  "Keyhole keeps secrets. These tools show which projects, variables, accounts and files exist, and which variables are missing. No tool shows a value: a program gets it with `keyhole run`. If a variable is missing, ask a person for it with request_variable, and never ask for the value in the conversation.";
