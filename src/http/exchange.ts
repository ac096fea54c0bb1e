import type { AnnouncedPolicy, Decision, RateLimitHeaders } from "../limit/bucket.ts";
import { rateLimitHeaders } from "../limit/bucket.ts";
import { newStages, type Stages } from "../read/stages.ts";
import { nonportableHeader } from "../render/dotenv.ts";
import { judgeAuthorization, type Presented } from "./bearer.ts";

/** One request and what has become known of it; made when it arrives, gone when it is answered. */
export type Exchange = {
  readonly requestId: string;
  /** Monotonic milliseconds. */
  readonly startedAtMs: number;
  readonly path: string;
  /** The query as it was sent, without its question mark. */
  readonly rawQuery: string;
  readonly presented: Presented;
  /** Aborts when the client goes away. Made when it is first asked for: most requests are answered before anybody does. */
  readonly signal: () => AbortSignal;
  readonly userAgent: string | null;
  /** The socket's peer, or nothing where there is no socket (tests). */
  readonly clientAddress: () => string;
  /** The answer closes its connection: the server is about to stop, or what else comes on it is not to be trusted. */
  closing: boolean;
  /** RateLimit and RateLimit-Policy, once a recognized key has been charged. */
  rateLimit: RateLimitHeaders | undefined;
  /** For the log. */
  route: string;
  keyId: string | undefined;
  organizationId: string | undefined;
  /** Of the body, where it was made whole before it was sent. */
  bytes: number | undefined;
  /** Undefined where nobody measures. */
  readonly stages: Stages | undefined;
  /** The caller's own trace, where traces are kept. */
  readonly traceparent: string | null;
};

/** What is wanted of an exchange beside its answer. */
export type Wanted = { readonly stages: boolean; readonly traceparent: boolean };

/** Begins an exchange; the one place that reads a request's headers. */
export function beginExchange(
  request: Request,
  clientAddress: () => string,
  closing: boolean,
  wanted: Wanted,
): Exchange {
  const { url, headers } = request;
  const pathAt = url.indexOf("/", url.indexOf("://") + 3);
  const queryAt = url.indexOf("?", pathAt);
  const asked = headers.get("x-request-id");
  return {
    requestId: asked !== null && /^[A-Za-z0-9._-]{1,128}$/.test(asked) ? asked : crypto.randomUUID(),
    startedAtMs: performance.now(),
    path: url.slice(pathAt, queryAt < 0 ? undefined : queryAt),
    rawQuery: queryAt < 0 ? "" : url.slice(queryAt + 1),
    presented: judgeAuthorization(headers),
    signal: () => request.signal,
    userAgent: headers.get("user-agent"),
    clientAddress,
    closing,
    rateLimit: undefined,
    route: "none",
    keyId: undefined,
    organizationId: undefined,
    bytes: undefined,
    stages: wanted.stages ? newStages() : undefined,
    traceparent: wanted.traceparent ? headers.get("traceparent") : null,
  };
}

/** Notes what a bucket said, for the headers of whatever the answer will be. */
export function noteRateLimit(exchange: Exchange, policy: AnnouncedPolicy, decision: Decision, nowUs: number): void {
  exchange.rateLimit = rateLimitHeaders(policy, decision, nowUs);
}

/** The headers of every answer, success or not. */
export function headersOf({ requestId, rateLimit, closing }: Exchange, contentType: string): Record<string, string> {
  const headers: Record<string, string> = {
    "Content-Type": contentType,
    "x-request-id": requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  };
  if (rateLimit) {
    headers["RateLimit-Policy"] = rateLimit["RateLimit-Policy"];
    headers["RateLimit"] = rateLimit.RateLimit;
  }
  if (closing) headers["Connection"] = "close";
  return headers;
}

export const jsonType = "application/json; charset=utf-8";
export const textType = "text/plain; charset=utf-8";

/** A 200 of JSON text. */
export function json(exchange: Exchange, body: string | Uint8Array): Response {
  exchange.bytes = typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
  return new Response(asBody(body, exchange.bytes), { headers: headersOf(exchange, jsonType) });
}

/**
 * The body as Bun 1.4.5 sends it with the least work. What it can not put into its 16 KiB of output at once costs 75 µs
 * where the answer was awaited, and 18 µs as a stream of one piece (measured for 35 KB).
 */
function asBody(body: string | Uint8Array, bytes: number): string | Uint8Array | ReadableStream<Uint8Array> {
  if (bytes <= wholeBytesMax) return body;
  const piece = typeof body === "string" ? Buffer.from(body) : body;
  return new ReadableStream({
    start(controller) {
      controller.enqueue(piece);
      controller.close();
    },
  });
}

/** Up to so many bytes Bun sends at once what it has whole. */
export const wholeBytesMax = 15 * 1024;

/** A 200 of dotenv text, with the header that names what few readers read alike. */
export function envAnswer(
  exchange: Exchange,
  dotenv: { readonly text: string; readonly nonportable: readonly string[] },
): Response {
  const headers = headersOf(exchange, textType);
  const named = nonportableHeader(dotenv.nonportable);
  if (named !== undefined) headers["Keyhole-Env-Nonportable"] = named;
  exchange.bytes = Buffer.byteLength(dotenv.text);
  return new Response(asBody(dotenv.text, exchange.bytes), { headers });
}
