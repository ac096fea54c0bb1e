import { version } from "../../package.json";
import { Untrustworthy } from "./answers.ts";

/** A JSON-RPC answer: what the method returned, or why it did not. */
export type McpAnswer =
  | { readonly result: Readonly<Record<string, unknown>> }
  | { readonly error: { readonly code: number; readonly message: string } };

/** A call as it is sent. */
export type McpCall = { readonly body: string; readonly headers: Readonly<Record<string, string>> };

const protocolVersion = "2026-07-28";

/**
 * One call of the Model Context Protocol, which needs no session in the revision that is spoken here.
 * @see https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
 */
export function mcpCall(method: string, params: Readonly<Record<string, unknown>>): McpCall {
  const { name } = params;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": protocolVersion,
    "io.modelcontextprotocol/clientInfo": { name: "keyhole", version },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return {
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta } }),
    headers: {
      "Content-Type": "application/json",
      "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": method,
      ...(typeof name === "string" && { "Mcp-Name": name }),
    },
  };
}

/** @throws Untrustworthy */
export function validateMcpAnswer(answer: unknown): McpAnswer {
  const { result, error } = (answer ?? {}) as { readonly result?: unknown; readonly error?: unknown };
  if (typeof result === "object" && result !== null) return { result: result as Record<string, unknown> };
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: unknown };
  if (Number.isSafeInteger(code) && typeof message === "string") return { error: { code: Number(code), message } };
  throw new Untrustworthy("it is neither a result nor an error of the Model Context Protocol");
}
