import { resolve } from "node:path";

/** Where the root keys come from (CONTRACT, configuration). */
export type RootKeySource =
  | { readonly from: "text"; readonly text: string }
  | { readonly from: "file"; readonly path: string }
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
  for (const name of unsupported) {
    if (env[name] !== undefined) throw new ConfigProblem(`${name} is not supported by this version: unset it.`);
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
  });
}

/** @throws ConfigProblem naming `setting` where the text is no port; 0 lets the system choose */
export function parsePort(setting: string, text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (!(port <= 65535)) throw new ConfigProblem(`${setting} must be a port number from 0 to 65535.`);
  return port;
}

const settings = new Set(["DATABASE_URL", "KEYHOLE_DATA", "KEYHOLE_ROOT_KEY", "KEYHOLE_ROOT_KEY_FILE", "HOST", "PORT"]);

// Set, they would promise something (shared limits, health answers) that nobody keeps yet: better said at start.
const unsupported = ["KEYHOLE_LIMITER_URL", "KEYHOLE_OPS_HOST", "KEYHOLE_OPS_PORT"];

function readRootKeySource(env: Readonly<Record<string, string | undefined>>, external: boolean): RootKeySource {
  const text = env["KEYHOLE_ROOT_KEY"];
  const path = env["KEYHOLE_ROOT_KEY_FILE"];
  if (text !== undefined && path !== undefined) {
    throw new ConfigProblem("KEYHOLE_ROOT_KEY and KEYHOLE_ROOT_KEY_FILE are both set: keep one of them.");
  }
  if (text !== undefined) return { from: "text", text };
  if (path !== undefined) return { from: "file", path: resolve(path) };
  if (!external) return { from: "folder" };
  throw new ConfigProblem(
    "KEYHOLE_ROOT_KEY or KEYHOLE_ROOT_KEY_FILE is required with DATABASE_URL: make a key with `openssl rand -base64 32`.",
  );
}

function isPostgresUrl(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "postgres:" || url.protocol === "postgresql:");
}
