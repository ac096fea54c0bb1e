import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fetchJson } from "../../src/core/fetch-json.ts";
import { fetchAt, isPublicAddress, isPublicUrl, publicFetch, publicFetchBy } from "../../src/core/public-fetch.ts";
import { newFolder } from "../support/folder.ts";
import { startIssuer } from "../support/issuer.ts";
import { withPrograms } from "../support/programs.ts";

describe("a public URL", () => {
  const publicUrls =
    "https://token.actions.githubusercontent.com https://issuer.example:8443/a?b https://xn--e1afmkfd.xn--p1ai";
  const others = [
    "http://issuer.example https://localhost https://LOCALHOST. https://issuer.example. https://bastion https://db.internal",
    "https://a.LOCAL https://kubernetes.default.svc.cluster.local https://router.home.arpa https://127.0.0.1 https://1.1.1.1",
    "https://0x7f.1 https://2130706433 https://①②⑦.0.0.1 https://[::1] https://[::ffff:127.0.0.1] https:// issuer",
  ];
  test.each(publicUrls.split(" "))("%s: true", (url) => expect(isPublicUrl(url)).toBe(true));
  test.each(others.join(" ").split(" "))("%s: false", (url) => expect(isPublicUrl(url)).toBe(false));
});

describe("a public address", () => {
  const special = [
    ...["0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.255.255", "169.254.169.254", "172.16.0.1"],
    ...["172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "203.0.113.1", "224.0.0.1"],
    ...["240.0.0.1", "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:10.0.0.1", "::ffff:1.1.1.1", "64:ff9b::a00:1"],
    ..."fe80::1 fe80::1%eth0 fec0::1 fc00::1 fd12::1 ff02::1 2001::1 2001:db8::1 2002:7f00:1::".split(" "),
    ...["", "issuer.example"],
  ];
  const ofTheInternet = ["1.1.1.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450::1"];
  test.each(special)("is not %s", (address) => expect(isPublicAddress(address)).toBe(false));
  test.each(ofTheInternet)("is %s", (address) => expect(isPublicAddress(address)).toBe(true));
});

describe("fetching in public", () => {
  /** A server that nobody may reach. */
  const startHidden = () => {
    let asked = 0;
    const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { open: () => void asked++, data() {} } });
    return { port: server.port, asked: () => asked, [Symbol.dispose]: () => server.stop(true) };
  };

  const addresses = ["127.0.0.1", "::1", "1.1.1.1,127.0.0.1", "127.0.0.1,1.1.1.1", "::ffff:127.0.0.1"];
  test.each(addresses)("connects to nobody if the name has the addresses [ %s ]", async (some) => {
    using hidden = startHidden();
    const fetch = publicFetchBy(async () => some.split(","));
    await expect(fetch(`https://issuer.example:${hidden.port}/`, {})).rejects.toThrow("not a public address");
    expect(hidden.asked()).toBe(0);
  });

  test("asks no address that is written in a URL", async () => {
    using hidden = startHidden();
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      await expect(publicFetch(`https://${host}:${hidden.port}/`, {})).rejects.toThrow("not a public URL");
    }
    expect(hidden.asked()).toBe(0);
    await using issuer = startIssuer();
    await expect(fetchJson(issuer.url, true)).rejects.toThrow("it cannot be reached: NOT_PUBLIC");
    expect(issuer.asked).toEqual([]);
    await fetchJson(issuer.url, false);
  });

  test("lets a proxy resolve the name, unless NO_PROXY names the host", async () => {
    let line = "";
    const refuse = (socket: { end: (text: string) => unknown }, data: Buffer) => {
      line = data.toString().split("\r\n")[0] ?? "";
      socket.end("HTTP/1.1 403 No\r\n\r\n");
    };
    const proxy = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: refuse } });
    const resolved: string[] = [];
    const fetch = publicFetchBy(async (hostname) => {
      resolved.push(hostname);
      return ["127.0.0.1"];
    });
    const { HTTPS_PROXY, NO_PROXY } = process.env;
    try {
      process.env["HTTPS_PROXY"] = `http://127.0.0.1:${proxy.port}`;
      process.env["NO_PROXY"] = "localhost, .corp.example";
      await expect(fetch("https://issuer.example/", {})).rejects.toThrow();
      expect([line, resolved]).toEqual(["CONNECT issuer.example:443 HTTP/1.1", []]);
      for (const exempt of [".corp.example", "*", "*.example", "EXAMPLE", "vault.corp.example"]) {
        process.env["NO_PROXY"] = exempt;
        await expect(fetch("https://vault.corp.example/", {})).rejects.toThrow("not a public address");
      }
      expect(resolved).toHaveLength(5);
    } finally {
      Object.assign(process.env, { HTTPS_PROXY, NO_PROXY });
      if (HTTPS_PROXY === undefined) delete process.env["HTTPS_PROXY"];
      if (NO_PROXY === undefined) delete process.env["NO_PROXY"];
      proxy.stop(true);
    }
  });

  test("asks a name server once, and waits for it no longer than for the request", async () => {
    let asked = 0;
    const request = new AbortController();
    const fetch = publicFetchBy(() => {
      asked += 1;
      setImmediate(() => request.abort(new DOMException("too late", "TimeoutError")));
      return new Promise(() => {});
    });
    const { signal } = request;
    await expect(fetch("https://issuer.example/", { signal })).rejects.toMatchObject({ name: "TimeoutError" });
    expect(asked).toBe(1);
  });

  withPrograms(["openssl"], "a server of a name", (openssl) => {
    test("is asked at the address that was judged, and must have the name's certificate", async () => {
      const folder = newFolder();
      const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
      const words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=x".split(" ");
      const names = ["-addext", "subjectAltName=DNS:issuer.example", "-keyout", key, "-out", cert];
      expect(Bun.spawnSync([openssl ?? "", ...words, ...names]).exitCode).toBe(0);
      const [ca, secret] = [readFileSync(cert, "utf8"), readFileSync(key, "utf8")];
      await using server = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        tls: { cert: ca, key: secret },
        fetch: ({ headers, url }) => new Response(`${headers.get("host")} ${new URL(url).pathname}`),
      });
      const { port } = server;
      // Nobody listens at the first address.
      const at = (host: string) => fetchAt(["127.0.0.9", "127.0.0.1"], `https://${host}:${port}/keys`, { tls: { ca } });
      expect(await (await at("issuer.example")).text()).toBe(`issuer.example:${port} /keys`);
      await expect(at("other.example")).rejects.toMatchObject({ code: "ERR_TLS_CERT_ALTNAME_INVALID" });
      const tls = { rejectUnauthorized: false };
      await expect(fetchAt(["127.0.0.1"], `https://issuer.example:${port}/`, { tls })).rejects.toThrow();
    });
  });
});
