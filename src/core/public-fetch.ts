import { lookup } from "node:dns/promises";
import { BlockList, isIPv4 } from "node:net";
import { guardedFetch, proxyOf } from "./guarded-fetch.ts";
import type { Fetch } from "./json-request.ts";

/*
 * Fetching what somebody else than an operator named: it must not reach this machine or its network, or tell what is
 * there.
 */

/** Whether a URL is https on a name that can be public: neither an address nor a name of a private network. */
export function isPublicUrl(text: string): boolean {
  const { protocol, hostname } = URL.parse(text) ?? {};
  const labels = hostname?.split(".") ?? [];
  const last = labels.at(-1) ?? "";
  // The last label of an IPv4 address is a number. IPv6 has no dots.
  return protocol === "https:" && labels.length > 1 && /^[a-z]/.test(last) && !local.has(last);
}

const local: ReadonlySet<string> = new Set([
  ...["localhost", "local", "localdomain", "internal", "intranet", "private", "corp", "home", "lan", "arpa"],
  ...["test", "invalid", "onion", "alt"],
]);

/** The addresses of a host name. */
type Resolve = (hostname: string) => Promise<readonly string[]>;

/**
 * {@link guardedFetch} for URLs that are public. The name is resolved once, and the connection goes to the address that
 * was judged. Through a proxy, the proxy resolves it.
 */
export const publicFetch: Fetch = publicFetchBy(async (hostname) => {
  const found = await lookup(hostname, { all: true, order: "ipv4first" });
  return found.map(({ address }) => address);
});

/** The fetch throws a TypeError if a URL is not public, or if one address of its host is not. */
export function publicFetchBy(resolve: Resolve): Fetch {
  return async (url, init) => {
    if (!isPublicUrl(url)) throw notPublic("URL");
    if (proxyOf(url, process.env) !== undefined) return guardedFetch(url, init);
    const addresses = await unlessAborted(resolve(new URL(url).hostname), init.signal);
    if (!addresses.every(isPublicAddress)) throw notPublic("address");
    return fetchAt(addresses, url, init);
  };
}

/** Asks the first of these addresses that answers. The certificate must be that of the URL's host. */
export async function fetchAt(addresses: readonly string[], url: string, init: BunFetchRequestInit): Promise<Response> {
  const { host, hostname } = new URL(url);
  const headers = { ...(init.headers as Record<string, string>), Host: host };
  let failure: unknown;
  for (const address of addresses) {
    const at = new URL(url);
    at.hostname = isIPv4(address) ? address : `[${address}]`;
    try {
      return await guardedFetch(at.href, {
        ...init,
        headers,
        tls: { ...init.tls, serverName: hostname },
        proxy: false,
      });
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** With a code, which the server's log shows. */
function notPublic(what: string): TypeError {
  return Object.assign(new TypeError(`not a public ${what}`), { code: "NOT_PUBLIC" });
}

/** Whether an address is one of the internet, and no block for private, local or special use. */
export function isPublicAddress(address: string): boolean {
  return isIPv4(address) ? !special.check(address) : global.check(address, "ipv6") && !special.check(address, "ipv6");
}

/** What IPv6 has assigned to the internet; everything else is private, local or a form of an IPv4 address. */
const global = new BlockList();
global.addSubnet("2000::", 3, "ipv6");

/** @see https://www.iana.org/assignments/iana-ipv4-special-registry and -ipv6-special-registry */
const special = new BlockList();
for (const subnet of [
  ...["0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"],
  ...["192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"],
  ...["224.0.0.0/4", "240.0.0.0/4", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"],
]) {
  const [net = "", bits] = subnet.split("/");
  special.addSubnet(net, Number(bits), isIPv4(net) ? "ipv4" : "ipv6");
}

/** What `work` gives, unless the signal comes first: a name server may take longer than a request has. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | null | undefined): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
  return Promise.race([work, aborted]);
}
