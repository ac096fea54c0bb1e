import { randomInt } from "node:crypto";

/** What this process gave already: programs that start together must not be given the same port. */
const given = new Set<number>();

/**
 * A port for a program that cannot choose one itself, or that keeps its port while it is restarted. It lies below the
 * ports that systems give to connections, so no connection takes it before the program does.
 * @throws Error if 100 ports in a row are taken
 */
export function freePort(): number {
  for (let tries = 0; tries < 100; tries++) {
    const port = randomInt(15_000, 30_000);
    if (given.has(port)) continue;
    try {
      Bun.listen({ hostname: "127.0.0.1", port, socket: { data() {} } }).stop(true);
      given.add(port);
      return port;
    } catch {
      // Taken: another one.
    }
  }
  throw new Error("127.0.0.1 has no free TCP port from 15000 to 29999");
}
