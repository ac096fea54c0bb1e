import { readFileSync } from "node:fs";
import { isIP, isIPv6 } from "node:net";
import { homedir, userInfo } from "node:os";
import { join, resolve } from "node:path";
import { type ConnectionOptions, createSecureContext, getCACertificates } from "node:tls";
import { attempt } from "../attempt.ts";
import { isLoopback } from "../json-request.ts";
import { configProblem } from "../problem.ts";
import { readSecretFile } from "./secret-file.ts";
import type { Env } from "./setting-names.ts";

/*
 * DATABASE_URL, read as libpq reads it, and judged whole before a byte is sent. The driver gets no URL: it would send
 * a parameter that it does not know to the server, take `sslMode=require` for a wish to do without TLS, and look for
 * the brackets of an IPv6 address in DNS.
 */

/** One server that DATABASE_URL names. */
export type PostgresServer = {
  /** `host:port`, or the path of its socket: for messages. */
  readonly name: string;
  /**
   * Options of postgres.js. They leave nothing that it would take from the environment. Files with passwords and
   * certificates are read again each time; what cannot be read stays as it was.
   */
  readonly connect: {
    readonly host: string[];
    readonly port: number[];
    readonly path?: string;
    readonly user: string;
    readonly pass: string;
    readonly database: string;
    readonly ssl: false | "prefer" | ConnectionOptions;
    readonly connection: { readonly options?: string };
  };
  /** What to do if the server refuses the sign-in. */
  readonly advice: string;
  /** That others can pose as it, and how to keep them from it; undefined if they cannot, or if TLS was turned off. */
  readonly doubt: string | undefined;
};

/** What DATABASE_URL says. */
export type Postgres = {
  /** At least one. */
  readonly servers: readonly PostgresServer[];
  /** Files with a password or a private key that were read. */
  readonly secretFiles: readonly string[];
};

/** The parameters of DATABASE_URL that have one of some values. */
const chosen = {
  sslmode: ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
  sslnegotiation: ["postgres"],
  channel_binding: ["disable", "prefer", "require"],
  gssencmode: ["disable", "prefer"],
  target_session_attrs: ["any", "read-write", "primary"],
} as const satisfies Record<string, readonly string[]>;
/** Those with any value. After `options` they have no effect: deadlines and the names of sessions are Keyhole's own. */
const free = [
  ...(["sslrootcert", "sslcert", "sslkey", "host", "port", "passfile", "options", "application_name"] as const),
  ...([
    "fallback_application_name",
    "connect_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
  ] as const),
  ...(["keepalives_count", "tcp_user_timeout"] as const),
];
type Parameter = keyof typeof chosen | (typeof free)[number];
const allowedValues = new Map<string, readonly string[] | undefined>([
  ...Object.entries(chosen),
  ...free.map((name) => [name, undefined] as const),
]);

/** The value of a parameter: from the URL, else from the variable that libpq has for it, such as PGSSLMODE. */
type ParameterReader = (name: Parameter) => string | undefined;

/** @throws Problem with one sentence that names the parameter, the variable or the file that is wrong */
export function parsePostgresUrl(text: string, given: Env): Postgres {
  // A copy, since secrets are erased from the environment.
  const env = Object.fromEntries(Object.entries(given).filter(([name]) => /^(?:PG|HOME$|DATABASE_)/.test(name)));
  const [, login, authority, path = "", query = ""] =
    /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#@]*))?(?:\?([^#@]*))?$/i.exec(text) ?? [];
  if (authority === undefined) throw formProblem();
  requireOnce("host", authority !== "", query);
  requireOnce("port", /:\d+(?:,|$)/.test(authority), query);
  const [, user = "", urlPassword] = /^([^:]*)(?::(.*))?$/s.exec(login ?? "") ?? [];
  const values = parseParameters(query, env);
  const account = decode(user) || env["PGUSER"] || attempt(() => userInfo().username);
  if (!account) throw formProblem();
  const database = decode(path) || env["PGDATABASE"] || account;
  const options = values("options");
  const connection = options === undefined ? {} : { options };
  const readFiles = () => ({
    tls: readTls(values),
    passwords: readPasswords(urlPassword && decode(urlPassword), values, env),
  });
  const { files } = readFiles().passwords;
  const keyFile = values("sslkey");
  const secretFiles = keyFile === undefined ? files : [...files, keyFile];
  const advice =
    secretFiles.length === 0
      ? "correct the user and the password of DATABASE_URL, then restart"
      : `correct ${secretFiles.join(" and ")}, which is read again when it has changed`;
  const servers = parseHosts(authority, values).map(({ host, port }): PostgresServer => {
    const isSocket = host.startsWith("/");
    const socket = isSocket ? join(host, `.s.PGSQL.${port}`) : undefined;
    const read = (): PostgresServer["connect"] => {
      const { tls, passwords } = readFiles();
      const login = { user: account, pass: passwords.of([host, String(port), database, account]), database };
      const at = { host: [host], port: [port], connection, ...login };
      if (socket !== undefined) return { ...at, path: socket, ssl: false };
      return { ...at, ssl: tls ?? (isLoopback(host) ? false : "prefer") };
    };
    let last = read();
    const name = socket ?? `${isIPv6(host) ? `[${host}]` : host}:${port}`;
    const mode = values("sslmode") ?? "prefer";
    const isDoubtful = mode !== "disable" && !isVerified(last);
    return {
      name,
      doubt: isDoubtful ? doubtOf(name, mode) : undefined,
      get connect() {
        last = attempt(read) ?? last;
        return last;
      },
      advice,
    };
  });
  return { servers, secretFiles };
}

