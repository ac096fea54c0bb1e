import type { Server } from "bun";

/** How a server stops, and what requests see of it. */
export class Drain {
  #draining = false;
  #pause: PromiseWithResolvers<void> | undefined;
  #held = 0;

  /** Whether answers close their connections. */
  readonly draining = (): boolean => this.#draining;

  /** What a new request waits for while the port closes. */
  readonly recess = (): Promise<void> | undefined => {
    if (this.#pause) this.#held += 1;
    return this.#pause?.promise;
  };

  /**
   * Stops a server without dropping a request: answers close their connections, the port closes, and requests under way
   * are finished. What is still open after 20 s is cut off.
   *
   * @param portClosed - resolves when every process that shares the port has closed it
   */
  async stop(server: Server<unknown>, portClosed: () => Promise<void> = async () => {}): Promise<void> {
    this.#draining = true;
    // Connected clients have this long to send their next request and to learn that the connection closes.
    await Bun.sleep(noticeMs);
    // A client that is answered reconnects at once, and a connection that has sent nothing is reset with the port. So
    // new requests wait until each open connection has sent one, and they are answered once the port is closed.
    this.#pause = Promise.withResolvers();
    const giveUpAtMs = performance.now() + noticeMs * 4;
    while (server.pendingRequests > this.#held && performance.now() < giveUpAtMs) await Bun.sleep(5);
    await Bun.sleep(pauseMs);
    const finished = server.stop(false);
    await portClosed();
    this.#pause.resolve();
    await Promise.race([finished, Bun.sleep(deadlineMs)]);
    await server.stop(true);
  }
}

const noticeMs = 250;
const pauseMs = 100;
const deadlineMs = 20_000;
