import { resolve } from "node:path";
import { parse } from "shell-quote";

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
  /** `root.key` in the data folder, created on first use; only for the embedded database. */
  | { readonly from: "folder" };

/** Every setting, validated once at start. */
export type Config = {
  /** PostgreSQL; undefined for the embedded database in `dataFolder`. */
  readonly databaseUrl: string | undefined;
  /** Absolute path. */
  readonly dataFolder: string;
  readonly rootKey: RootKeySource;
  readonly host: string;
  readonly port: number;
  /** The second listener, for health and metrics; undefined for none. */
  readonly ops?: { readonly host: string; readonly port: number } | undefined;
  /** Redis or Valkey with the buckets of all instances; undefined if each process has its own. */
  readonly limiterUrl?: string | undefined;
  /** Where traces are sent by OTLP over HTTP, without `/v1/traces`; undefined for nowhere. */
  readonly tracesUrl?: string | undefined;
};

/** A wrong setting. The message is one sentence that names it and never shows a secret value. */
export class ConfigProblem extends Error {
  override readonly name = "ConfigProblem";
}

/**
 * Reads the settings.
 * @param env - the process's environment, or a test's
 * @throws ConfigProblem for the first wrong setting; an empty one is wrong, not absent
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  for (const [name, value] of Object.entries(env)) {
    if (value === "" && settings.has(name)) {
      throw new ConfigProblem(`${name} is set but empty: give it a value or unset it.`);
    }
  }
  const databaseUrl = env["DATABASE_URL"];
  if (databaseUrl !== undefined && !isPostgresUrl(databaseUrl)) {
    throw new ConfigProblem("DATABASE_URL must be a URL of the form postgres://user:password@host:5432/database.");
  }
  return Object.freeze({
    databaseUrl,
    dataFolder: resolve(env["KEYHOLE_DATA"] ?? ".keyhole"),
    rootKey: readRootKeySource(env, databaseUrl !== undefined),
    host: env["HOST"] ?? "127.0.0.1",
    port: parsePort("PORT", env["PORT"] ?? "4100"),
    ops: readOps(env),
    limiterUrl: readUrl(env, "KEYHOLE_LIMITER_URL", ["redis:", "rediss:"], "redis://host:6379 or rediss://host:6379"),
    tracesUrl: readUrl(env, tracesSetting, ["http:", "https:"], "http://host:4318 or https://host:4318"),
  });
}

/** Port 0 lets the system choose. @throws ConfigProblem that names `setting` */
export function parsePort(setting: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw new ConfigProblem(`${setting} must be a port number from 0 to 65535.`);
  return port;
}

const rootKeySettings = ["KEYHOLE_ROOT_KEY", "KEYHOLE_ROOT_KEY_FILE", "KEYHOLE_ROOT_KEY_COMMAND"] as const;
const settings = new Set<string>([
  "DATABASE_URL",
  "KEYHOLE_DATA",
  ...rootKeySettings,
  "HOST",
  "PORT",
  "KEYHOLE_OPS_HOST",
  "KEYHOLE_OPS_PORT",
  "KEYHOLE_LIMITER_URL",
]);

const tracesSetting = "OTEL_EXPORTER_OTLP_ENDPOINT";

function readOps(env: Readonly<Record<string, string | undefined>>): Config["ops"] {
  const port = env["KEYHOLE_OPS_PORT"];
  if (port !== undefined) {
    return { host: env["KEYHOLE_OPS_HOST"] ?? "127.0.0.1", port: parsePort("KEYHOLE_OPS_PORT", port) };
  }
  if (env["KEYHOLE_OPS_HOST"] === undefined) return undefined;
  throw new ConfigProblem("KEYHOLE_OPS_HOST is set without KEYHOLE_OPS_PORT, which turns the listener on.");
}

/** @returns undefined if unset or, as OpenTelemetry demands, empty. @throws ConfigProblem that does not show the URL */
function readUrl(
  env: Readonly<Record<string, string | undefined>>,
  setting: string,
  protocols: readonly string[],
  form: string,
): string | undefined {
  const text = env[setting] || undefined;
  if (text === undefined) return undefined;
  const url = URL.parse(text);
  if (url !== null && protocols.includes(url.protocol) && url.hostname !== "") return text;
  throw new ConfigProblem(`${setting} must be a URL of the form ${form}.`);
}

function readRootKeySource(env: Readonly<Record<string, string | undefined>>, external: boolean): RootKeySource {
  const [setting, other] = rootKeySettings.filter((name) => env[name] !== undefined);
  if (setting !== undefined && other !== undefined) {
    throw new ConfigProblem(`${setting} and ${other} are both set: keep one of them.`);
  }
  const text = setting === undefined ? "" : (env[setting] ?? "");
  switch (setting) {
    case "KEYHOLE_ROOT_KEY":
      return { from: "text", text };
    case "KEYHOLE_ROOT_KEY_FILE":
      return { from: "file", path: resolve(text) };
    case "KEYHOLE_ROOT_KEY_COMMAND":
      return { from: "command", words: splitWords(setting, text), env: withoutSettings(env) };
  }
  if (!external) return { from: "folder" };
  throw new ConfigProblem(
    "KEYHOLE_ROOT_KEY, KEYHOLE_ROOT_KEY_FILE or KEYHOLE_ROOT_KEY_COMMAND is required with DATABASE_URL: make a key with `openssl rand -base64 32`.",
  );
}

/**
 * Splits a command into words as a shell would. No shell runs it, so what only a shell would act on is refused.
 * @throws ConfigProblem
 */
function splitWords(setting: string, text: string): [program: string, ...args: string[]] {
  const unquoted = text.replace(/\\.|'[^']*'|"(?:[^"\\$`]|\\[^`])*"/gs, "");
  // shell-quote takes these as they stand, and drops a quote that is never closed.
  const words = /['"\\$`~[\]{}]/.test(unquoted) ? undefined : parse(text);
  if (!words?.every((word) => typeof word === "string")) {
    throw new ConfigProblem(
      `${setting} has an open quote, or a character that only a shell would act on: quote it, or write sh -c '…'.`,
    );
  }
  const [program = "", ...args] = words;
  if (program === "") throw new ConfigProblem(`${setting} names no program.`);
  return [program, ...args];
}

/** The environment for the root key command: it may need a path and credentials, but none of Keyhole's. */
function withoutSettings(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => name !== "DATABASE_URL" && !name.startsWith("KEYHOLE_"));
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}

function isPostgresUrl(text: string): boolean {
  const urls = databaseUrls(text).map((url) => URL.parse(url));
  return urls.every(
    (url) =>
      (url?.protocol === "postgres:" || url?.protocol === "postgresql:") && (urls.length === 1 || url.hostname !== ""),
  );
}

/** One URL for each host that DATABASE_URL names: `postgres://keyhole@h1:5432,h2:5433/keyhole` names two. */
export function databaseUrls(text: string): string[] {
  const [, before, hosts = "", after] = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/s.exec(text) ?? [];
  return before === undefined ? [text] : hosts.split(",").map((host) => before + host + after);
}
