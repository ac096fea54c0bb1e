import { arch, platform } from "node:process";
import { version } from "../../package.json";
import type { Fetch } from "./json-request.ts";

/** Bun's fetch without what makes an answer grow, a request repeat itself, or a certificate go unchecked. */
export const guardedFetch: Fetch = (url, init) =>
  fetch(url, {
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
    tls: { rejectUnauthorized: true },
  });