function doubtOf(name: string, mode: string): string {
  const what =
    mode === "require" ? "TLS, but nobody verifies" : "TLS only if the server offers it, and nobody verifies";
  return `WARNING: Anybody on the way to ${name} can pose as the database: sslmode=${mode} asks for ${what} the certificate. Write sslmode=verify-full in DATABASE_URL, with sslrootcert=FILE or sslrootcert=system, the authorities that sign it.`;
}

/** Whether nobody else can be at the other end: the certificate is verified, or it is this machine. */
export function isVerified({ path, host: [host = ""], ssl }: PostgresServer["connect"]): boolean {
  return path !== undefined || isLoopback(host) || (typeof ssl === "object" && ssl.rejectUnauthorized === true);
}

/** @throws Problem if a parameter says again what the URL says before it: libpq takes the last */
function requireOnce(name: "host" | "port", isNamed: boolean, query: string): void {
  if (!isNamed || !query.split("&").some((part) => part.startsWith(`${name}=`))) return;
  throw configProblem(`DATABASE_URL has the parameter ${name} beside another ${name}: keep one of them.`);
}

function formProblem() {
  const words =
    "DATABASE_URL must be a URL of the form postgres://user:password@host:5432/database; percent-encode % @ / ? # in the password (%25 %40 %2F %3F %23).";
  return configProblem(words);
}

/** @throws Problem if a % is not followed by two digits, or if bytes cannot be sent as text */
function decode(text: string): string {
  const decoded = attempt(() => decodeURIComponent(text));
  if (decoded === undefined || decoded.includes("\0")) throw formProblem();
  return decoded;
}

function parseParameters(query: string, env: Env): ParameterReader {
  const given = new Map<string, string>();
  for (const part of query.split("&").filter(Boolean)) {
    const [, name = "", value = ""] = /^([^=]*)=?(.*)$/s.exec(part) ?? [];
    if (!allowedValues.has(name)) throw unknownParameter(name);
    if (given.has(name)) throw configProblem(`DATABASE_URL has the parameter ${name} twice: leave one out.`);
    given.set(name, decode(value));
  }
  if (env["PGTARGETSESSIONATTRS"] !== undefined) {
    throw configProblem("PGTARGETSESSIONATTRS is set: unset it, because Keyhole finds the primary by itself.");
  }
  const variableOf = (name: string) => `PG${name.replaceAll("_", "").toUpperCase()}`;
  const values: ParameterReader = (name) => given.get(name) ?? env[variableOf(name)];
  for (const [name, allowed] of allowedValues) {
    const value = values(name as Parameter);
    if (value === undefined || (allowed?.includes(value) ?? value !== "")) continue;
    const where = given.has(name) ? `DATABASE_URL has ${name}=` : `The environment has ${variableOf(name)}=`;
    // A part of a password that was not encoded may stand here.
    const shown = /^[\w-]{0,20}$/.test(value) ? value : "…";
    throw configProblem(`${where}${shown}: ${allowed ? `it must be ${allowed.join(" or ")}` : "it is empty"}.`);
  }
  return values;
}

function unknownParameter(name: string) {
  const shown = /^\w{1,40}$/.test(name) ? `the parameter ${name}` : "a parameter";
  // Leaving it out would turn TLS off.
  const advice = /ssl|tls/i.test(name) ? "ask for TLS with sslmode=verify-full or sslmode=require" : "leave it out";
  return configProblem(`DATABASE_URL has ${shown}, which Keyhole does not know: ${advice}.`);
}

