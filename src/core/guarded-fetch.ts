import { arch, platform } from "node:process";
import { version } from "./version.ts";

/**
 * Bun's fetch without what makes an answer grow, a request repeat itself, a certificate go unchecked, or a credential be
 * printed. Every connection by HTTP is made with it: `test/support/outgoing.ts` lists the few that are not.
 */
export const guardedFetch = async (url: string, init: BunFetchRequestInit): Promise<Response> => {
  const response = fetch(url, {
    ...init,
    headers: {
      ...(init.headers as Record<string, string>),
      // An answer that is not compressed cannot grow while it is unpacked.
      "Accept-Encoding": "identity",
      "User-Agent": `keyhole/${version} (${platform}; ${arch})`,
    },
    decompress: false,
    // On a reused connection that breaks, fetch repeats the request by itself, and each one is audited.
    keepalive: false,
    // NODE_TLS_REJECT_UNAUTHORIZED is ignored: people set it for other programs and forget it.
    tls: { ...init.tls, rejectUnauthorized: true },
    // BUN_CONFIG_VERBOSE_FETCH=curl would print the request with its key.
    verbose: false,
  });
  return response.catch((error: unknown) => {
    throw Object.assign(error as Error, { proxy: init.proxy === false ? undefined : proxyOf(url, process.env) });
  });
};

/** The setting that names a proxy for this URL, and the proxy's address without its password, for messages. */
export function proxyOf(url: string, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const { protocol, hostname, host } = new URL(url);
  const setting = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"].find((name) => env[name]);
  const except = (env["no_proxy"] || env["NO_PROXY"] || "")
    .toLowerCase()
    .split(/[\s,]+/)
    .filter(Boolean);
  const isExcepted = except.some((entry) => {
    const name = entry.replace(/^\*?\./, "");
    return (
      entry === "*" || host === name || `${host}:443` === name || hostname === name || hostname.endsWith(`.${name}`)
    );
  });
  if (protocol !== "https:" || setting === undefined || isExcepted) return undefined;
  const text = env[setting] as string;
  const address = URL.parse(text.includes("://") ? text : `http://${text}`)?.host;
  return address ? `${setting} (${address})` : setting;
}
