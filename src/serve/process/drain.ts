import type { Server } from "bun";
import { atMost } from "../../core/deadline.ts";

/** Stops a server without dropping a request. */
export class Drain {
  readonly #waits: { readonly end: () => void };
  #draining = false;
  #pause: PromiseWithResolvers<void> | undefined;
  #held = 0;

  /** @param waits - the requests that wait for a change; their clients ask another server */
  constructor(waits: { readonly end: () => void }) {
    this.#waits = waits;
  }

  /** Whether answers close their connections. */
  readonly draining = (): boolean => this.#draining;

  /** Resolves when the port is closed; undefined unless it is closing. The request that asks waits for it. */
  readonly untilPortCloses = (): Promise<void> | undefined => {
    if (this.#pause) this.#held += 1;
    return this.#pause?.promise;
  };

  /**
   * From now on answers close their connections. Then the port closes, and requests under way are finished. Connections
   * that are still open after 20 s are cut.
   * @param portClosed - resolves when every process that shares the port has closed it
   */
  async stop(server: Server<unknown>, portClosed: () => Promise<void> = async () => {}): Promise<void> {
    this.#draining = true;
    this.#waits.end();
    // Lets connected clients send their next request and learn that the connection closes.
    await Bun.sleep(noticeMs);
    // An answered client connects again at once, and closing the port resets a connection that has sent nothing. So new
    // requests wait until each open connection has sent one, and are answered once the port is closed.
    this.#pause = Promise.withResolvers();
    const giveUpAtMs = performance.now() + noticeMs * 4;
    while (server.pendingRequests > this.#held && performance.now() < giveUpAtMs) await Bun.sleep(5);
    await Bun.sleep(pauseMs);
    const finished = server.stop(false);
    await portClosed();
    this.#pause.resolve();
    await atMost(deadlineMs, finished);
    await server.stop(true);
  }
}

const noticeMs = 250;
const pauseMs = 100;
const deadlineMs = 20_000;
