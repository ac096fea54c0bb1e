import { fullGC } from "bun:jsc";
import type { Body } from "../../core/held.ts";
import type { Log } from "../../core/log.ts";
import { type Share, smallBytesMax } from "../limit/budget.ts";
import { lookEveryMs, Pace } from "../limit/pace.ts";
import { type Exchange, headersOf, whole } from "./exchange.ts";

/*
 * How values leave. Bun keeps a whole body until the client has read it, and does not say when that is. So only small
 * bodies are sent whole. A large one is made as fast as the client reads it, and its memory is given back when the last
 * byte has left, when the client has gone, or when the client is cut off because it holds up others.
 */

/** Bytes that leave at once. */
const pieceBytes = 256 * 1024;

/** How long another request must have waited before a body is cut off: a short queue of fast readers needs no cut. */
const waitedMs = 1000;

type Logger = { readonly log: Log };

/** A 200 with the body that the share was taken for. */
export function answer(parts: Logger, exchange: Exchange, body: Body, share: Share, etag: string): Response {
  const { content, contentType } = body;
  const headers = { ...headersOf(exchange, contentType, etag), ...body.headers };
  if (typeof content !== "string" && !(content instanceof Uint8Array)) {
    if (share.amount > smallBytesMax) return streamed(parts, exchange, headers, content, share);
    return answer(parts, exchange, { ...body, content: [...content].join("") }, share, etag);
  }
  exchange.bytes = Buffer.byteLength(content);
  if (exchange.bytes > smallBytesMax) return streamed(parts, exchange, headers, [content], share);
  share.release();
  return whole(content, exchange.bytes, headers);
}

/**
 * A 200 whose body is made as fast as it is read. If the client is too slow (`serve/limit/pace.ts`) while a request waits for
 * memory, the connection is reset, so that the client cannot take a part for the whole.
 */
function streamed(
  parts: Logger,
  exchange: Exchange,
  headers: Readonly<Record<string, string>>,
  body: Iterable<string | Uint8Array>,
  share: Share,
): Response {
  const pieces = sized(body);
  const pace = new Pace(share.amount);
  let bytes = 0;
  let watch: ReturnType<typeof setInterval> | undefined;
  let ended = false;
  const end = () => {
    ended = true;
    clearInterval(watch);
    pieces.return(undefined);
    tidyAfter(share.amount);
    share.release();
  };
  const stream = new ReadableStream<string | Uint8Array>({
    start(controller) {
      watch = setInterval(() => {
        if (!pace.look() || share.waitedForMs() < waitedMs) return;
        end();
        controller.error(new Error("cut off: others wait for its memory"));
        const { requestId, route, keyId, byToken } = exchange;
        parts.log({ event: "cut", requestId, [byToken ? "trustId" : "keyId"]: keyId, route });
      }, lookEveryMs);
      watch.unref();
    },
    async pull(controller) {
      // Bun asks for the next 4 MiB at once. Small requests take turns with the pieces.
      await new Promise(setImmediate);
      if (ended) return;
      pace.moved(bytes); // a client that asks for the next piece has taken the last one
      try {
        const { value, done } = pieces.next();
        if (!done) {
          bytes = value.length;
          return controller.enqueue(value);
        }
      } catch (error) {
        end();
        throw error;
      }
      end();
      controller.close();
    },
    cancel: end,
  });
  return new Response(stream, { headers });
}

/** The same bytes in pieces that are neither so small that each costs a turn nor so large that they fill memory. */
function* sized(pieces: Iterable<string | Uint8Array>): Generator<string | Uint8Array, undefined> {
  let text = "";
  for (const piece of pieces) {
    const isText = typeof piece === "string" && piece.length <= pieceBytes;
    if (isText && text.length + piece.length <= pieceBytes) {
      text += piece;
      continue;
    }
    if (text !== "") yield text;
    text = isText ? piece : "";
    if (!isText) yield* chunksOf(piece);
  }
  if (text !== "") yield text;
}

function* chunksOf(piece: string | Uint8Array): Generator<Uint8Array> {
  const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
}

/** The collector is late with large values: 64 callers of 8 MiB files made the process 100 to 200 MiB larger. */
const collectAfterBytes = 128 * 1024 * 1024;

let bytesSince = 0;

/** Notes that large values are no longer used. After every 128 MiB it collects garbage: 13 to 15 ms with 64 callers. */
function tidyAfter(bytes: number): void {
  bytesSince += bytes;
  if (bytesSince < collectAfterBytes) return;
  bytesSince = 0;
  fullGC();
}
