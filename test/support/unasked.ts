/**
 * A server that answers each request twice: with what was asked, and then with what nobody asked for. It is a process of
 * its own, so that the second answer may arrive at any moment.
 */
import { createServer } from "node:net";

if (import.meta.main) {
  const server = createServer((socket) => {
    socket.setNoDelay(true).on("error", () => {});
    socket.on("data", (bytes) => {
      if (bytes.includes("/joined/")) return void socket.write(answer("asked") + answer("unasked"));
      socket.write(answer("asked"));
      const until = performance.now() + 1.5 * Math.random();
      while (performance.now() < until);
      socket.write(answer("unasked"));
    });
  });
  server.listen(0, "127.0.0.1", () => console.log((server.address() as { port: number }).port));
}

/**
 * Starts it on a free port. Below `/joined` both answers arrive together. Elsewhere the second one comes a little later,
 * when the client may have put its connection back or asked again.
 */
export async function startUnasked(): Promise<{ readonly origin: string } & Disposable> {
  const child = Bun.spawn([process.execPath, "--no-env-file", import.meta.path], { stdin: "ignore", stdout: "pipe" });
  const { value } = await child.stdout.getReader().read();
  const origin = `http://127.0.0.1:${new TextDecoder().decode(value).trim()}`;
  return { origin, [Symbol.dispose]: () => child.kill("SIGKILL") };
}

/** An organization, as the API answers it. */
function answer(slug: string): string {
  const body = JSON.stringify({ id: "1", name: "Acme", slug, plan: "pro" });
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}
