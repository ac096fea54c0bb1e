import type { Server } from "bun";

/** How far the server is with stopping, as requests see it. */
export class Drain {
  #draining = false;
  #paused: PromiseWithResolvers<void> | undefined;
  #held = 0;

  /** Whether answers close their connections. */
  readonly draining = (): boolean => this.#draining;

  /** What a new request waits for while the port closes; undefined at any other time. */
  readonly recess = (): Promise<void> | undefined => {
    if (this.#paused) this.#held += 1;
    return this.#paused?.promise;
  };

  /** How many requests wait since `pause`. */
  get held(): number {
    return this.#held;
  }

  begin(): void {
    this.#draining = true;
  }

  /** Holds every request that begins from now on. */
  pause(): void {
    this.#paused = Promise.withResolvers();
  }

  /** Lets the held requests run, and every later one. */
  resume(): void {
    this.#paused?.resolve();
  }
}

/**
 * Stops a server without dropping a request: answers close their connections, the port closes, and requests under way
 * are finished. What is still open after 20 s is cut off.
 *
 * @param portClosed - resolves when every process that shares the port has closed it
 */
export async function drainServer(
  server: Server<unknown>,
  drain: Drain,
  portClosed: () => Promise<void> = async () => {},
): Promise<void> {
  drain.begin();
  // Connected clients have this long to send their next request and to learn that the connection closes.
  await Bun.sleep(noticeMs);
  // A client that is answered reconnects at once, and a connection that has sent nothing is reset with the port. So
  // new requests wait until each open connection has sent one, and they are answered once the port is closed.
  drain.pause();
  const giveUpAtMs = performance.now() + noticeMs * 4;
  while (server.pendingRequests > drain.held && performance.now() < giveUpAtMs) await Bun.sleep(5);
  await Bun.sleep(pauseMs);
  const finished = server.stop(false);
  await portClosed();
  drain.resume();
  await Promise.race([finished, Bun.sleep(deadlineMs)]);
  await server.stop(true);
}

const noticeMs = 250;
const pauseMs = 100;
const deadlineMs = 20_000;
