import { bearer } from "@elysiajs/bearer";
import { Elysia } from "elysia";
import { Deadline } from "../deadline.ts";
import { Fault } from "../fault.ts";
import { jsonType } from "../render/body.ts";
import { getAccounts } from "./accounts.ts";
import { beginExchange, type Exchange, headersOf } from "./exchange.ts";
import { getFiles } from "./files.ts";
import type { Keyhole } from "./keyhole.ts";
import { getOrganization } from "./organization.ts";
import { faultOf, problemOf } from "./problem.ts";
import { getProject, getProjects } from "./projects.ts";
import { getSecrets } from "./secrets.ts";
import { getVariables } from "./variables.ts";

export const apiRoot = "/api/v1";
/** How long a request may take in all; one for files, whose reading has a bound of its own, a little more than that. */
export const requestDeadlineMs = 5000;
export const filesRequestDeadlineMs = 18_000;

/**
 * The API as a function of a request; it listens on nothing. Hooks set up and catch, they never judge: the order of
 * judgement is the order of the lines in each endpoint's function.
 */
export function createApp(keyhole: Keyhole) {
  const app = new Elysia({
    strictPath: true,
    normalize: false,
    // By default Elysia looks for the path from the eleventh character on, so a short Host moved it.
    handler: { standardHostname: false },
  });
  const wanted = { stages: (keyhole.meter ?? keyhole.trace) !== undefined, traceparent: keyhole.trace !== undefined };
  return app
    .decorate("exchange", undefined as unknown as Exchange)
    .onRequest((context) => {
      const { request } = context;
      // The plugin looks there where the header has no key. In the built program Elysia may not see that it does, and
      // make none. To hand the context to a function would have it make all it knows: cookies, and each Response anew.
      (context as { query?: typeof noQuery }).query = noQuery;
      const address = () => addressOf(app.server?.requestIP(request)?.address);
      context.exchange = beginExchange(request, address, keyhole.draining(), wanted);
      judgeTransport(request, context.exchange);
    })
    .onError({ as: "global" }, ({ error, code, exchange }) =>
      failed(keyhole, exchange, code === "NOT_FOUND" ? new Fault("not_found", "no such path") : error),
    )
    .use(bearer({ extract: { query: Symbol("off") as never } }))
    .get(`${apiRoot}/organization`, ({ exchange, bearer }) =>
      served(keyhole, exchange, "/organization", getOrganization(keyhole, exchange, bearer)),
    )
    .get(`${apiRoot}/projects`, ({ exchange, bearer }) =>
      served(keyhole, exchange, "/projects", getProjects(keyhole, exchange, bearer)),
    )
    .get(`${apiRoot}/projects/:slug`, ({ exchange, bearer, params }) =>
      served(keyhole, exchange, "/projects/{slug}", getProject(keyhole, exchange, bearer, slugOf(params))),
    )
    .get(`${apiRoot}/projects/:slug/variables`, ({ exchange, bearer, params }) =>
      served(keyhole, exchange, "/projects/{slug}/variables", getVariables(keyhole, exchange, bearer, slugOf(params))),
    )
    .get(`${apiRoot}/projects/:slug/accounts`, ({ exchange, bearer, params }) =>
      served(keyhole, exchange, "/projects/{slug}/accounts", getAccounts(keyhole, exchange, bearer, slugOf(params))),
    )
    .get(`${apiRoot}/files`, ({ exchange, bearer }) =>
      served(keyhole, exchange, "/files", getFiles(keyhole, exchange, bearer), filesDeadline),
    )
    .get(`${apiRoot}/secrets`, ({ exchange, bearer }) =>
      served(keyhole, exchange, "/secrets", getSecrets(keyhole, exchange, bearer)),
    );
}

const noQuery: Readonly<Record<string, never>> = Object.freeze({});

/** Bun.serve's options beside address and port: what Elysia or Bun would else do by default is unsafe here. */
export const serveOptions = {
  // Bun's development page shows source and stack.
  development: false,
  // Elysia's default lets a second server bind the same port without a word.
  reusePort: false,
  maxRequestBodySize: 16 * 1024,
  // Longer than the longest silence before an answer: waiting for memory and reading files.
  idleTimeout: 30,
  error: () => Response.json({ error: "Internal error.", code: "internal_error" }, { status: 500 }),
} as const;

