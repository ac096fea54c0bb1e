/**
 * One run of autocannon in a separate process, so that its CPU time is not the benchmark's. Reads a {@link Load} as JSON
 * from standard input and prints a {@link Loaded}.
 */
import { readFileSync } from "node:fs";
import autocannon from "autocannon";
import { type Load, type Loaded, percentile, userAgent } from "./load.ts";

// autocannon builds every request before it starts, so a long list is cut to what one run can send.
const requestsMax = 60_000;

const load = (await Bun.stdin.json()) as Load;
const { connections, from } = load;
const lines = readFileSync(load.list, "utf8").trimEnd().split("\n");
const requestsEach = Math.ceil(Math.min(lines.length, requestsMax) / connections);
let clients = 0;
let refused = 0;
let bytes = 0;
const durationsMs: number[] = [];

const { duration, errors, timeouts } = await autocannon({
  url: load.origin,
  connections,
  duration: load.seconds,
  timeout: load.timeoutS,
  setupClient: (client) => {
    const first = from + clients++;
    client.setRequests(
      Array.from({ length: requestsEach }, (_, turn) => {
        const [path = "", key = "", tag] = (lines[(first + turn * connections) % lines.length] as string).split(" ");
        const condition = tag !== undefined && { "if-none-match": tag };
        return {
          method: "GET",
          path,
          headers: { authorization: `Bearer ${key}`, "user-agent": userAgent, ...condition },
        };
      }),
    );
    client.on("response", (status, length, durationMs) => {
      if (status !== 200 && status !== 304) refused += 1;
      bytes += length;
      durationsMs.push(durationMs);
    });
  },
});

durationsMs.sort((a, b) => a - b);
const loaded: Loaded = {
  requests: durationsMs.length,
  seconds: duration,
  p50Ms: percentile(durationsMs, 0.5),
  p99Ms: percentile(durationsMs, 0.99),
  bytes,
  refused,
  failed: errors + timeouts,
};
process.stdout.write(JSON.stringify(loaded));
