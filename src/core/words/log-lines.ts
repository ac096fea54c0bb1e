import { attempt } from "../attempt.ts";

/** An event of the server's log. */
export type LogEvent = Readonly<Record<string, unknown>>;

/**
 * The events in a log of `serve`, in its JSON form or its terminal form. Other lines are skipped, and so is text before
 * an event on its line, such as a container's name.
 */
export async function* logEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<LogEvent> {
  for await (const bytes of linesOf(chunks)) {
    const line = bytes.toString();
    const event = jsonEvent(line) ?? terminalEvent(line);
    if (event !== undefined) yield event;
  }
}

/** The lines of a text of any length. @param bytesMax - how much is kept of each; by default, enough for an event */
export async function* linesOf(chunks: AsyncIterable<Uint8Array>, bytesMax: number = 64 * 1024) {
  let [parts, length]: [Uint8Array[], number] = [[], 0];
  const keep = (bytes: Uint8Array) => {
    if (length === bytesMax) return;
    parts.push(bytes.subarray(0, bytesMax - length));
    length = Math.min(length + bytes.length, bytesMax);
  };
  const line = () => {
    const bytes = Buffer.concat(parts);
    return bytes.at(-1) === 0x0d ? bytes.subarray(0, -1) : bytes;
  };
  for await (const chunk of chunks) {
    let at = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, at)) {
      keep(chunk.subarray(at, end));
      yield line();
      [parts, length, at] = [[], 0, end + 1];
    }
    keep(chunk.subarray(at));
  }
  if (length > 0) yield line();
}

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
