import { setTimeout } from "node:timers/promises";
import { Fault } from "../../core/fault.ts";
import { jsonType } from "../../core/formats/json.ts";
import { listening } from "../../core/listening.ts";
import type { Log } from "../../core/log.ts";
import { Refused } from "../../core/refused.ts";
import type { Config } from "../../core/settings/settings.ts";
import { type Installation, OlderTables, openWithoutKeys } from "../../installation/installation.ts";
import { isMigrated } from "../../store/migrate.ts";
import { serveOptions } from "../api/app.ts";
import { problemOf } from "../api/problem.ts";
import { beginExchange, headersOf } from "../gates/exchange.ts";
import { openOps } from "./serve.ts";
import { listenOnSocket } from "./socket.ts";

/**
 * Opens an installation. If its tables are of an older program, it waits for `keyhole db upgrade`, and holds the
 * addresses of the server: every request gets 503 `unavailable`, and `/readyz` says why. So new servers can be started
 * before the upgrade, while older ones serve.
 *
 * @param listens - whether this process serves the API
 * @returns undefined if SIGTERM or SIGINT ended the wait
 * @throws what `open` throws; Refused if the tables became those of a newer program
 */
export async function openUpgraded(
  config: Config,
  listens: boolean,
  open: () => Promise<Installation>,
  log: Log,
  say: (line: string) => void,
): Promise<Installation | undefined> {
  const older = await open().catch((error: unknown) => {
    if (error instanceof OlderTables) return error;
    throw error;
  });
  if (!(older instanceof OlderTables)) return older;
  const reason = older.message;
  {
    await using held = await holdAddresses(config, listens, reason, log, say);
    const stop = new AbortController();
    for (const signal of ["SIGTERM", "SIGINT"] as const) {
      const onSignal = () => stop.abort();
      process.on(signal, onSignal);
      held.defer(() => void process.off(signal, onSignal));
    }
    say(`Waits for the upgrade. ${reason}`);
    log({ event: "readiness", ready: false, failed: ["migrations"], reason });
    await untilUpgraded(config, stop.signal);
    if (stop.signal.aborted) return undefined;
  }
  return open();
}

/** Looks each second. Then it waits once more: `db upgrade` gives roles their rights right after its transaction. */
async function untilUpgraded(config: Config, signal: AbortSignal): Promise<void> {
  await using database = openWithoutKeys(config);
  if (database === undefined) return;
  const rest = () => setTimeout(lookEveryMs, undefined, { signal }).catch(() => {});
  // A database that is away for a moment does not end the wait.
  const isDone = () =>
    isMigrated(database).catch((error: unknown) => {
      if (error instanceof Refused) throw error;
      return false;
    });
  do await rest();
  while (!signal.aborted && !(await isDone()));
  await rest();
}

const lookEveryMs = 1000;

/** Listens where the server will, and answers that it is not ready. */
async function holdAddresses(config: Config, listens: boolean, reason: string, log: Log, say: (line: string) => void) {
  await using held = new AsyncDisposableStack();
  const { host, port, socket, ops } = config;
  const fetch = (request: Request) => refuse(request, reason, log);
  if (listens && socket === undefined) {
    const api = listening(host, port, "--port", () => Bun.serve({ ...serveOptions(log), hostname: host, port, fetch }));
    held.defer(() => api.stop(true));
  } else if (listens && socket !== undefined) {
    const { server: api, remove } = listenOnSocket(socket, (unix) =>
      Bun.serve({ ...serveOptions(log), unix, fetch } as object as Bun.Serve.Options<undefined>),
    );
    held.defer(() => api.stop(true));
    held.defer(remove);
  }
  if (ops !== undefined) {
    const { summed } = await import("./metrics.ts");
    const now = { ready: false, draining: false, checks: { migrations: false }, away: {}, reason };
    const answers = { readiness: async () => now, metrics: () => summed([], now) };
    held.defer(openOps(ops, answers, say).stop);
  }
  return held.move();
}

/** The connection closes, so that the next request on it meets the server. */
function refuse(request: Request, reason: string, log: Log): Response {
  const exchange = beginExchange(request, () => "", true, { stages: false, traceparent: false });
  const { status, body, headers } = problemOf(new Fault("unavailable", reason));
  const { requestId, route } = exchange;
  log({ event: "request", requestId, route, status, code: "unavailable", reason, bytes: Buffer.byteLength(body) });
  return new Response(body, { status, headers: { ...headersOf(exchange, jsonType), ...headers } });
}
