import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { usageProblem } from "../problem.ts";
import { type Surroundings, unreadable } from "./command.ts";

/**
 * The events in a log of `serve`, in its JSON form or its terminal form. Other lines are skipped, and so is text before
 * an event on its line, such as a container's name or a date.
 *
 * @param path - a file, or `-` for stdin
 * @throws Problem if it cannot be read
 */
export async function* logEvents(here: Surroundings, path: string): AsyncGenerator<Readonly<Record<string, unknown>>> {
  const { stdin } = here.terminal;
  if (path === "-" && stdin.isTTY) {
    throw usageProblem("Stdin is a terminal: use a pipe, or name the log file.");
  }
  try {
    const input = path === "-" ? stdin : createReadStream(path);
    // The readline interface does not report its stream's error.
    const failed = new Promise<never>((_, reject) => input.once("error", reject));
    failed.catch(() => {});
    const lines = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })[Symbol.asyncIterator]();
    for (;;) {
      const next = await Promise.race([lines.next(), failed]);
      if (next.done) return;
      const event = eventOf(next.value);
      if (event) yield event;
    }
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** The event on a line, if there is one. */
export function eventOf(line: string): Readonly<Record<string, unknown>> | undefined {
  const json = line.indexOf('{"time":');
  if (json < 0) return shownOnTerminal(line);
  try {
    const event: unknown = JSON.parse(line.slice(json));
    return typeof event === "object" && event !== null ? (event as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // cut off: the disk was full or the process was killed
  }
}

/** Every field of the log's events. A value may hold blanks, so it ends where the next field begins. */
const fields =
  "requestId|route|status|code|reason|defect|at|keyId|organizationId|bytes|durationMs|suppressed|lane|seq|mac";
const shown = /(\d\d:\d\d:\d\d\.\d{3}) (request|checkpoint) (.*)$/;
const field = new RegExp(`(?:^| )(${fields})=(.*?)(?= (?:${fields})=|$)`, "g");
const numbers = new Set(["status", "bytes", "durationMs", "suppressed", "seq"]);

function shownOnTerminal(line: string): Readonly<Record<string, unknown>> | undefined {
  const [, time, event, rest = ""] = shown.exec(line) ?? [];
  if (time === undefined) return undefined;
  const values = [...rest.matchAll(field)].map(([, name = "", value = ""]) => [
    name,
    numbers.has(name) ? Number(value) : value,
  ]);
  return { time, event, ...Object.fromEntries(values) };
}
