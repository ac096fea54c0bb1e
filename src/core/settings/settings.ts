import { isIP } from "node:net";
import { resolve } from "node:path";
import { type AddressRange, noRange, parseRange } from "../addresses.ts";
import { attempt } from "../attempt.ts";
import { mayAsk } from "../json-request.ts";
import { configProblem } from "../problem.ts";
import { wordsOf } from "../words/shell.ts";
import { withoutSettings } from "./inherited.ts";
import { type Postgres, parsePostgresUrl } from "./postgres-url.ts";
import { type Env, isService, settingNames } from "./setting-names.ts";

/** Where the root keys come from. */
export type RootKeySource =
  | { readonly from: "text"; readonly text: string }
  | { readonly from: "file"; readonly path: string }
  /** The output of a program that is started without a shell and with only `env` as its environment. */
  | {
      readonly from: "command";
      readonly words: readonly [program: string, ...args: string[]];
      readonly env: Readonly<Record<string, string>>;
    }
  /** `root.key` in this folder (default: the data folder); only for the embedded database, which begins with it. */
  | { readonly from: "folder"; readonly folder?: string };

/** Every setting, validated once at start. */
export type Config = {
  /** What DATABASE_URL says; undefined for the embedded database in `dataFolder`. */
  readonly postgres: Postgres | undefined;
  /** Absolute path. */
  readonly dataFolder: string;
  readonly rootKey: RootKeySource;
  /** Where the API listens, unless it does on a socket. */
  readonly host: string;
  readonly port: number;
  /** The Unix socket on which the API listens in place of a port. */
  readonly socket?: Socket | undefined;
  /** The second listener, for health and metrics; undefined for none. */
  readonly ops?: { readonly host: string; readonly port: number } | undefined;
  /** Redis or Valkey with the buckets of all instances; undefined if each process has its own. */
  readonly limiterUrl?: string | undefined;
  /** Where traces are sent by OTLP over HTTP, without `/v1/traces`; undefined for nowhere. */
  readonly tracesUrl?: string | undefined;
  /** How many bytes of earlier versions are kept of each set. */
  readonly historyBytesMax: number;
  /** Where this host keeps the newest checkpoint that it has seen: an absolute path; undefined for nowhere. */
  readonly checkpointFile?: string | undefined;
  /** Witnesses that the notary asks. */
  readonly witnesses?: readonly WitnessSetting[] | undefined;
  /** Origins that browsers may use the Model Context Protocol from; undefined if it is not served. */
  readonly mcpOrigins?: readonly string[] | undefined;
  /** The proxies that may say who asks. */
  readonly trustedProxies?: readonly AddressRange[] | undefined;
};

/** Where a witness is, without a slash at the end or with one, and its verifier key. */
export type WitnessSetting = { readonly url: string; readonly key: string };

/** A Unix socket, and who may connect to it. */
export type Socket = {
  /** Absolute. */
  readonly path: string;
  readonly mode: number;
  /** The name or the number of its group; undefined for that of the process. */
  readonly group: string | undefined;
};

/**
 * Reads the settings.
 * @param takesKeys - whether the root key is used, so that one must be set with DATABASE_URL
 * @throws Problem for the first wrong one; an empty setting is wrong
 */
export function readConfig(env: Env, takesKeys = true): Config {
  const empty = settingNames.find((name) => env[name] === "");
  if (empty !== undefined) throw configProblem(`${empty} is set but empty: give it a value or unset it.`);
  const databaseUrl = env["DATABASE_URL"];
  if (databaseUrl === undefined && env["DATABASE_PASSWORD_FILE"] !== undefined) {
    throw configProblem("DATABASE_PASSWORD_FILE is set without DATABASE_URL, whose password it holds.");
  }
  return Object.freeze({
    postgres: databaseUrl === undefined ? undefined : parsePostgresUrl(databaseUrl, env),
    dataFolder: resolve(env["KEYHOLE_DATA"] ?? ".keyhole"),
    rootKey: readRootKeySource(env, takesKeys && databaseUrl !== undefined),
    ...readAddress("HOST", env["HOST"] ?? "127.0.0.1", env),
    port: parsePort("PORT", env["PORT"] ?? "4100"),
    ops: readOps(env),
    limiterUrl: readLimiterUrl(env),
    tracesUrl: readUrl(env, "OTEL_EXPORTER_OTLP_ENDPOINT", ["http:", "https:"], 4318),
    historyBytesMax: readHistory(env["KEYHOLE_HISTORY_MIB"] ?? "64"),
    checkpointFile: env["KEYHOLE_CHECKPOINT_FILE"] && resolve(env["KEYHOLE_CHECKPOINT_FILE"]),
    witnesses: env["KEYHOLE_WITNESS"]?.split(",").map(parseWitnessSetting),
    mcpOrigins: readMcpOrigins(env),
    trustedProxies: env["KEYHOLE_TRUSTED_PROXIES"]?.split(",").map(parseProxy),
  });
}

