import { bearer } from "@elysiajs/bearer";
import { Elysia } from "elysia";
import { callerOf } from "../../core/addresses.ts";
import { Deadline } from "../../core/deadline.ts";
import { Fault } from "../../core/fault.ts";
import { jsonType } from "../../core/formats/json.ts";
import { listenerOptions } from "../../core/listening.ts";
import type { Log } from "../../core/log.ts";
import { kindEndpoints } from "../../kinds/endpoints.ts";
import type { ApiParts } from "../gates/api-parts.ts";
import type { Endpoint } from "../gates/endpoint.ts";
import { beginExchange, type Exchange, headersOf, judgeTransport } from "../gates/exchange.ts";
import { answeringAlone } from "./alone.ts";
import { defectOf, problemOf } from "./problem.ts";
import { endpoints as projectEndpoints } from "./projects.ts";

export const apiRoot = "/api/v1";

/**
 * The API as a function of a request; it listens on nothing. Hooks set up and catch, they never judge: the order of
 * judgement is the order of the lines in each endpoint's function.
 */
export function createApp(parts: ApiParts) {
  const app = new Elysia({
    strictPath: true,
    normalize: false,
    // By default Elysia looks for the path from the eleventh character on, which a short Host moves.
    handler: { standardHostname: false },
  });
  let isNoted = false;
  const noteProxy = (peer: string) => {
    if (!isNoted) parts.log({ event: "proxy_not_trusted", address: peer, reason: notTrusted });
    isNoted = true;
  };
  const measured = { stages: (parts.meter ?? parts.trace) !== undefined, traceparent: parts.trace !== undefined };
  const prepared = app
    .decorate("exchange", undefined as unknown as Exchange)
    .onRequest((context) => {
      const { request } = context;
      // The plugin reads it if the header has no key. In the built program Elysia may not see that, and leave it out.
      // If the context were passed to a function, Elysia would parse cookies and copy each Response.
      (context as { query?: typeof noQuery }).query = noQuery;
      let caller: string | undefined;
      const address = () => {
        if (caller !== undefined) return caller;
        const peer = app.server?.requestIP(request)?.address.replace(/^::ffff:(?=\d+\.)/, "") ?? "";
        const forwardedFor = request.headers.get("x-forwarded-for");
        caller = parts.proxies === undefined ? peer : callerOf(peer, forwardedFor, parts.proxies);
        if (forwardedFor !== null && caller === peer) noteProxy(peer);
        return caller;
      };
      context.exchange = beginExchange(request, address, parts.draining(), measured);
      judgeTransport(request, context.exchange, knownPath, parts.mcp && mcpPath);
    })
    .onError({ as: "global" }, ({ error, code, exchange }) =>
      failed(parts, exchange, code === "NOT_FOUND" ? new Fault("not_found", "no such path") : error),
    )
    .use(bearer({ extract: { query: Symbol("off") as never } }));
  const alone = answeringAlone();
  for (const { path, get, timeoutMs } of endpoints) {
    const deadline = timeoutMs === undefined ? requestDeadline : deadlineOf(timeoutMs);
    prepared.get(apiRoot + path.replace("{slug}", ":slug"), ({ exchange, bearer, params }) => {
      exchange.route = path;
      // A slug that does not decode is null, and no project has an empty one.
      const { slug } = (params ?? {}) as { readonly slug?: string | null };
      const work = (own: ApiParts) => alone(own, exchange, (...given) => get(...given, bearer, slug ?? ""));
      const judge = (own: ApiParts) => within(deadline, work(own));
      return answered(parts, exchange, parts.waits.answer(parts, exchange, judge));
    });
  }
  const { mcp } = parts;
  if (mcp !== undefined) {
    prepared.post(
      mcpPath,
      ({ exchange, bearer, request }) => {
        exchange.route = mcpPath;
        return answered(parts, exchange, within(requestDeadline, mcp(parts, exchange, bearer, request)));
      },
      { parse: "none" }, // the endpoint reads the body itself, whatever its type
    );
  }
  return prepared;
}

