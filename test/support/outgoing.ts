/**
 * Everything that Keyhole connects to, and the files of `src` that do it. Each file opens a connection or asks by
 * `guardedFetch`. `unit/outgoing` fails for a file that is not here, and `blackbox/outgoing` has a test of each one that
 * may cross a network: whatever the environment says, it takes no stranger's certificate and prints no credential.
 */
export const remote = {
  /** `run`, `pull`, `files pull` and `mcp`, with a key or a job's token. */
  server: ["client/client.ts"],
  /** The same from a program of somebody's own. */
  "server, by the npm package": ["client/npm/client.ts"],
  /** For a token, with the runner's bearer or what a cloud gave the machine. */
  "giver of tokens": ["client/token-giver.ts"],
  /** For the keys that verify tokens; without a credential. */
  issuer: ["core/fetch-json.ts"],
  /** With the dashboard's client secret. */
  "identity provider": ["dashboard/provider.ts", "dashboard/sign-in.ts"],
  /** Without a credential. */
  witness: ["record/notary/witnessed-heads.ts"],
  /** With the password of DATABASE_URL. */
  database: ["store/postgres.ts"],
  /** With the password of KEYHOLE_LIMITER_URL. */
  limits: ["serve/process/redis-buckets.ts"],
  /** With the headers of OTEL_EXPORTER_OTLP_HEADERS. */
  traces: ["serve/process/traces.ts"],
} as const satisfies Readonly<Record<string, readonly string[]>>;

/** What is on the same machine, and what the others connect with. */
export const local: readonly string[] = [
  "cli/demo.ts",
  "cli/health.ts",
  "serve/process/socket.ts",
  "core/guarded-fetch.ts",
  "core/public-fetch.ts",
];