/** @throws Problem that names `setting`, unless this is a host name or an address, `::1` without [] */
export function parseHost(setting: string, text: string): string {
  if (isIP(text) !== 0 || /^[A-Za-z0-9._-]+$/.test(text)) return text;
  throw configProblem(`${setting} must be a host name or an address alone, such as 127.0.0.1 or ::1.`);
}

/** Where to listen: on a host, or on a socket. @param text - a host, or `unix:` and a path */
export function readAddress(setting: string, text: string, env: Env): Pick<Config, "host" | "socket"> {
  const { KEYHOLE_SOCKET_MODE: mode, KEYHOLE_SOCKET_GROUP: group } = env;
  if (!text.startsWith("unix:")) {
    if (mode === undefined && group === undefined) return { host: parseHost(setting, text), socket: undefined };
    const name = mode === undefined ? "KEYHOLE_SOCKET_GROUP" : "KEYHOLE_SOCKET_MODE";
    throw configProblem(`${name} is set without HOST=unix:/path, which makes a socket.`);
  }
  const socket = { path: parseSocket(setting, text), mode: parseMode(mode ?? "0600"), group };
  return { host: "localhost", socket };
}

/** The path of a Unix socket. @param text - `unix:` and an absolute path @throws Problem that names `setting` */
export function parseSocket(setting: string, text: string): string {
  const path = text.slice("unix:".length);
  // Linux takes 107 bytes.
  if (/^\/[^\0]*[^\0/]$/.test(path) && Buffer.byteLength(path) <= 107) return path;
  throw configProblem(
    `${setting} must be unix: and an absolute path of at most 107 bytes, such as unix:/run/keyhole/api.sock.`,
  );
}

function parseMode(text: string): number {
  // Nobody can connect without the bits to read and write, and the bits to execute mean nothing.
  if (/^0?[0246]{3}$/.test(text)) return Number.parseInt(text, 8);
  throw configProblem("KEYHOLE_SOCKET_MODE must be a mode in octal such as 0600, 0660 or 0666.");
}

/** Port 0 lets the system choose. @throws Problem that names `setting` */
export function parsePort(setting: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw configProblem(`${setting} must be a port number from 0 to 65535.`);
  return port;
}

const rootKeySettings = ["KEYHOLE_ROOT_KEY", "KEYHOLE_ROOT_KEY_FILE", "KEYHOLE_ROOT_KEY_COMMAND"] as const;

function readHistory(mebibytes: string): number {
  if (/^\d{1,6}$/.test(mebibytes)) return Number(mebibytes) * 1024 * 1024;
  throw configProblem("KEYHOLE_HISTORY_MIB must be a whole number from 0 to 999999.");
}

function readOps(env: Env): Config["ops"] {
  const { KEYHOLE_OPS_HOST: host, KEYHOLE_OPS_PORT: port } = env;
  if (port !== undefined && !isService("KEYHOLE_OPS_PORT", port)) {
    return { host: parseHost("KEYHOLE_OPS_HOST", host ?? "127.0.0.1"), port: parsePort("KEYHOLE_OPS_PORT", port) };
  }
  if (host === undefined) return undefined;
  throw configProblem("KEYHOLE_OPS_HOST is set without KEYHOLE_OPS_PORT, which turns the listener on.");
}

