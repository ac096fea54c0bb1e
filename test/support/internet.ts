import { readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { makeCertificates } from "./certificates.ts";

/**
 * The https hosts of the world, on this machine: a proxy that leads to them, and an authority that both sides trust.
 * Nothing else can be reached through it.
 * @param folder - gets the authority
 */
export async function startInternet(
  openssl: string,
  folder: string,
  hosts: Readonly<Record<string, (request: Request) => Response | Promise<Response>>>,
) {
  makeCertificates(
    openssl,
    folder,
    Object.keys(hosts)
      .map((host) => `DNS:${host}`)
      .join(","),
  );
  const read = (name: string) => readFileSync(join(folder, name), "utf8");
  const asked: string[] = [];
  const world = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: read("keyhole.crt"), key: read("keyhole.key") },
    fetch: (request) => hosts[new URL(request.url).hostname]?.(request) ?? new Response("no", { status: 404 }),
  });
  const proxy = createServer((near) => {
    near
      .on("error", () => {})
      .once("data", (bytes) => {
        const line = bytes.toString("latin1").split("\r\n")[0] ?? "";
        asked.push(line);
        const [, host = ""] = /^CONNECT ([\w.-]+):443 /.exec(line) ?? [];
        if (hosts[host] === undefined) return void near.end("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n");
        const far = connect(world.port ?? 0, "127.0.0.1", () => near.write("HTTP/1.1 200 Yes\r\n\r\n"));
        far.on("error", () => near.destroy()).on("close", () => near.destroy());
        near.on("close", () => far.destroy());
        near.pipe(far).pipe(near);
      });
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    /** The first line of each request that the proxy got. */
    asked,
    env: {
      HTTPS_PROXY: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
      NODE_EXTRA_CA_CERTS: join(folder, "ca.crt"),
    },
    [Symbol.asyncDispose]: async () => {
      proxy.close();
      await world.stop(true);
    },
  };
}
