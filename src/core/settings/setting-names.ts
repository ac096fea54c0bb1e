/*
 * The names of all settings, each once. The page docs/configuration.md, the help, the check for misspelt ones and the
 * erasure of secrets go by these lists.
 */

/** Settings of servers and people's commands, in the order of docs/configuration.md. An empty one is refused. */
export const settingNames = [
  "DATABASE_URL",
  "DATABASE_PASSWORD_FILE",
  "KEYHOLE_DATA",
  "KEYHOLE_ROOT_KEY",
  "KEYHOLE_ROOT_KEY_FILE",
  "KEYHOLE_ROOT_KEY_COMMAND",
  "HOST",
  "KEYHOLE_SOCKET_MODE",
  "KEYHOLE_SOCKET_GROUP",
  "PORT",
  "KEYHOLE_TRUSTED_PROXIES",
  "KEYHOLE_OPS_PORT",
  "KEYHOLE_OPS_HOST",
  "KEYHOLE_MCP",
  "KEYHOLE_MCP_ORIGINS",
  "KEYHOLE_LIMITER_URL",
  "KEYHOLE_ACTOR",
  "KEYHOLE_SSH",
  "KEYHOLE_CLIENT_SECRET",
  "KEYHOLE_CLIENT_SECRET_FILE",
  "KEYHOLE_DASHBOARD_NAME",
  "KEYHOLE_SIGN_IN_MINUTES",
  "KEYHOLE_HISTORY_MIB",
  "KEYHOLE_WITNESS",
  "KEYHOLE_CHECKPOINT_FILE",
] as const;

/** Those of OpenTelemetry, where empty is unset. */
export const tracingNames = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME"] as const;

/** Settings of machines' commands. */
export const clientSettingNames = [
  "KEYHOLE_URL",
  "KEYHOLE_API_KEY",
  "KEYHOLE_API_KEY_FILE",
  "KEYHOLE_OIDC",
  "KEYHOLE_PROJECT",
  "KEYHOLE_ENVIRONMENT",
  "KEYHOLE_ALLOW_HTTP",
] as const;

/** Settings whose value is a secret, or may hold a password. */
export const secretSettingNames = [
  "KEYHOLE_ROOT_KEY",
  "DATABASE_URL",
  "PGPASSWORD",
  "KEYHOLE_LIMITER_URL",
  "KEYHOLE_CLIENT_SECRET",
  "KEYHOLE_API_KEY",
] as const;

export type Env = Readonly<Record<string, string | undefined>>;

/**
 * Whether Kubernetes made this variable of a Service, such as KEYHOLE_OPS_PORT of one called keyhole-ops.
 * @see https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
 */
export function isService(name: string, value: string): boolean {
  if (/_SERVICE_(?:HOST|PORT(?:_[A-Z0-9_]+)?)$/.test(name)) return true;
  if (/_PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?$/.test(name)) return true;
  return /_PORT$/.test(name) && /^(?:tcp|udp|sctp):\/\//.test(value);
}
