import { Fault } from "../../core/fault.ts";
import { atOnceBytesMax, jsonType } from "../../core/formats/json.ts";
import type { rateLimitHeaders } from "../limit/bucket.ts";
import { newStages } from "../sets/stages.ts";
import { isAmong, parseEtags } from "./etag.ts";
import { appliedHeader, parseWait } from "./prefer.ts";

/**
 * Begins an exchange with a request's address and headers.
 * @param clientAddress - who asks, by the socket or by a proxy; empty if there is no socket (tests)
 */
export function beginExchange(
  request: Request,
  clientAddress: () => string,
  closing: boolean,
  measured: { readonly stages: boolean; readonly traceparent: boolean },
) {
  const { url, headers } = request;
  const pathAt = url.indexOf("/", url.indexOf("://") + 3);
  const queryAt = url.indexOf("?", pathAt);
  const id = headers.get("x-request-id");
  const ifNoneMatch = parseEtags(headers.get("if-none-match"));
  return {
    requestId: id !== null && /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : crypto.randomUUID(),
    /** Monotonic milliseconds; of a read that waited, when it was judged last. */
    startedAtMs: performance.now(),
    path: url.slice(pathAt, queryAt < 0 ? undefined : queryAt),
    /** The query as it was sent, without its question mark. */
    rawQuery: queryAt < 0 ? "" : url.slice(queryAt + 1),
    presented: normalizeAuthorization(headers),
    /** Aborts when the client goes away. Made on first use, because most requests need none. */
    signal: () => request.signal,
    userAgent: headers.get("user-agent"),
    /** The tags of the answers that the client already has. */
    ifNoneMatch,
    /** How many seconds a conditional read may wait for a change. */
    waitS: ifNoneMatch && parseWait(headers.get("prefer")),
    clientAddress,
    /** Whether the answer closes its connection: the server is about to stop, or what follows cannot be trusted. */
    closing,
    /** Set when a recognized key has been charged. */
    rateLimit: undefined as ReturnType<typeof rateLimitHeaders> | undefined,
    /** What a tool refused, for the log: its protocol answers that with a 200. */
    refusal: undefined as Fault | undefined,
    /** For the log. */
    route: "none",
    keyId: undefined as string | undefined,
    /** Whether a token was presented, so that `keyId` is a trust's. */
    byToken: false,
    organizationId: undefined as string | undefined,
    /** Of the body; undefined if it is sent while it is made. */
    bytes: undefined as number | undefined,
    /** Undefined unless metrics or traces are kept. */
    stages: measured.stages ? newStages() : undefined,
    /** The caller's own trace, if traces are kept. */
    traceparent: measured.traceparent ? headers.get("traceparent") : null,
  };
}

/** One request and what is known of it so far. */
export type Exchange = ReturnType<typeof beginExchange>;

/**
 * Gate 1 beyond routing: only GET without a body; for the Model Context Protocol only POST.
 * @param knownPath - fits every path of the API
 * @param mcpPath - undefined unless the Model Context Protocol is spoken
 */
export function judgeTransport(
  { url, method, headers }: Pick<Request, "url" | "method" | "headers">,
  exchange: Exchange,
  knownPath: RegExp,
  mcpPath?: string,
): void {
  // With a malformed Host Bun's url is only a path, and none of it can be trusted.
  if (!url.startsWith("http")) throw new Fault("not_found", "malformed Host header");
  const isGet = method === "GET"; // Elysia would run GET's handler for HEAD, and the length tells something of a secret
  const hasBody = (headers.get("content-length") ?? "0") !== "0" || headers.has("transfer-encoding");
  const isMcp = exchange.path === mcpPath;
  if (isMcp ? method === "POST" : isGet && !hasBody) return;
  // Nobody will read the body, so what follows it on the connection cannot be trusted.
  if (isGet && hasBody) exchange.closing = true;
  if (isMcp) throw new Fault("method_not_allowed", `method ${method.slice(0, 16)}`, { method: "POST" });
  if (!knownPath.test(exchange.path)) throw new Fault("not_found", "no such path");
  if (isGet) throw new Fault("invalid_request", "a GET that announces a body", { body: "must be left out" });
  throw new Fault("method_not_allowed", `method ${method.slice(0, 16)}`);
}

/** What the headers of an answer are made of. */
type Answering = Pick<Exchange, "requestId" | "rateLimit" | "closing"> & Partial<Pick<Exchange, "waitS">>;

/** The headers of every answer, success or not. @param contentType - undefined for an answer without a body */
export function headersOf(
  { requestId, rateLimit, closing, waitS }: Answering,
  contentType: string | undefined,
  etag?: string,
) {
  const headers: Record<string, string> = {
    "x-request-id": requestId,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  };
  if (contentType !== undefined) headers["Content-Type"] = contentType;
  if (etag !== undefined) headers["ETag"] = etag;
  if (waitS !== undefined && etag !== undefined) headers[appliedHeader] = `wait=${waitS}`;
  if (rateLimit) Object.assign(headers, rateLimit);
  if (closing) headers["Connection"] = "close";
  return headers;
}

/** JSON text that holds no value: a 200, or a 304 if the client has it already. */
export function json(exchange: Exchange, body: string, etag?: string): Response {
  if (etag !== undefined && isAmong(etag, exchange.ifNoneMatch)) return notModified(exchange, etag);
  exchange.bytes = Buffer.byteLength(body);
  return whole(body, exchange.bytes, headersOf(exchange, jsonType, etag));
}

/** A 304: the client has this answer already. */
export function notModified(exchange: Exchange, etag: string): Response {
  exchange.bytes = 0;
  return new Response(null, { status: 304, headers: headersOf(exchange, undefined, etag) });
}

/**
 * Sends a 200 in the way that is cheapest in Bun 1.4.5: a body of more than 15 KiB costs 75 µs after an `await`, and 18
 * µs as a stream of one piece (measured with 35 KB).
 */
export function whole(body: string | Uint8Array, bytes: number, headers: Readonly<Record<string, string>>): Response {
  if (bytes <= atOnceBytesMax) return new Response(body, { headers });
  const stream = new ReadableStream<string | Uint8Array>({
    start(controller) {
      controller.enqueue(body);
      controller.close();
    },
  });
  return new Response(stream, { headers });
}

/** What the Authorization header of a request holds. */
type Presented =
  | { readonly kind: "nothing" }
  /** Not `Bearer` and one token. Bun joins repeated headers with a comma, which is not allowed in a token. */
  | { readonly kind: "malformed"; readonly text: string }
  | { readonly kind: "token" };

/**
 * Validates the Authorization header. Rewrites a valid one to exactly `Bearer TOKEN` and removes a malformed one:
 * @elysiajs/bearer knows only the spelling "Bearer", and reads "Bearerkh_x" as "h_x". It would accept a key from
 * `?access_token=`, too, which app.ts turns off.
 */
function normalizeAuthorization(headers: Headers): Presented {
  const header = headers.get("authorization");
  if (header === null) return { kind: "nothing" };
  const token = /^bearer +([\w.-]+)$/i.exec(header)?.[1];
  if (token === undefined) {
    headers.delete("authorization");
    return { kind: "malformed", text: header };
  }
  if (header !== `Bearer ${token}`) headers.set("authorization", `Bearer ${token}`);
  return { kind: "token" };
}
