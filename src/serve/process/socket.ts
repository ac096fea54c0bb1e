import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, lstatSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { attempt } from "../../core/attempt.ts";
import { Refused } from "../../core/refused.ts";
import type { Socket } from "../../core/settings/settings.ts";

/**
 * Makes way for a socket: removes one that a server has left behind, and nothing else.
 * @throws Refused if a server answers there, or something else than a socket has the path
 */
export async function requireFreeSocket({ path }: Socket): Promise<void> {
  const found = attempt(() => lstatSync(path));
  if (found === undefined) return;
  if (!found.isSocket()) throw new Refused("unavailable", `${path} is there and no socket: name another path.`);
  // Only a refused connection says that nobody listens: a socket that this account may not use could be a live one.
  const why = await Bun.connect({ unix: path, socket: { data() {} } }).then(
    (connected) => void connected.end(),
    ({ code }: NodeJS.ErrnoException) => code ?? "no reason given",
  );
  if (why === undefined) throw new Refused("unavailable", `A server listens on ${path} already.`);
  if (why !== "ECONNREFUSED" && why !== "ENOENT") {
    throw new Refused("unavailable", `${path} is there, and cannot be asked (${why}): name another path.`);
  }
  rmSync(path, { force: true });
}

/**
 * Runs `listen`, which makes a socket at a path that it is given: at no moment may more people connect to it than its
 * mode and group say. It gets its own name last, because the runtime removes what has the name that it was made with
 * when it stops: that could be the socket of the server that came after it.
 * @returns what `listen` returns, and what removes this socket and no other
 * @throws Refused if it cannot be made, or there is no such group
 */
export function listenOnSocket<T>(
  { path, mode, group }: Socket,
  listen: (path: string) => T,
): { readonly server: T; readonly remove: () => void } {
  const groupId = group === undefined ? undefined : groupIdOf(group);
  const draft = join(dirname(path), `.kh${randomBytes(3).toString("hex")}`);
  const before = process.umask(0o177);
  try {
    const server = listen(draft);
    if (groupId !== undefined) chownSync(draft, process.getuid?.() ?? 0, groupId);
    chmodSync(draft, mode);
    const own = identify(draft);
    renameSync(draft, path);
    return { server, remove: () => identify(path) === own && rmSync(path, { force: true }) };
  } catch (error) {
    rmSync(draft, { force: true });
    const { code = "no reason given" } = error as NodeJS.ErrnoException;
    throw new Refused("unavailable", `Cannot listen on ${path}: ${failures[code] ?? code}.`, { cause: error });
  } finally {
    process.umask(before);
  }
}

/** Which file this is. A number is not given to another one while this process listens on it. */
function identify(path: string): string | undefined {
  const stat = attempt(() => lstatSync(path, { bigint: true }));
  return stat && `${stat.dev} ${stat.ino}`;
}

const failures: Readonly<Record<string, string>> = {
  ENOENT: "its folder does not exist",
  EACCES: "its folder does not allow it",
  EADDRINUSE: "a server listens there already",
  EPERM: "this account may not give it to that group",
};

/** The number of a group. @param group - its name or its number */
function groupIdOf(group: string): number {
  if (/^\d{1,9}$/.test(group)) return Number(group);
  const lines = (attempt(() => readFileSync("/etc/group", "utf8")) ?? "").split("\n");
  const [, , id] = lines.map((line) => line.split(":")).find(([name]) => name === group) ?? [];
  if (id !== undefined) return Number(id);
  throw new Refused("unavailable", `There is no group ${group} in /etc/group: KEYHOLE_SOCKET_GROUP may be its number.`);
}
