import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Processes } from "./processes.ts";

/** What to send, to whom, for how long. Connections stay open, and each sends its next request when it was answered. */
export type Load = {
  readonly origin: string;
  readonly connections: number;
  /** Whole seconds. */
  readonly seconds: number;
  /** A file of requests, one on each line: path, blank, API key. Connections take the next line in turn, round and round. */
  readonly list: string;
  /** The line to start at, from 0. */
  readonly from: number;
  /** A request that takes longer counts as failed. */
  readonly timeoutS: number;
};

/** What came of it. */
export type Loaded = {
  /** Answered requests. */
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Received, header fields included. */
  readonly bytes: number;
  /** Answers that were no 200. */
  readonly refused: number;
  /** Connections that failed or broke, and requests that took too long. */
  readonly failed: number;
};

export type LoadGenerator = {
  /** Its name and version. */
  readonly name: string;
  readonly run: (load: Load) => Promise<Loaded>;
};

/** What the requests call themselves; it is part of every audit entry. */
export const userAgent = "keyhole-bench/1";

/**
 * wrk where it is installed, else autocannon, which is a development dependency.
 * @param wanted - one of the two by name; undefined: whichever there is
 * @throws Error where wrk is wanted and not installed
 */
export function openLoadGenerator(processes: Processes, folder: string, wanted: string | undefined): LoadGenerator {
  const path = Bun.which("wrk");
  if (wanted === "wrk" && !path) throw new Error("wrk is not installed.");
  return path && wanted !== "autocannon" ? wrk(processes, folder, path) : autocannonChild(processes);
}

/** The value below which that share of the sorted numbers lies. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/**
 * One thread, which on two cores leaves the other to the server. A `response` function in Lua, the only way to see each
 * status, would make wrk keep every body and halve the floors: it counts what is 400 and above by itself, and an answer
 * shorter than it should be shows in the bytes.
 */
const wrkScript = `
local paths, keys, count, at, rest = {}, {}, 0, 0, ""
function init(args)
  for line in io.lines(args[1]) do
    count = count + 1
    paths[count], keys[count] = line:match("^(%S+) (%S+)$")
  end
  at = tonumber(args[2])
  rest = "\\r\\nUser-Agent: " .. args[4] .. "\\r\\n\\r\\n"
  host = " HTTP/1.1\\r\\nHost: " .. args[3] .. "\\r\\nAuthorization: Bearer "
end
function request()
  at = at % count + 1
  return "GET " .. paths[at] .. host .. keys[at] .. rest
end
function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\\n{"requests":%d,"seconds":%.6f,"p50Ms":%.3f,"p99Ms":%.3f,"bytes":%.0f,"refused":%d,"failed":%d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    summary.bytes, e.status, e.connect + e.read + e.write + e.timeout))
end
`;

function wrk(processes: Processes, folder: string, path: string): LoadGenerator {
  const script = join(folder, "load.lua");
  writeFileSync(script, wrkScript);
  // It prints its version with exit code 1.
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
      if (line === undefined) throw new Error(`wrk gave no result: ${output.slice(-500)}`);
      return JSON.parse(line) as Loaded;
    },
  };
}

function autocannonChild(processes: Processes): LoadGenerator {
  const { version } = require("autocannon/package.json") as { version: string };
  return {
    name: `autocannon ${version}`,
    run: async (load) => {
      const command = [process.execPath, "--no-env-file", join(import.meta.dir, "autocannon-child.ts")];
      const deadlineMs = (load.seconds + load.timeoutS) * 1000 + 15_000;
      return JSON.parse(await processes.run(command, { input: JSON.stringify(load), deadlineMs })) as Loaded;
    },
  };
}
