import { exits, Problem, usageProblem } from "../problem.ts";

/**
 * The API root of a server that may be sent a key.
 * @param setting - where the text comes from, for messages
 * @param text - the server's origin, or its API root
 * @returns such as `https://keyhole.example.com/api/v1`
 * @throws Problem if the text is something else, or would send the key in the clear
 */
export function parseApiRoot(setting: string, text: string): string {
  const url = URL.parse(text);
  const example = "such as https://keyhole.example.com";
  if (url === null || !/^https?:$/.test(url.protocol)) throw usageProblem(`${setting} must be a URL ${example}.`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw usageProblem(`${setting} must be a URL without a user, a query and a fragment, ${example}.`);
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    throw usageProblem(
      `${setting} is plain http to another machine, where others on the network could read the key: use https.`,
    );
  }
  if (url.pathname === "/") return `${url.origin}/api/v1`;
  if (/\/api\/v1\/?$/.test(url.pathname)) return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
  throw usageProblem(`${setting} must be the server's origin or its API root, which ends in /api/v1.`);
}

/** @param hostname - as URL writes it: IPv4 in full, IPv6 in brackets */
function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/**
 * An API key. Any other text may be another secret that was put here by mistake, so it is never sent.
 * @param source - where the text comes from, for messages
 * @throws Problem
 */
export function parseApiKey(source: string, text: string): string {
  if (/^kh_[0-9A-Za-z]{49}$/.test(text)) return text;
  throw new Problem(
    exits.unauthorized,
    "unauthorized",
    `${source} holds no API key: one begins with kh_ and has 52 characters.`,
  );
}
