import { Unfit } from "./parse.ts";

/** How long a SPIFFE ID may be. */
export const spiffeIdBytesMax = 2048;

/**
 * The SPIFFE ID of a workload, in its one spelling. One without a path names a whole trust domain, which has no token.
 * @see https://github.com/spiffe/spiffe/blob/main/standards/SPIFFE-ID.md
 */
export function parseSpiffeId(text: string): string {
  const [, path] = /^spiffe:\/\/[a-z0-9._-]{1,255}((?:\/[a-zA-Z0-9._-]+)*)$/.exec(text) ?? [];
  const hasDots = path?.split("/").some((segment) => segment === "." || segment === "..");
  if (path === undefined || hasDots || text.length > spiffeIdBytesMax) {
    throw new Unfit("takes a SPIFFE ID such as spiffe://example.org/web, without %, *, . and .. as parts.");
  }
  if (path === "") throw new Unfit("names a trust domain: add the path of the workload.");
  return text;
}
