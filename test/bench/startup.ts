/**
 * Measures the time that `keyhole pull` itself takes: from the start of the process to its request, and from the end of the
 * answer to the end of the process. The time of server and network in between does not count.
 *
 *     bun test/bench/startup.ts [--runs 40] [--json]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { mintKey } from "../../src/access/api-key.ts";

/** The time that `keyhole pull` itself takes. */
export type Startup = { readonly medianMs: number; readonly p95Ms: number; readonly runs: number };

/** The target for the median. */
export const startupTargetMs = 60;

const binary = join(import.meta.dir, "../../dist/keyhole");

/**
 * Runs `dist/keyhole pull` repeatedly against a server that answers at once with twenty variables.
 * @throws Error if a run fails
 */
export async function measureStartup(runs: number): Promise<Startup> {
  const variables = Array.from({ length: 20 }, (_, at) => ({ key: `NAME_${at}`, value: `value ${at}`, updatedAt: 0 }));
  const body = JSON.stringify({ environment: "production", variables });
  let askedMs = 0;
  let answeredMs = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch() {
      askedMs = performance.now();
      queueMicrotask(() => {
        answeredMs = performance.now();
      });
      return new Response(body, { headers: { "Content-Type": "application/json" } });
    },
  });
  const env = { KEYHOLE_URL: server.url.origin, KEYHOLE_API_KEY: mintKey() };
  const tookMs: number[] = [];
  try {
    for (let run = 0; run < runs + warmUps; run++) {
      const startedMs = performance.now();
      const child = Bun.spawn([binary, "pull", "-p", "web", "-e", "production"], {
        env,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore",
      });
      if ((await child.exited) !== 0) throw new Error(`keyhole pull ended with ${child.exitCode}`);
      if (run >= warmUps) tookMs.push(askedMs - startedMs + (performance.now() - answeredMs));
    }
  } finally {
    await server.stop(true);
  }
  tookMs.sort((a, b) => a - b);
  const at = (part: number) => tookMs[Math.min(Math.floor(tookMs.length * part), tookMs.length - 1)] ?? Number.NaN;
  return { medianMs: at(0.5), p95Ms: at(0.95), runs };
}

/** Not measured, because the first runs read the program from disk. */
const warmUps = 3;

if (import.meta.main) {
  const { values } = parseArgs({ options: { runs: { type: "string", default: "40" }, json: { type: "boolean" } } });
  const runs = Number(values.runs);
  if (!Number.isSafeInteger(runs) || runs < 1) {
    console.error("--runs must be a whole number above 0");
    process.exit(2);
  }
  const startup = await measureStartup(runs);
  const words = `keyhole pull itself: median ${startup.medianMs.toFixed(1)} ms, p95 ${startup.p95Ms.toFixed(1)} ms (${runs} runs, target ${startupTargetMs} ms)`;
  console.log(values.json ? JSON.stringify({ ...startup, targetMs: startupTargetMs }) : words);
  if (startup.medianMs >= startupTargetMs) process.exit(1);
}
