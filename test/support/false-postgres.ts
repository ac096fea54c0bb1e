/**
 * Something that is spoken to as PostgreSQL. It knows the password and keeps to the protocol, up to ready, except for
 * what a test spoils.
 */
import { createHash, createHmac, pbkdf2Sync } from "node:crypto";
import { createServer, type Socket } from "node:net";

/** What it says, in this order. */
export const steps = ["ssl", "sasl", "continue", "final", "ok", "status", "key", "ready", "answer"] as const;
export type Step = (typeof steps)[number];

/** What is sent in place of a correct message. `undefined` is nothing at all, and the connection stays open. */
export type Spoil = (step: Step, correct: Buffer, socket: Socket) => Buffer | undefined;

export type FalsePostgres = Awaited<ReturnType<typeof startFalsePostgres>>;

/** A message of the protocol. */
export function message(type: string, body: Buffer | string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, Buffer.from(body as string)]);
}

/** An Authentication message. */
export function authentication(code: number, body: Buffer | string = ""): Buffer {
  const type = Buffer.alloc(4);
  type.writeUInt32BE(code);
  return message("R", Buffer.concat([type, Buffer.from(body as string)]));
}

export async function startFalsePostgres(password: string, spoil: Spoil = (_, correct) => correct, rounds = 4096) {
  const sockets = new Set<Socket>();
  const received: Buffer[] = [];
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket)).on("error", () => {});
    const say = (step: Step, correct: Buffer) => {
      const said = spoil(step, correct, socket);
      if (said !== undefined && !socket.destroyed) socket.write(said);
    };
    let at = 0;
    let clientFirst = "";
    let serverFirst = "";
    socket.on("data", (bytes: Buffer) => {
      received.push(bytes);
      const isRequest = bytes.length === 8 && bytes.readUInt32BE(4) === 80877103;
      if (isRequest) return say("ssl", Buffer.from("N"));
      at += 1;
      if (at === 1) return say("sasl", authentication(10, "SCRAM-SHA-256\0\0"));
      if (at === 2) {
        clientFirst = bytes.toString("latin1").slice(bytes.indexOf("n=*"));
        serverFirst = `r=${clientFirst.slice("n=*,r=".length)}theirs,s=${Buffer.from("salt").toString("base64")},i=${rounds}`;
        return say("continue", authentication(11, serverFirst));
      }
      if (at === 3) {
        const said = bytes.toString("latin1", 5);
        const withoutProof = said.slice(0, said.indexOf(",p="));
        // An honest one verifies the proof; this one takes any.
        const salted = rounds > 600_000 ? Buffer.alloc(32) : pbkdf2Sync(password, "salt", rounds, 32, "sha256");
        const key = createHmac("sha256", salted).update("Server Key").digest();
        const exchange = `${clientFirst},${serverFirst},${withoutProof}`;
        const proof = createHmac("sha256", key).update(exchange).digest("base64");
        say("final", authentication(12, `v=${proof}`));
        say("ok", authentication(0));
        say("status", message("S", "server_version\0" + "15.0\0"));
        say("key", message("K", Buffer.alloc(8, 1)));
        return say("ready", message("Z", "I"));
      }
      say("answer", Buffer.concat([message("E", "SERROR\0C42P01\0Mno\0\0"), message("Z", "I")]));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "0.0.0.0", resolve));
  const { port } = server.address() as { port: number };
  return {
    port,
    connections: () => connections,
    open: () => sockets.size,
    /** Whether somebody sent the password, or its md5 with this salt. */
    knows: (user: string, salt: Buffer) => {
      const hash = (...parts: (string | Buffer)[]) =>
        createHash("md5")
          .update(Buffer.concat(parts.map((part) => Buffer.from(part as string))))
          .digest("hex");
      const all = Buffer.concat(received).toString("latin1");
      return all.includes(password) || all.includes(hash(hash(password, user), salt));
    },
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
