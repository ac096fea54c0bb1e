import { Deadline } from "../deadline.ts";

/** Whether this server should be asked, and if not, why. */
export type Readiness = {
  readonly ready: boolean;
  readonly draining: boolean;
  /** By name, in the order of {@link checkReadiness}. */
  readonly checks: Readonly<Record<string, boolean>>;
};

/** What the second listener answers from. */
export type Answers = { readonly readiness: () => Promise<Readiness>; readonly metrics: () => Promise<string> };

const checkDeadlineMs = 2500;

/**
 * Runs every check at once. One that throws, says no, or does not answer in time has failed.
 * @param checks - each resolves to whether all is well
 */
export async function checkReadiness(
  draining: boolean,
  checks: Readonly<Record<string, () => Promise<boolean>>>,
): Promise<Readiness> {
  const deadline = new Deadline(checkDeadlineMs, () => new Error("no answer"));
  const run = (check: () => Promise<boolean>) => deadline.of(check()).catch(() => false);
  const results = await Promise.all(
    Object.entries(checks).map(async ([name, check]) => [name, await run(check)] as const),
  );
  return {
    ready: !draining && results.every(([, good]) => good),
    draining,
    checks: Object.fromEntries(results),
  };
}

/**
 * Health and metrics, on an address of their own. `/livez` answers while the process does; `/readyz` with 503 and the
 * names of what failed where requests should go elsewhere; `/metrics` in Prometheus's text format.
 *
 * Many who ask at one moment share one answer: whoever reaches this address cannot make the database busy.
 *
 * @throws what `Bun.serve` throws, such as EADDRINUSE
 */
export function startOps(
  { host, port }: { readonly host: string; readonly port: number },
  answers: Answers,
): { readonly origin: string; readonly stop: () => Promise<void> } {
  const readiness = shared(answers.readiness);
  const metrics = shared(answers.metrics);
  const pages: Readonly<Record<string, () => Promise<Response>>> = {
    "/livez": async () => json(200, { status: "alive" }),
    "/readyz": async () => {
      const { ready, draining, checks } = await readiness();
      const failed = Object.keys(checks).filter((name) => !checks[name]);
      const status = ready ? "ready" : draining ? "draining" : "not_ready";
      return json(ready ? 200 : 503, { status, failed, checks });
    },
    "/metrics": async () =>
      new Response(await metrics(), {
        headers: { ...headers, "Content-Type": "text/plain; version=0.0.4; charset=utf-8" },
      }),
  };
  const server = Bun.serve({
    hostname: host,
    port,
    development: false,
    reusePort: false,
    maxRequestBodySize: 1024,
    idleTimeout: 30,
    fetch: async (request) => {
      const path = /^https?:\/\/[^/]+(\/[^?]*)/.exec(request.url)?.[1] ?? "";
      const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
      if (page === undefined) return json(404, { error: "No such path.", code: "not_found" });
      if (request.method !== "GET" && request.method !== "HEAD") {
        return json(405, { error: "Only GET is allowed.", code: "method_not_allowed" }, { Allow: "GET, HEAD" });
      }
      return page();
    },
    error: () => json(500, { error: "Internal error.", code: "internal_error" }),
  });
  return {
    origin: `http://${host.includes(":") ? `[${host}]` : host}:${server.port}`,
    stop: () => server.stop(true),
  };
}

const headers = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

function json(status: number, body: unknown, more: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: { ...headers, "Content-Type": "application/json; charset=utf-8", ...more },
  });
}

/** The same call for all who ask while one is under way. */
function shared<T>(work: () => Promise<T>): () => Promise<T> {
  let underWay: Promise<T> | undefined;
  return () => {
    underWay ??= work().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
