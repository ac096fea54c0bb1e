import { jsonType } from "../../core/formats/json.ts";
import { isLoopback, originOf } from "../../core/json-request.ts";
import { listenerOptions } from "../../core/listening.ts";
import { shared } from "../../core/shared.ts";
import { failedOf, type Readiness } from "./health.ts";

/**
 * Serves health and metrics on an address of their own. If requests should go elsewhere, `/readyz` answers 503 with the
 * names of the failed checks. `/metrics` runs the same checks. Concurrent requests share one answer, so that nobody can
 * keep the database busy from here. On loopback, only `localhost` and addresses are answered: a web page can give its
 * own name this machine's address, and would read what takes no key.
 */
export function startOps(
  { host, port }: { readonly host: string; readonly port: number },
  answers: {
    readonly readiness: () => Promise<Readiness>;
    readonly metrics: (readiness: Readiness) => Promise<string>;
  },
): { readonly origin: string; readonly stop: () => Promise<void> } {
  const readiness = shared(answers.readiness);
  const metrics = shared(async () => answers.metrics(await readiness()));
  const pages: Readonly<Record<string, () => Promise<Response>>> = {
    "/livez": async () => json(200, { status: "alive" }),
    "/readyz": async () => {
      const { ready, draining, checks, away, reason } = await readiness();
      const status = ready ? "ready" : draining ? "draining" : "not_ready";
      const witnesses = Object.keys(away).length === 0 ? {} : { witnessesAway: away };
      return json(ready ? 200 : 503, { status, failed: failedOf(checks), reason, checks, ...witnesses });
    },
    "/metrics": async () =>
      new Response(await metrics(), {
        headers: { ...headers, "Content-Type": "text/plain; version=0.0.4; charset=utf-8" },
      }),
  };
  const isLocal = isLoopback(new URL(originOf(host, port)).hostname);
  const server = Bun.serve({
    hostname: host,
    port,
    ...listenerOptions,
    maxRequestBodySize: 1024,
    fetch: async (request) => {
      if (isLocal && !unnamed.test(request.headers.get("host") ?? "")) {
        return json(421, { error: "Ask for localhost or an address.", code: "misdirected" });
      }
      // Load balancers may ask by HTTP/1.0 without a Host. Then the url is only a path.
      const path = /^(?:https?:\/\/[^/]+)?(\/[^?]*)/.exec(request.url)?.[1] ?? "";
      const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
      if (page === undefined) return json(404, { error: "No such path.", code: "not_found" });
      if (request.method !== "GET" && request.method !== "HEAD") {
        return json(405, { error: "Only GET is allowed.", code: "method_not_allowed" }, { Allow: "GET, HEAD" });
      }
      return page();
    },
    error: () => json(500, { error: "Internal error.", code: "internal_error" }),
  });
  return { origin: originOf(host, server.port ?? port), stop: () => server.stop(true) };
}

/** A Host header without a name that somebody else may own. HTTP/1.0 needs none. */
const unnamed = /^(?:(?:localhost|[\d.]+|\[[\da-f:.]+\])(?::\d+)?)?$/i;

const headers = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

function json(status: number, body: unknown, more: Readonly<Record<string, string>> = {}): Response {
  return Response.json(body, { status, headers: { ...headers, "Content-Type": jsonType, ...more } });
}
