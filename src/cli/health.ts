import { guardedFetch } from "../core/guarded-fetch.ts";
import { originOf } from "../core/json-request.ts";
import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings/settings.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";

/** A health check for a container, which has no other HTTP client. */
const ask = processCommand({
  path: "health",
  about: "Ask the server on this machine whether it is ready.",
  examples: ["keyhole health"],
  inputs: {},
  action: async (context) => {
    const { host, port, socket, ops } = readConfig(context.env, false);
    // Without the ops listener, an unknown path is asked: the server needs neither a key nor the database for a 404.
    const [at, wanted] = ops ? [urlOf(ops.host, ops.port, "/readyz"), 200] : [urlOf(host, port, "/health"), 404];
    const unix = ops ? undefined : socket?.path;
    const init = {
      signal: AbortSignal.timeout(2000),
      redirect: "manual",
      proxy: false,
      ...(unix && { unix }),
    } as const;
    const response = await guardedFetch(at, init).catch(() => undefined);
    if (response?.status === wanted) return answer(context, { ready: true }, "Ready.");
    const did = response ? `answered ${response.status}` : "did not answer";
    throw new Problem(exits.unavailable, "unavailable", `The server at ${unix ?? new URL(at).host} ${did}.`);
  },
});

export const health: CommandGroup = { rows: [ask] };

/** A server that listens on every address is asked on loopback. */
function urlOf(host: string, port: number, path: string): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `${originOf(reached, port)}${path}`;
}
