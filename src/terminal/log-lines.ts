import { attempt } from "../core/attempt.ts";

/** An event of the server's log. */
export type LogEvent = Readonly<Record<string, unknown>>;

/**
 * The events in a log of `serve`, in its JSON form or its terminal form. Other lines are skipped, and so is text before
 * an event on its line, such as a container's name.
 */
export async function* logEvents(lines: AsyncIterable<string>): AsyncGenerator<LogEvent> {
  for await (const line of lines) {
    const event = jsonEvent(line) ?? terminalEvent(line);
    if (event !== undefined) yield event;
  }
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