const notTrusted =
  "a request came with X-Forwarded-For: if this is your proxy, KEYHOLE_TRUSTED_PROXIES must name it, or its address is on record in place of its clients'";

/** Where the Model Context Protocol is spoken, if it is turned on. */
export const mcpPath = "/mcp";

/** What the API answers. */
export const endpoints: readonly Endpoint[] = [...projectEndpoints, ...kindEndpoints];
/** Below {@link apiRoot}, with their parameters. */
export const endpointPaths: readonly string[] = endpoints.map(({ path }) => path);

const noQuery: Readonly<Record<string, never>> = Object.freeze({});

/** Bun.serve's options beside address and port. Elysia's and Bun's defaults are unsafe here. */
export function serveOptions(log: Log) {
  return {
    ...listenerOptions,
    maxRequestBodySize: 16 * 1024,
    // What no handler caught. Bun does not say of which request.
    error: (thrown: unknown) => {
      const requestId = crypto.randomUUID();
      log({ event: "request", requestId, route: "none", status: 500, code: "internal_error", ...defectOf(thrown) });
      const { body, status } = problemOf(new Fault("internal_error", "a defect"));
      const exchange = { requestId, rateLimit: undefined, closing: false };
      return new Response(body, { status, headers: headersOf(exchange, jsonType) });
    },
  };
}

const knownPath = new RegExp(`^${apiRoot}(?:${endpointPaths.join("|").replaceAll("{slug}", "[^/]+")})$`);

/** @throws Fault `unavailable` if the deadline is over */
function within(deadline: Deadline, work: Promise<Response>): Promise<Response> {
  const late = () => void work.then(({ body }) => body?.cancel()).catch(() => {}); // it holds memory
  return deadline.of(work, late);
}

/** Answers what the work returns, or the problem that was thrown. */
async function answered(parts: ApiParts, exchange: Exchange, work: Promise<Response>) {
  try {
    const response = await work;
    logRequest(parts, exchange, response.status, exchange.refusal);
    return response;
  } catch (error) {
    return failed(parts, exchange, error);
  }
}

const requestDeadline = deadlineOf(5000);

function deadlineOf(ms: number): Deadline {
  return new Deadline(ms, () => new Fault("unavailable", `the request took over ${ms} ms`));
}

function failed(parts: ApiParts, exchange: Exchange, thrown: unknown): Response {
  const fault = thrown instanceof Fault ? thrown : new Fault("internal_error", "a defect", {}, { cause: thrown });
  const problem = problemOf(fault);
  // A key that ends while it is being served was charged, and gets the same 401 as any other.
  if (fault.code === "unauthorized") exchange.rateLimit = undefined;
  exchange.bytes = Buffer.byteLength(problem.body);
  logRequest(parts, exchange, problem.status, fault);
  const headers = { ...headersOf(exchange, jsonType), ...problem.headers };
  return new Response(problem.body, { status: problem.status, headers });
}

function logRequest(parts: ApiParts, exchange: Exchange, status: number, fault?: Fault): void {
  const endedAtMs = performance.now();
  parts.meter?.(exchange, status, fault?.code, endedAtMs);
  const traceId = parts.trace?.(exchange, status, fault?.code, endedAtMs);
  // An error with a code is a failure of the database or the system, and no bug.
  const isDefect = fault?.code === "internal_error" || (fault?.cause instanceof Error && !("code" in fault.cause));
  parts.log({
    event: "request",
    requestId: exchange.requestId,
    route: exchange.route,
    status,
    code: fault?.code,
    reason: fault?.message,
    ...(isDefect && defectOf(fault?.cause)),
    [exchange.byToken ? "trustId" : "keyId"]: exchange.keyId,
    organizationId: exchange.organizationId,
    durationMs: Math.round((endedAtMs - exchange.startedAtMs) * 1000) / 1000,
    bytes: exchange.bytes,
    traceId,
  });
}
