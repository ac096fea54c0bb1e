import { resolve } from "node:path";

/** Where the root keys come from (CONTRACT, configuration). */
export type RootKeySource =
  | { readonly from: "text"; readonly text: string }
  | { readonly from: "file"; readonly path: string }
  /** What a program prints, started without a shell and with `env` for its whole environment. */
  | {
      readonly from: "command";
      readonly words: readonly [program: string, ...args: string[]];
      readonly env: Readonly<Record<string, string>>;
    }
  /** `root.key` in the data folder, made on first use; embedded database only. */
  | { readonly from: "folder" };

/** Every setting, judged once at start. */
export type Config = {
  /** PostgreSQL; undefined: the embedded database in `dataFolder`. */
  readonly databaseUrl: string | undefined;
  /** Absolute path. */
  readonly dataFolder: string;
  readonly rootKey: RootKeySource;
  readonly host: string;
  readonly port: number;
  /** The second listener, for health and metrics; undefined: none. */
  readonly ops?: { readonly host: string; readonly port: number } | undefined;
  /** Redis or Valkey that holds the buckets of all instances; undefined: each process has its own. */
  readonly limiterUrl?: string | undefined;
  /** Where traces go by OTLP over HTTP, the base to which `/v1/traces` is added; undefined: nowhere. */
  readonly tracesUrl?: string | undefined;
};

/** A setting that is wrong; the message is one sentence that names it and never shows its value where that is secret. */
export class ConfigProblem extends Error {
  override readonly name = "ConfigProblem";
}

/**
 * Reads the settings.
 * @param env - the process's environment, or a test's
 * @throws ConfigProblem for the first setting that is wrong: nothing is guessed, and an empty setting is not an absent one
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

/** @throws ConfigProblem naming `setting` where the text is no port; 0 lets the system choose */
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
  throw new ConfigProblem("KEYHOLE_OPS_HOST is set without KEYHOLE_OPS_PORT, which alone turns the listener on.");
}

/** The URL, or undefined where it is unset or, as OpenTelemetry has it, empty. @throws ConfigProblem without its value */
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
 * A command line as the words that a shell would make of it, quotes and backslashes included. There is no shell: what
 * only a shell would act on is refused, not passed on as if it were meant.
 *
 * @throws ConfigProblem
 */
function splitWords(setting: string, text: string): [program: string, ...args: string[]] {
  const words: string[] = [];
  let rest = text.trim();
  while (rest !== "") {
    const [taken = "", word = ""] =
      /^((?:[^\s'"\\|&;<>()$`*?[\]{}~#]|\\[\s\S]|'[^']*'|"(?:[^"\\$`]|\\[\s\S])*")+)(?:\s+|$)/.exec(rest) ?? [];
    if (taken === "") {
      throw new ConfigProblem(
        `${setting} has an open quote, or a character that only a shell would act on: quote it, or write sh -c '…'.`,
      );
    }
    words.push(
      word.replace(/'([^']*)'|"((?:[^"\\]|\\[\s\S])*)"|\\([\s\S])/g, (_, single, double, escaped) =>
        String(single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped),
      ),
    );
    rest = rest.slice(taken.length);
  }
  const [program = "", ...args] = words;
  if (program === "") throw new ConfigProblem(`${setting} names no program.`);
  return [program, ...args];
}

/** The environment for a program that is not ours: it needs a path and credentials of its own, and none of Keyhole's. */
function withoutSettings(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const kept = Object.entries(env).filter(([name]) => name !== "DATABASE_URL" && !name.startsWith("KEYHOLE_"));
  return Object.fromEntries(kept.map(([name, value]) => [name, value ?? ""]));
}

function isPostgresUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "postgres:" || url.protocol === "postgresql:");
}
