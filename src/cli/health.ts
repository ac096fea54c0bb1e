import { readConfig } from "../config.ts";
import { exits, Problem } from "../problem.ts";
import { answer, type Surroundings, verb } from "./command.ts";

/**
 * `keyhole health`: whether the server that these settings describe is there and ready, for a container's health check:
 * there the program is all there is to ask with.
 */
export function healthCommand(here: Surroundings) {
  return verb("health", "Ask the server on this machine whether it is ready.", "keyhole health").action(async () => {
    const { host, port, ops } = readConfig(here.env);
    // A path that no server knows is answered by Keyhole without a key and without its database.
    const [at, wanted] = ops ? [urlOf(ops.host, ops.port, "/readyz"), 200] : [urlOf(host, port, "/health"), 404];
    const response = await fetch(at, { signal: AbortSignal.timeout(2000), redirect: "manual", proxy: "" }).catch(
      () => undefined,
    );
    if (response?.status === wanted) return answer(here, { ready: true }, "Ready.");
    const said = response ? `answered ${response.status}` : "did not answer";
    throw new Problem(exits.unavailable, "unavailable", `The server at ${new URL(at).host} ${said}.`);
  });
}

/** An address that listens everywhere is asked on loopback. */
function urlOf(host: string, port: number, path: string): string {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${reached.includes(":") ? `[${reached}]` : reached}:${port}${path}`;
}
