import { connect, createServer, type Socket } from "node:net";

/**
 * Stands between a server and its database, as a network does.
 * @param listen - called for each connection, returns what is shown the bytes that it sends to the database
 */
export async function startProxy(target: URL, listen?: () => (bytes: Buffer) => void) {
  const pairs = new Set<readonly [near: Socket, far: Socket]>();
  let whole = true;
  const cut = () => {
    whole = false;
    for (const pair of pairs) for (const socket of pair) socket.destroy();
  };
  const listener = createServer((near) => {
    if (!whole) return void near.destroy();
    const far = connect(Number(target.port || 5432), target.hostname);
    const pair = [near, far] as const;
    pairs.add(pair);
    if (listen) near.on("data", listen());
    near.pipe(far).pipe(near);
    const close = () => {
      pairs.delete(pair);
      for (const socket of pair) socket.destroy();
    };
    for (const socket of pair) socket.on("error", () => {}).on("close", close);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    port: (listener.address() as { port: number }).port,
    /** Existing connections carry nothing from now on; neither end is told. */
    mute: () => {
      for (const [near, far] of pairs) {
        near.unpipe(far).pause();
        far.unpipe(near).pause();
      }
    },
    /** Existing connections carry what this makes of what the database, or the server, sends from now on. */
    alter: (change: (piece: Buffer) => Uint8Array, ofServer = false) => {
      for (const [near, far] of pairs) {
        const [from, to] = ofServer ? [near, far] : [far, near];
        from.unpipe(to).removeAllListeners("data");
        from.on("data", (piece: Buffer) => to.write(change(piece))).resume();
      }
    },
    /** Closes all connections and every new one. */
    cut,
    mend: () => {
      whole = true;
    },
    stop: async () => {
      cut();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** For `alter`: a RowDescription of one column whose name has no end: postgres.js 3.4.9 looks for it forever. */
export const endlessName = Buffer.from("T\0\0\0\x09\0\x01abc", "latin1");
