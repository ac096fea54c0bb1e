import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { local, remote } from "../support/outgoing.ts";

const src = join(import.meta.dir, "../../src");

/** What of these modules opens no connection. */
const harmless: Readonly<Record<string, readonly string[]>> = {
  "node:net": ["isIP", "isIPv4", "isIPv6", "BlockList", "createServer", "Socket"],
  "node:tls": ["ConnectionOptions", "createSecureContext", "getCACertificates"],
  "node:http": ["createServer", "IncomingMessage", "ServerResponse"],
};
const modules = /^(?:node:)?(?:net|tls|https?|http2|dgram|dns)(?:\/promises)?$/;
/** Packages that connect, and their parts that do. */
const packages = /^(?:postgres|openid-client|undici|ws|@opentelemetry\/exporter-.*)$/;
const calls = [
  /(?<![.\w#])fetch\(|\b(?:globalThis|self|Bun)\.fetch\b|[=:(,]\s*fetch\s*[;)]/,
  /\bBun\s*\.\s*(?:connect|udpSocket|sql|s3|redis)\b|\bcreateRemoteJWKSet\b/,
  /\bnew (?:Bun\.)?(?:RedisClient|WebSocket|EventSource|XMLHttpRequest|SQL|S3Client)\b/,
];

/** Whether a file opens a connection, or asks by the function that does. */
function connects(text: string): boolean {
  const code = text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, "");
  const imports = [...code.matchAll(/\b(?:import|from|import\()\s*"([^"]+)"/g)].map(([, from = ""]) => from);
  if (imports.some((from) => packages.test(from) || /\/(?:guarded|public)-fetch\.ts$/.test(from)))
    return !isAside(code);
  const taken = [...code.matchAll(/\bimport\s+([^"';]*?)\s+from\s+"([^"]+)"/g)].filter(([, , from = ""]) => {
    return modules.test(from);
  });
  const unnamed = imports.filter((from) => modules.test(from)).length > taken.length;
  const isOpening = taken.some(([, names = "", from = ""]) => {
    const all = names.replace(/[{}]|\btype\b/g, "").split(",");
    return all.some((name) => name.trim() !== "" && !harmless[from]?.includes(name.trim().split(/\s/)[0] ?? ""));
  });
  return unnamed || isOpening || calls.some((call) => call.test(code));
}

/** A file that takes nothing of the modules that connect but what says whether a URL is public. */
function isAside(code: string): boolean {
  const taken = [...code.matchAll(/import \{([^}]*)\} from "[^"]*\/(?:guarded|public)-fetch\.ts"/g)];
  return taken.length > 0 && taken.every(([, names = ""]) => names.trim() === "isPublicUrl");
}

test("every file that connects to something is on the list of what Keyhole connects to, and no other", () => {
  const files = readdirSync(src, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
  const found = files.filter((file) => connects(readFileSync(join(src, file), "utf8")));
  expect(found.sort()).toEqual([...Object.values(remote).flat(), ...local].sort());
});

test.each([
  'const answer = await fetch("https://example.com");',
  "const send = fetch;",
  "createClient({ send: globalThis.fetch });",
  'import { guardedFetch } from "../core/guarded-fetch.ts";',
  'import { publicFetch } from "../core/public-fetch.ts";',
  'import { connect } from "node:net";',
  'import { isIP, connect as open } from "node:net";',
  'import * as tls from "node:tls";',
  'import https from "node:https";',
  'const { request } = await import("node:http");',
  'import { lookup } from "node:dns/promises";',
  'import postgres from "postgres";',
  'import * as oidc from "openid-client";',
  'import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-http";',
  'await Bun.connect({ unix: "/run/x" });',
  "new RedisClient(url);",
  'new WebSocket("wss://example.com");',
  "jose.createRemoteJWKSet(url);",
])("a file with %s is seen", (text) => expect(connects(text)).toBe(true));

test.each([
  'import { isIP, type Socket } from "node:net";',
  'import { isPublicUrl } from "../core/public-fetch.ts";',
  "const send = { fetch: guarded };",
  "// await fetch(url)",
  "server.fetch(request);",
])("a file with %s connects to nothing", (text) => expect(connects(text)).toBe(false));
