import { randomInt } from "node:crypto";

/**
 * A port for a program that cannot choose one itself, or that keeps its port while it is restarted. It lies below the
 * ports that systems give to connections, so no connection takes it before the program does.
 * @throws Error if 100 ports in a row are taken
 */
export function freePort(): number {
  for (let tries = 0; tries < 100; tries++) {
    try {
      const listener = Bun.listen({ hostname: "127.0.0.1", port: randomInt(15_000, 30_000), socket: { data() {} } });
      const { port } = listener;
      listener.stop(true);
      return port;
    } catch {
      // Taken: another one.
    }
  }
  throw new Error("127.0.0.1 has no free TCP port from 15000 to 29999");
}
