import { threadUrl } from "../../thread-url.ts";

/** What the watchdog's thread is told every `everyMs` while the event loop runs. */
export type Alive = { readonly pretty: boolean; readonly everyMs: number };

/**
 * Starts a thread that ends this process, with one line in the log, if its event loop stands still for 10 s: such a
 * process answers neither requests nor signals. A malformed answer of the database does that to postgres.js 3.4.9.
 * @param everyMs - what counts as a second; tests take a shorter one
 */
export function startWatchdog(pretty: boolean, everyMs = 1000): void {
  const thread = new Worker(threadUrl("serve/process/watchdog-thread.ts"), { smol: true });
  thread.unref();
  const tell = () => thread.postMessage({ pretty, everyMs } satisfies Alive);
  tell();
  setInterval(tell, everyMs).unref();
}
