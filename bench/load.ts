import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { findProgram } from "../test/support/programs.ts";
import type { Processes } from "./processes.ts";

/** A load. Connections stay open, and each sends its next request when the last one was answered. */
export type Load = {
  readonly origin: string;
  readonly connections: number;
  /** Whole seconds. */
  readonly seconds: number;
  /**
   * A file with one request per line: path, API key and, if it is conditional, a tag, with spaces between them. The
   * connections share it and start over at its end.
   */
  readonly list: string;
  /** The line to start at; 0 is the first. */
  readonly from: number;
  /** A request that takes longer counts as failed. */
  readonly timeoutS: number;
};

/** The result of a load. */
export type Loaded = {
  /** Answered requests. */
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Bytes received, including headers. */
  readonly bytes: number;
  /** Answers other than 200 and 304. */
  readonly refused: number;
  /** Failed connections, and requests that timed out. */
  readonly failed: number;
};

export type LoadGenerator = {
  /** Name and version. */
  readonly name: string;
  readonly run: (load: Load) => Promise<Loaded>;
};

/** The user agent of all requests; it is part of every audit entry. */
const userAgent = "keyhole-bench/1";

/** The value below which this share of the sorted numbers lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/**
 * One thread, which on two cores leaves the other to the server. A Lua function `response` could check each status, but
 * makes wrk keep every body, which halves the floors. wrk itself counts statuses of 400 and above, and short answers
 * show in the number of bytes.
 */
const wrkScript = `
local paths, keys, tags, count, at, rest = {}, {}, {}, 0, 0, ""
function init(args)
  for line in io.lines(args[1]) do
    count = count + 1
    local path, key, tag = line:match("^(%S+) (%S+) ?(%S*)$")
    paths[count], keys[count], tags[count] = path, key, tag == "" and "" or "\\r\\nIf-None-Match: " .. tag
  end
  at = tonumber(args[2])
  rest = "\\r\\nUser-Agent: " .. args[4] .. "\\r\\n\\r\\n"
  host = " HTTP/1.1\\r\\nHost: " .. args[3] .. "\\r\\nAuthorization: Bearer "
end
function request()
  at = at % count + 1
  return "GET " .. paths[at] .. host .. keys[at] .. tags[at] .. rest
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"bytes":%.0f,"refused":%d,"failed":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.bytes, e.status, e.connect + e.read + e.write + e.timeout))
end
`;

/** @throws Error if wrk is not installed */
export function openLoadGenerator(processes: Processes, folder: string): LoadGenerator {
  const path = findProgram("wrk");
  if (path === undefined) throw new Error("wrk is not installed: on Debian, apt-get install wrk.");
  const script = join(folder, "load.lua");
  writeFileSync(script, wrkScript);
  // wrk prints its version and exits with code 1.
  const version = /^wrk (\S+)/.exec(Bun.spawnSync([path, "--version"]).stdout.toString())?.[1] ?? "";
  return {
    name: `wrk ${version}`.trim(),
    run: async ({ origin, connections, seconds, list, from, timeoutS }) => {
      const options = ["-t1", `-c${connections}`, `-d${seconds}s`, "--timeout", `${timeoutS}s`, "-s", script];
      const output = await processes.run(
        [path, ...options, origin, "--", list, String(from), new URL(origin).host, userAgent],
        { deadlineMs: (seconds + timeoutS) * 1000 + 5000 },
      );
      const line = output.split("\n").find((text) => text.startsWith("{"));
      if (line === undefined) throw new Error(`wrk printed no result: ${output.slice(-500)}`);
      return JSON.parse(line) as Loaded;
    },
  };
}
