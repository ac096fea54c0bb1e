import { lookEveryMs, Pace } from "../limit/pace.ts";
import { type Share, smallReadBytesMax } from "../read/memory.ts";
import type { DotenvText } from "../render/dotenv.ts";
import { tidyAfter } from "../seal/tidy.ts";
import { type Exchange, envAnswer, headersOf, json, jsonType } from "./exchange.ts";
import type { Keyhole } from "./keyhole.ts";

/*
 * How values leave. Bun keeps a body that was handed over whole until the client has read it, and does not say when that
 * is; so only a small one is. A large one is made as it is taken, and its memory is given back when the last byte left,
 * the client is gone, or the client was cut off because it held up others.
 */

/** Bytes that leave at once, as much as a piece of a file has in base64. */
const pieceBytes = 256 * 1024;

/** How long somebody must have waited before a body is cut off: a short queue of quick readers is nobody's fault. */
const waitedMs = 1000;

/** Whether an answer is made whole: then its memory is given back with it. */
export function isWhole(share: Share): boolean {
  return share.bytes <= smallReadBytesMax;
}

/** One text for each item with commas between them, and what stands around: whole, or in pieces where that is large. */
export function listed<T>(
  share: Share,
  before: string,
  items: readonly T[],
  write: (item: T) => string,
  after: string,
): string | Iterable<string> {
  if (isWhole(share)) return `${before}${items.map(write).join(",")}${after}`;
  return enclosed(before, separated(items, write), after);
}

/** A 200 of JSON, which has what the share was taken for. */
export function jsonAnswer(
  keyhole: Keyhole,
  exchange: Exchange,
  body: string | Uint8Array | Iterable<string | Uint8Array>,
  share: Share,
): Response {
  if (typeof body === "string" || body instanceof Uint8Array) {
    const answer = json(exchange, body);
    if (body.length > smallReadBytesMax) return streamed(keyhole, exchange, answer.headers, [body], share);
    share.release();
    return answer;
  }
  return streamed(keyhole, exchange, headersOf(exchange, jsonType), body, share);
}

/** A 200 of dotenv text, which has what the share was taken for. */
export function dotenvAnswer(keyhole: Keyhole, exchange: Exchange, dotenv: DotenvText, share: Share): Response {
  const answer = envAnswer(exchange, dotenv);
  if (dotenv.text.length > smallReadBytesMax) {
    return streamed(keyhole, exchange, answer.headers, [dotenv.text], share);
  }
  share.release();
  return answer;
}

/**
 * A 200 whose body is made as fast as it is taken; its share is given back however it ends. While somebody waits for its
 * memory it must keep pace (`limit/pace.ts`): else its connection is reset, so that nobody takes what came for an answer.
 */
export function streamed(
  keyhole: Keyhole,
  exchange: Exchange,
  headers: Headers | Readonly<Record<string, string>>,
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
      pace.moved(bytes); // whoever asks for the next piece has taken the last one
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
    // Two halves of one character are encoded together.
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

/** What stands around a body's pieces. */
export function* enclosed<T>(before: T, pieces: Iterable<T>, after: T): Generator<T> {
  yield before;
  yield* pieces;
  yield after;
}

function* separated<T>(items: readonly T[], write: (item: T) => string): Generator<string> {
  let separator = "";
  for (const item of items) {
    yield `${separator}${write(item)}`;
    separator = ",";
  }
}