/** @returns what the driver takes; undefined if nobody said whether there is to be TLS */
function readTls(values: ParameterReader): PostgresServer["connect"]["ssl"] | undefined {
  const [rootPath, certPath, keyPath] = [values("sslrootcert"), values("sslcert"), values("sslkey")];
  // The driver has no channel binding. A certificate that is verified keeps others from standing between as well.
  const isStrict = values("channel_binding") === "require" || rootPath === "system";
  const mode = isStrict ? "verify-full" : values("sslmode");
  const named = rootPath ? "sslrootcert" : certPath ? "sslcert" : keyPath ? "sslkey" : undefined;
  if (mode === undefined || mode === "disable" || mode === "allow" || mode === "prefer") {
    if (named === undefined) return mode && (mode === "disable" ? false : "prefer");
    throw configProblem(`${named} needs TLS that is required: add sslmode=verify-full to DATABASE_URL.`);
  }
  if (!certPath !== !keyPath) throw configProblem("DATABASE_URL needs both sslcert and sslkey, or neither.");
  const files = {
    ...(rootPath === "system" && { ca: [...getCACertificates("default"), ...getCACertificates("system")] }),
    ...(rootPath && rootPath !== "system" && { ca: readSecretFile("sslrootcert", rootPath) }),
    ...(certPath && keyPath && { cert: readSecretFile("sslcert", certPath), key: readSecretFile("sslkey", keyPath) }),
  };
  if (named !== undefined && attempt(() => createSecureContext(files)) === undefined) {
    const words = "sslrootcert, sslcert and sslkey of DATABASE_URL must name PEM files, the key without a password.";
    throw configProblem(words);
  }
  if (mode === "verify-full") return { ...files, rejectUnauthorized: true };
  // As in libpq, an authority that is named is also asked if the mode is `require`.
  if (mode === "require" && !files.ca) return { ...files, rejectUnauthorized: false };
  return { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };
}

/** The URL's password, else that of DATABASE_PASSWORD_FILE, PGPASSWORD or the password file, in this order. */
function readPasswords(fromUrl: string | undefined, values: ParameterReader, env: Env) {
  const { DATABASE_PASSWORD_FILE: file, PGPASSWORD: fromEnv } = env;
  if (file !== undefined) {
    if (fromUrl)
      throw configProblem("DATABASE_PASSWORD_FILE is set and DATABASE_URL has a password: keep one of them.");
    const password = readSecretFile("DATABASE_PASSWORD_FILE", file);
    return { files: [resolve(file)], of: () => password };
  }
  const known = fromUrl || fromEnv;
  if (known) return { files: [], of: () => known };
  const named = values("passfile");
  // An account that the system does not know has no home.
  const home = env["HOME"] ?? attempt(() => homedir());
  const path = named ?? (home === undefined ? undefined : join(home, ".pgpass"));
  const read = () => (path === undefined ? undefined : readFileSync(path, "utf8"));
  const text = named === undefined ? attempt(read) : readSecretFile("passfile", named);
  return {
    files: path === undefined || text === undefined ? [] : [path],
    of: (login: readonly string[]) => findPassword(text ?? "", login),
  };
}

/**
 * @param text - of a password file: lines of `host:port:database:user:password`, with `*` for any and `\` before a
 *   colon or another `\`
 * @see https://www.postgresql.org/docs/current/libpq-pgpass.html
 */
function findPassword(text: string, login: readonly string[]): string {
  const unescaped = (field: string) => field.replace(/\\(.)/g, "$1");
  for (const line of text.split(/\r?\n/)) {
    if (line.startsWith("#")) continue;
    const [, fields = "", password] = /^((?:(?:\\.|[^\\:])*:){4})(.*)$/.exec(line) ?? [];
    const wanted = [...fields.matchAll(/((?:\\.|[^\\:])*):/g)].map(([, field = ""]) => field);
    if (password !== undefined && wanted.every((field, at) => field === "*" || unescaped(field) === login[at])) {
      return unescaped(password);
    }
  }
  return "";
}

/** @returns each host with its port; a host that begins with / is the folder of a socket */
function parseHosts(authority: string, values: ParameterReader): { host: string; port: number }[] {
  const ports = values("port")?.split(",") ?? [];
  const hosts = authority === "" ? (values("host") ?? "localhost").split(",") : authority.split(",");
  if (ports.length > 1 && ports.length !== hosts.length) {
    const words = `DATABASE_URL has ${hosts.length} hosts and ${ports.length} ports: give one port, or each host its own.`;
    throw configProblem(words);
  }
  const portOf = (text: string | undefined, at: number) => {
    const port = Number((text || ports[at]) ?? ports[0] ?? 5432);
    if (Number.isInteger(port) && port >= 1 && port <= 65535) return port;
    throw configProblem("DATABASE_URL has a port that is not a number from 1 to 65535.");
  };
  if (authority === "") return hosts.map((host, at) => ({ host: requireHost(host), port: portOf(undefined, at) }));
  return hosts.map((one, at) => {
    const [, address, name = "", port] = /^(?:\[([^[\]]+)\]|([^:[\]]+))(?::(\d{0,5}))?$/.exec(one) ?? [];
    const host = decode(address ?? name);
    if (address !== undefined && !isIPv6(host)) throw formProblem();
    return { host: requireHost(host), port: portOf(port, at) };
  });
}

function requireHost(host: string): string {
  if (isIP(host) !== 0 || /^(?:\/.*|[A-Za-z0-9._-]+)$/s.test(host)) return host;
  throw formProblem();
}
