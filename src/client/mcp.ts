import { version } from "../core/version.ts";
import type { Question } from "./wire.ts";

/** A JSON-RPC answer: what the method returned, or why it did not. */
export type McpAnswer =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly error: { readonly code: number; readonly message: string } };

const protocolVersion = "2026-07-28";

/**
 * One call of the Model Context Protocol, which needs no session in this revision.
 * @param root - the API's; the protocol's path is outside it
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
 */
export function mcpQuestion(
  root: string,
  method: string,
  params: Readonly<Record<string, unknown>>,
): Question<McpAnswer> {
  const { name } = params;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": protocolVersion,
    "io.modelcontextprotocol/clientInfo": { name: "keyhole", version },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return {
    url: root.replace(/\/api\/v1$/, "/mcp"),
    post: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    headers: {
      "Content-Type": "application/json",
      "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": method,
      ...(typeof name === "string" && { "Mcp-Name": name }),
    },
    is: isMcpAnswer,
  };
}

function isMcpAnswer(answer: unknown): answer is McpAnswer {
  const { result, error } = (answer ?? {}) as { readonly result?: unknown; readonly error?: unknown };
  if (typeof result === "object" && result !== null) return error === undefined;
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  return result === undefined && Number.isSafeInteger(code) && typeof message === "string";
}