function parseWitnessSetting(text: string): WitnessSetting {
  const [, url = "", key = ""] = /^([^#]+)#([^#]+)$/.exec(text) ?? [];
  if (mayAsk(url) && !/[?@]/.test(url)) return { url, key };
  throw configProblem(
    "KEYHOLE_WITNESS must be https://HOST#KEY, or several with commas; KEY is the witness's verifier key.",
  );
}

function parseProxy(text: string): AddressRange {
  const range = parseRange(text);
  if (range !== undefined) return range;
  throw configProblem(
    `KEYHOLE_TRUSTED_PROXIES must be addresses, ranges or unix, with commas, such as 10.0.0.2,10.1.0.0/16: ${JSON.stringify(text)} ${noRange}.`,
  );
}

function readMcpOrigins(env: Env): Config["mcpOrigins"] {
  const { KEYHOLE_MCP: mcp, KEYHOLE_MCP_ORIGINS: list } = env;
  if (mcp !== undefined && mcp !== "on" && mcp !== "off") throw configProblem("KEYHOLE_MCP must be on or off.");
  if (mcp !== "on") {
    if (list === undefined) return undefined;
    throw configProblem("KEYHOLE_MCP_ORIGINS is set without KEYHOLE_MCP=on, which turns the MCP surface on.");
  }
  const origins = list?.split(",") ?? [];
  // Origins are compared as text, so only the spelling that browsers send is accepted.
  if (origins.every((origin) => /^https?:/.test(origin) && URL.parse(origin)?.origin === origin)) return origins;
  throw configProblem("KEYHOLE_MCP_ORIGINS must be a list of origins such as https://tools.example.com.");
}

/** @returns undefined if unset or, as OpenTelemetry requires, empty. The Problem does not show the URL. */
function readUrl(env: Env, setting: string, protocols: readonly string[], port: number): string | undefined {
  const text = env[setting];
  if (!text) return undefined;
  const url = URL.parse(text);
  if (url !== null && protocols.includes(url.protocol) && url.hostname !== "") return text;
  const forms = protocols.map((protocol) => `${protocol}//host:${port}`);
  throw configProblem(`${setting} must be a URL of the form ${forms.join(" or ")}.`);
}

/** What the driver would refuse at each connection, or pass over, is refused here. */
function readLimiterUrl(env: Env): string | undefined {
  const text = readUrl(env, "KEYHOLE_LIMITER_URL", ["redis:", "rediss:"], 6379);
  if (text === undefined) return undefined;
  const { protocol, port, pathname, search, hash, username, password } = new URL(text);
  const isDecoded = attempt(() => decodeURIComponent(username + password)) !== undefined;
  const isRight = port !== "0" && /^(?:\/\d{0,5})?$/.test(pathname) && search + hash === "" && isDecoded;
  if (isRight && (username === "" || password !== "")) return text;
  throw configProblem(
    `KEYHOLE_LIMITER_URL must be a URL of the form ${protocol}//user:password@host:6379, with nothing after it but / and the number of a database; percent-encode % @ / ? # in the password.`,
  );
}

function readRootKeySource(env: Env, isRequired: boolean): RootKeySource {
  const [setting, other] = rootKeySettings.filter((name) => env[name] !== undefined);
  if (setting !== undefined && other !== undefined) {
    throw configProblem(`${setting} and ${other} are both set: keep one of them.`);
  }
  const text = env[setting ?? ""] ?? "";
  if (setting === "KEYHOLE_ROOT_KEY") return { from: "text", text };
  if (setting === "KEYHOLE_ROOT_KEY_FILE") return { from: "file", path: resolve(text) };
  if (setting !== undefined) return { from: "command", words: splitWords(setting, text), env: withoutSettings(env) };
  if (!isRequired) return { from: "folder" };
  const words =
    "KEYHOLE_ROOT_KEY, KEYHOLE_ROOT_KEY_FILE or KEYHOLE_ROOT_KEY_COMMAND is required with DATABASE_URL: make a key with `openssl rand -base64 32`.";
  throw configProblem(words);
}

/**
 * Splits a command into words as a shell would. No shell runs it, so characters that only a shell acts on are refused.
 */
function splitWords(setting: string, text: string): [program: string, ...args: string[]] {
  const outsideOfQuotes = text.replace(/\\.|'[^']*'|"(?:[^"\\$`]|\\.)*"/gs, "");
  const words = /['"\\$`~[\]{}()<>|&;*?#]/.test(outsideOfQuotes) ? undefined : wordsOf(text);
  if (words === undefined) {
    const what = "has an open quote, or a character that only a shell would act on";
    throw configProblem(`${setting} ${what}: quote it, or write sh -c '…'.`);
  }
  const [program = "", ...args] = words;
  if (program === "") throw configProblem(`${setting} names no program.`);
  return [program, ...args];
}
