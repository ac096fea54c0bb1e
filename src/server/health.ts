import { Deadline } from "../core/deadline.ts";
import { isLoopback, originOf } from "../core/json-request.ts";
import type { Log } from "../core/log.ts";
import { shared } from "../core/shared.ts";
import { jsonType } from "../formats/json.ts";
import { systemKeyRows } from "../installation/system-keys.ts";
import type { Away } from "../notary/witnessed-heads.ts";
import type { Keyring } from "../seal/keyring.ts";
import { type Database, isStandby, warm } from "../store/database.ts";
import { isMigrated } from "../store/migrate.ts";

/** Whether this server should get requests, and which checks passed. */
export type Readiness = {
  readonly ready: boolean;
  readonly draining: boolean;
  readonly checks: Readonly<Record<string, boolean>>;
  /** Witnesses that are away. Requests do not need them. */
  readonly away: Away;
  /** Why the database is not used, in a sentence, if that is known. */
  readonly reason?: string | undefined;
};

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
    development: false,
    reusePort: false,
    maxRequestBodySize: 1024,
    idleTimeout: 30,
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

/** Runs all checks at once. A check fails if it rejects, resolves to false or takes longer than 2.5 s. */
export function watchReadiness(
  checks: Readonly<Record<string, () => Promise<boolean>>>,
  draining: () => boolean,
  log: Log,
  away: () => Away = () => ({}),
  reason: () => string | undefined = () => undefined,
): () => Promise<Readiness> {
  const deadline = new Deadline(checkDeadlineMs, () => new Error("no answer"));
  let last = "";
  return async () => {
    const entries = Object.entries(checks).map(async ([name, check]) => {
      return [name, await deadline.of(check()).catch(() => false)] as const;
    });
    const results = Object.fromEntries(await Promise.all(entries));
    const failed = failedOf(results);
    const ready = !draining() && failed.length === 0;
    if (failed.join() !== last) log({ event: "readiness", ready, failed, reason: reason() });
    last = failed.join();
    return { ready, draining: draining(), checks: results, away: away(), reason: reason() };
  };
}

/** The checks of a server. */
export function readinessChecks(needs: {
  readonly database: Database;
  readonly lookups: Database;
  readonly keyring: Keyring;
  readonly journal: { check(): Promise<boolean> };
  readonly checkpoint: { readonly refusal: string | undefined };
}) {
  const { database, lookups, keyring, journal, checkpoint } = needs;
  return {
    // A standby passes this check and fails `primary`.
    database: () => Promise.all([warm(lookups), warm(database)]).then(yes, isStandby),
    primary: () => warm(database).then(yes),
    migrations: () => isMigrated(database),
    root_key: async () => {
      const rows = await systemKeyRows(database);
      for (const row of rows.values()) keyring.unwrapSystemKey(row.purpose, row.rootId, row.wrapped).fill(0);
      return rows.size > 0;
    },
    audit: () => journal.check(),
    /** Fails while the database is one that was put back. */
    history: async () => checkpoint.refusal === undefined,
  };
}

/** A Host header without a name that somebody else may own. HTTP/1.0 needs none. */
const unnamed = /^(?:(?:localhost|[\d.]+|\[[\da-f:.]+\])(?::\d+)?)?$/i;
const yes = () => true;
const checkDeadlineMs = 2500;
const headers = { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" };

function failedOf(checks: Readiness["checks"]): string[] {
  return Object.keys(checks).filter((name) => !checks[name]);
}

function json(status: number, body: unknown, more: Readonly<Record<string, string>> = {}): Response {
  return Response.json(body, { status, headers: { ...headers, "Content-Type": jsonType, ...more } });
}
