import { Refused } from "./refused.ts";

/**
 * After how many seconds a server closes an idle connection. Load balancers keep theirs for 60 s, and answer 502 if they
 * write into one that has just been closed. It is longer, too, than the longest silence before an answer.
 */
export const idleSeconds = 75;

/**
 * Bun.serve's options of every listener. Bun's development page shows source and stack, and with `reusePort` a second
 * server binds the same port silently.
 */
export const listenerOptions = { development: false, reusePort: false, idleTimeout: idleSeconds } as const;

/** Runs `listen`. @param setting - chooses another port @throws Refused if the address cannot be used */
export function listening<T>(host: string, port: number, setting: string, listen: () => T): T {
  try {
    return listen();
  } catch (error) {
    const isTaken = (error as { code?: unknown }).code === "EADDRINUSE";
    if (!isTaken) throw new Refused("unavailable", `Cannot listen on ${host}:${port}.`);
    const advice = `stop what listens there, or choose another with ${setting}.`;
    throw new Refused("unavailable", `The address ${host}:${port} is in use: ${advice}`);
  }
}
