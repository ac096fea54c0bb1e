import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { mcpEndpoint } from "../../src/serve/api/mcp.ts";
import { requestOf } from "./answer.ts";
import type { Client as ApiClient, Key, World } from "./world.ts";

/** The origin that browsers may come from in {@link mcpClient}. */
export const allowedOrigin = "https://tools.example.com";

/** The revisions that a client may ask for: the current one, and one that clients in the field still speak. */
export const revisions = { "2026-07-28": { pin: "2026-07-28" }, "2025-11-25": "legacy" } as const;

/** An app of the world that serves the Model Context Protocol, with buckets of its own. */
export function mcpClient(w: World, change: Parameters<World["client"]>[0] = () => ({})): ApiClient {
  const mcp = mcpEndpoint(new Set([allowedOrigin]), "0.0.0");
  return w.client((keyhole) => ({ mcp, ...change(keyhole) }));
}

/** A tool's answer as a client sees it. */
export type ToolAnswer = { readonly isError: boolean; readonly found: Record<string, unknown>; readonly text: string };

/** The protocol's own client, connected, and every status, header and body that came back to it. */
export type Agent = {
  readonly client: Client;
  readonly call: (name: string, args?: Record<string, unknown>) => Promise<ToolAnswer>;
  readonly received: string[];
};

/** Connects a client from npm to an app, without a socket. */
export async function connectAgent(
  { handle }: Pick<ApiClient, "handle">,
  { key }: Pick<Key, "key">,
  mode: (typeof revisions)[keyof typeof revisions] = revisions["2026-07-28"],
): Promise<Agent> {
  const received: string[] = [];
  const client = new Client({ name: "agent", version: "1" }, { versionNegotiation: { mode } });
  const transport = new StreamableHTTPClientTransport(new URL("http://localhost/mcp"), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
    fetch: async (url, init) => {
      const response = await handle(new Request(String(url), init as RequestInit));
      received.push(`${response.status} ${JSON.stringify([...response.headers])} ${await response.clone().text()}`);
      return response;
    },
  });
  client.onerror = (error) => received.push(String(error));
  await client.connect(transport);
  return { client, call: (name, args) => callTool(client, name, args), received };
}

/** Calls a tool and checks that its text says what its structured content does. */
export async function callTool(client: Client, name: string, args: Record<string, unknown> = {}): Promise<ToolAnswer> {
  const { content, structuredContent, isError } = await client.callTool({ name, arguments: args });
  const [first] = content as { readonly type: string; readonly text: string }[];
  if (first?.type !== "text" || content.length !== 1) throw new Error("not one text");
  if (first.text !== JSON.stringify(structuredContent)) throw new Error("the text is not the structured content");
  return { isError: isError === true, found: structuredContent as Record<string, unknown>, text: first.text };
}

/** One message to /mcp by hand, in the current revision unless the body is given whole. */
export function mcpRequest(
  ask: Parameters<typeof requestOf>[1] & { readonly body?: string; readonly call?: readonly [string, object] },
): Request {
  const { body, call: [name, args] = ["list_projects", {}], headers, ...rest } = ask;
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "by hand", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta } };
  const { headers: basic } = requestOf("/", rest);
  const all = {
    ...Object.fromEntries(basic),
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": name,
    ...headers,
  };
  const method = rest.method ?? "POST";
  const hasBody = method !== "GET" && method !== "HEAD";
  const sent = hasBody && { body: body ?? JSON.stringify(message) };
  return new Request("http://localhost/mcp", { method, headers: all, ...sent });
}
