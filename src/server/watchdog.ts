import { threadUrl } from "../thread-url.ts";
import { aliveEveryMs } from "./silence.ts";

/** What the watchdog's thread is told while the event loop runs. */
export type Alive = { readonly pretty: boolean };

/**
 * Starts a thread that ends this process, with one line in the log, if its event loop stands still for 10 s: then it
 * answers nobody, and no signal either. A malformed answer of the database does that to postgres.js 3.4.9.
 *
 * @param pretty - whether a person reads the log
 */
export function startWatchdog(pretty: boolean): void {
  const thread = new Worker(threadUrl("server/watchdog-thread.ts"), { smol: true });
  thread.unref();
  const tell = () => thread.postMessage({ pretty } satisfies Alive);
  tell();
  setInterval(tell, aliveEveryMs).unref();
}
