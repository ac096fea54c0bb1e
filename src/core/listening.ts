import { Refused } from "./refused.ts";

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