const knownPath = new RegExp(
  `^${apiRoot}/(?:organization|projects|projects/[^/]+|projects/[^/]+/(?:variables|accounts)|files|secrets)$`,
);

/** Gate 1 beyond routing: only GET, and a GET that brings nothing. @throws Fault */
function judgeTransport(request: Request, exchange: Exchange): void {
  // With a malformed Host Bun's url is a path alone, and nothing of it can be trusted to be what it seems.
  if (!request.url.startsWith("http")) throw new Fault("not_found", "malformed Host header");
  if (request.method !== "GET") {
    // HEAD included: Elysia would run GET's handler and tell a secret's length.
    throw knownPath.test(exchange.path)
      ? new Fault("method_not_allowed", `method ${request.method.slice(0, 16)}`)
      : new Fault("not_found", "no such path");
  }
  const { headers } = request;
  if ((headers.get("content-length") ?? "0") !== "0" || headers.has("transfer-encoding")) {
    // Nobody will read it: what follows it on the connection is not to be trusted.
    exchange.closing = true;
    throw knownPath.test(exchange.path)
      ? new Fault("invalid_request", "a GET that announces a body")
      : new Fault("not_found", "no such path");
  }
}

/** Answers within the deadline, with what the work came to or what was thrown. */
async function served(
  keyhole: Keyhole,
  exchange: Exchange,
  route: string,
  work: Promise<Response>,
  deadline = requestDeadline,
): Promise<Response> {
  exchange.route = route;
  try {
    const response = await deadline.of(work);
    logRequest(keyhole, exchange, response.status);
    return response;
  } catch (error) {
    // An answer that comes too late still holds memory until its body is let go.
    void work.then((late) => late.body?.cancel()).catch(() => {});
    return failed(keyhole, exchange, error);
  }
}

const requestDeadline = deadlineOf(requestDeadlineMs);
const filesDeadline = deadlineOf(filesRequestDeadlineMs);

function deadlineOf(ms: number): Deadline {
  return new Deadline(ms, () => new Fault("unavailable", `the request took over ${ms} ms`));
}

function failed(keyhole: Keyhole, exchange: Exchange, thrown: unknown): Response {
  const fault = faultOf(thrown);
  const problem = problemOf(fault);
  // One 401, also for a key that ends while it is being served, after it was charged.
  if (fault.code === "unauthorized") exchange.rateLimit = undefined;
  exchange.bytes = Buffer.byteLength(problem.body);
  logRequest(keyhole, exchange, problem.status, fault);
  const headers = headersOf(exchange, jsonType);
  for (const name in problem.headers) headers[name] = problem.headers[name] as string;
  return new Response(problem.body, { status: problem.status, headers });
}

function logRequest(keyhole: Keyhole, exchange: Exchange, status: number, fault?: Fault): void {
  const endedAtMs = performance.now();
  keyhole.meter?.(exchange, status, fault?.code, endedAtMs);
  const traceId = keyhole.trace?.(exchange, status, fault?.code, endedAtMs);
  const defect = fault?.cause instanceof Error ? fault.cause : undefined;
  keyhole.log({
    event: "request",
    requestId: exchange.requestId,
    route: exchange.route,
    status,
    code: fault?.code,
    reason: fault?.message,
    defect: defect?.name,
    at: defect && firstFrame(defect),
    keyId: exchange.keyId,
    organizationId: exchange.organizationId,
    durationMs: Math.round((endedAtMs - exchange.startedAtMs) * 1000) / 1000,
    bytes: exchange.bytes,
    traceId,
  });
}

/** Where a defect arose: a place in our source. Its message may quote input and stays out of the log. */
function firstFrame(error: Error): string {
  return (
    error.stack
      ?.split("\n")
      .find((line) => line.trimStart().startsWith("at "))
      ?.trim() ?? "unknown"
  );
}

/** A slug that does not decode is null here, whatever the types say; it is then a slug that no project has. */
function slugOf(params: { readonly slug: string | null }): string {
  return params.slug ?? "";
}

function addressOf(address: string | undefined): string {
  return address?.replace(/^::ffff:(?=\d+\.)/, "") ?? "";
}
