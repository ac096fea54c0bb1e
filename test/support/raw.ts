import { connect } from "node:net";

/**
 * Sends bytes over a connection of its own, and returns what came back until the server closed it, as Latin-1.
 * @param bytes - as Latin-1; they must make the server close it, such as by `Connection: close`
 */
export function rawAnswer(port: number, bytes: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let received = "";
  const socket = connect(port, "127.0.0.1", () => socket.write(bytes, "latin1"));
  socket.on("data", (chunk) => {
    received += chunk.toString("latin1");
  });
  socket.on("error", () => {}).on("close", () => resolve(received));
  return promise;
}
