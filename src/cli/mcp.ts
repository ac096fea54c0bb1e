import { once } from "node:events";
import { ProtocolError, ProtocolErrorCode, Server } from "@modelcontextprotocol/server";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { Client } from "../client/client.ts";
import { Problem } from "../core/problem.ts";
import { version } from "../core/version.ts";
import { harden } from "./harden.ts";
import { readApi, serverInputs } from "./machine.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { toProblem } from "./terminal/failure.ts";

/** The server's tools, for an agent that starts this program. It has no tool of its own. */
const pass = processCommand({
  path: "mcp",
  about: "Pass the tools of a server's MCP surface on to an agent, on stdin and stdout. No tool shows a value.",
  examples: ["KEYHOLE_URL=https://keyhole.example.com KEYHOLE_API_KEY_FILE=~/.keyhole-agent keyhole mcp"],
  inputs: serverInputs,
  action: async (context, options) => {
    const client = new Client({ ...(await readApi(context, options)), say: context.say });
    harden();
    const { stdin, stdout } = context.terminal;
    const ended = once(stdin, "end");
    const served = serveStdio(async () => serverFor(client, await readInstructions(client)), {
      transport: new StdioServerTransport(stdin, stdout),
    });
    await ended;
    await served.close();
  },
});

export const mcp: CommandGroup = { rows: [pass] };

/**
 * What the server tells models about its tools; undefined if the server does not give it: then the first call explains
 * why.
 */
async function readInstructions(client: Client): Promise<string | undefined> {
  const { instructions } = await call(client, "server/discover", {}).catch(() => ({ instructions: undefined }));
  return typeof instructions === "string" ? instructions : undefined;
}

/** A server that passes each message on. The SDK speaks whatever revision the agent speaks. */
function serverFor(client: Client, instructions: string | undefined): Server {
  const server = new Server(
    { name: "keyhole", version },
    { capabilities: { tools: {} }, ...(instructions !== undefined && { instructions }) },
  );
  server.setRequestHandler("tools/list", async () => {
    const { tools } = await call(client, "tools/list", {}).catch((error: unknown) => {
      throw new ProtocolError(ProtocolErrorCode.InternalError, explained(error).message);
    });
    return { tools: tools as never };
  });
  server.setRequestHandler("tools/call", async ({ params: { name, arguments: given = {} } }) => {
    // It becomes a header.
    if (!/^[a-z_]{1,64}$/.test(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "There is no such tool.");
    try {
      const { content, structuredContent, isError } = await call(client, "tools/call", { name, arguments: given });
      return { content, structuredContent, ...(isError === true && { isError }) } as never;
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      const { message, code } = explained(error);
      const problem = { error: message, code };
      return { isError: true, content: [{ type: "text", text: JSON.stringify(problem) }], structuredContent: problem };
    }
  });
  return server;
}

/** @throws ProtocolError for an error of the protocol, Problem for any other failure */
async function call(client: Client, method: string, params: Readonly<Record<string, unknown>>) {
  const answer = await client.callMcp(method, params);
  if ("error" in answer) throw new ProtocolError(answer.error.code, answer.error.message);
  return answer.result;
}

/** The failure as an agent is told it: without the client's advice to wait, which is for commands. */
function explained(error: unknown): Problem {
  const thrown = toProblem(error, { person: undefined });
  const problem = thrown.cause instanceof Problem ? thrown.cause : thrown;
  if (problem.code !== "not_found") return problem;
  return new Problem(problem.exitCode, problem.code, `${problem.message} The server needs KEYHOLE_MCP=on.`);
}
