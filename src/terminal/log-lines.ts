import { attempt } from "../core/attempt.ts";
import { exits, Problem } from "../core/problem.ts";

/** An event of the server's log. */
export type LogEvent = Readonly<Record<string, unknown>>;

/**
 * The events in a log of `serve`, in its JSON form or its terminal form. Other lines are skipped, and so is text before
 * an event on its line, such as a container's name.
 */
export async function* logEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<LogEvent> {
  for await (const line of linesOf(chunks)) {
    const event = jsonEvent(line) ?? terminalEvent(line);
    if (event !== undefined) yield event;
  }
}

/** The lines of a text of any length: of each, the first 64 KiB. */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const start = Buffer.alloc(lineBytesMax);
  let length = 0;
  const line = () => start.toString("utf8", 0, length).replace(/\r$/, "");
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; ) {
      const end = chunk.indexOf(0x0a, at);
      start.set(chunk.subarray(at, Math.min(end < 0 ? chunk.length : end, at + lineBytesMax - length)), length);
      length = Math.min(length + (end < 0 ? chunk.length : end) - at, lineBytesMax);
      if (end < 0) break;
      yield line();
      length = 0;
      at = end + 1;
    }
  }
  if (length > 0) yield line();
}

/** The lines of a text of any length, whole. @throws Problem if one is longer than 64 MiB */
export async function* longLinesOf(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let [parts, length]: [Uint8Array[], number] = [[], 0];
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, at)) {
      yield Buffer.concat([...parts, chunk.subarray(at, end)]).toString();
      [parts, length, at] = [[], 0, end + 1];
    }
    parts.push(chunk.subarray(at));
    length += chunk.length - at;
    if (length > longLineBytesMax) throw new Problem(exits.refused, "bound", "A line has more than 64 MiB.");
  }
  if (length > 0) yield Buffer.concat(parts).toString();
}

const longLineBytesMax = 64 * 1024 * 1024;
/** Enough for an event of the log. */
const lineBytesMax = 64 * 1024;

function jsonEvent(line: string): LogEvent | undefined {
  const start = line.indexOf('{"time":');
  // A line is cut off if the disk was full or the process was killed.
  return start < 0 ? undefined : attempt(() => JSON.parse(line.slice(start)));
}

/** A value may hold blanks, so it ends where the next field begins. */
function terminalEvent(line: string): LogEvent | undefined {
  const [, time, event, rest = ""] = /(\d\d:\d\d:\d\d\.\d{3}) (request|checkpoint) (.*)$/.exec(line) ?? [];
  if (time === undefined) return undefined;
  const fields = [...rest.matchAll(/(?:^| )(\w+)=(.*?)(?= \w+=|$)/g)].map(([, name = "", value = ""]) => [
    name,
    numbers.has(name) ? Number(value) : value,
  ]);
  return { time, event, ...Object.fromEntries(fields) };
}

const numbers = new Set(["status", "bytes", "durationMs", "suppressed", "seq"]);
