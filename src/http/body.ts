import type { Body } from "../held.ts";
import { type Share, smallBytesMax } from "../limit/budget.ts";
import { lookEveryMs, Pace } from "../limit/pace.ts";
import { tidyAfter } from "../tidy.ts";
import { type Exchange, headersOf, whole } from "./exchange.ts";

/*
 * How values leave. Bun keeps a body that it was given whole until the client has read it, and does not say when that
 * is, so only small ones are. A large body is made as fast as the client takes it. Its memory is given back when the last
 * byte has left, when the client is gone, or when the client is cut off because it holds up others.
 */

/** Bytes that leave at once, as much as a piece of a file has in base64. */
const pieceBytes = 256 * 1024;

/** How long someone must have waited before a body is cut off: a short queue of quick readers needs no cut. */
const waitedMs = 1000;

type Logger = { readonly log: (event: Readonly<Record<string, unknown>>) => void };

/** A 200 with what the share was taken for. */
export function answer(keyhole: Logger, exchange: Exchange, body: Body, share: Share): Response {
  const { content, contentType } = body;
  const headers = headersOf(exchange, contentType);
  for (const name in body.headers) headers[name] = body.headers[name] as string;
  if (typeof content === "string" || content instanceof Uint8Array) {
    exchange.bytes = typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
    if (exchange.bytes <= smallBytesMax) {
      share.release();
      return whole(content, exchange.bytes, headers);
    }
    return streamed(keyhole, exchange, headers, [content], share);
  }
  return streamed(keyhole, exchange, headers, content, share);
}

/**
 * A 200 whose body is made as fast as it is taken. However it ends, its share is given back. While another request waits
 * for memory it must keep pace (`limit/pace.ts`); if not, its connection is reset, so that nobody takes a part for the
 * whole.
 */
function streamed(
  keyhole: Logger,
  exchange: Exchange,
  headers: Readonly<Record<string, string>>,
  body: Iterable<string | Uint8Array>,
  share: Share,
): Response {
  const pieces = sized(body);
  const pace = new Pace(share.bytes);
  let bytes = 0;
  let watch: ReturnType<typeof setInterval> | undefined;
  const end = () => {
    clearInterval(watch);
    pieces.return(undefined);
    tidyAfter(share.bytes);
    share.release();
  };
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      watch = setInterval(() => {
        if (!pace.look() || share.waitedForMs() < waitedMs) return;
        end();
        controller.error(new Error("cut off: others wait for its memory"));
        keyhole.log({ event: "cut", requestId: exchange.requestId, keyId: exchange.keyId, route: exchange.route });
      }, lookEveryMs);
      watch.unref();
    },
    pull(controller) {
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
function* sized(pieces: Iterable<string | Uint8Array>): Generator<Uint8Array, undefined> {
  let small = "";
  for (const piece of pieces) {
    if (typeof piece === "string" && small.length + piece.length <= pieceBytes) {
      small += piece;
      continue;
    }
    if (small !== "") yield encoder.encode(small);
    small = "";
    yield* typeof piece === "string" ? slicesOf(piece) : chunksOf(piece);
  }
  if (small !== "") yield encoder.encode(small);
}

function* slicesOf(text: string): Generator<Uint8Array> {
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + pieceBytes, text.length);
    // Both halves of a surrogate pair are encoded together.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to += 1;
    yield encoder.encode(text.slice(from, to));
    from = to;
  }
}

function* chunksOf(bytes: Uint8Array): Generator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}

const encoder = new TextEncoder();
