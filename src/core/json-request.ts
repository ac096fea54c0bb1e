/*
 * One request for JSON to a server that may be hostile. The npm package contains this file, so it imports nothing and
 * uses only what Node 20, Bun and Deno have.
 */

/** What a request is sent with. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** What is sent, and how much of an answer is accepted. */
export type JsonRequest = {
  readonly headers: Readonly<Record<string, string>>;
  /** The body of a POST; without it the request is a GET. */
  readonly post?: string | undefined;
  /** How long the request may take, including its answer. */
  readonly timeoutMs: number;
  /** Ends the request, which then is `unreachable`. */
  readonly signal?: AbortSignal | undefined;
  /** How many bytes of a 200 are read. Of any other answer, at most 64 KiB are. */
  readonly bytesMax: number;
  readonly fetch: Fetch;
  /** What the body's text is read as; JSON, unless it says otherwise. */
  readonly parse?: Parse;
};
type Parse = (text: string) => unknown;

/** An answer. The body of a 304 or a redirect is not read, and no redirect is followed. */
export type JsonReply = {
  readonly status: number;
  readonly headers: Headers;
  /** `wrong` says what the body is instead of JSON: `it is …`. */
  readonly body: { readonly json: unknown } | { readonly wrong: string };
};

/** Why there is no answer. `reason` is the network's code; no other text of the runtime is safe to show. */
export type NoReply = {
  readonly failed: "timeout" | "unreachable";
  readonly reason: string | undefined;
  /** The setting that named a proxy for the request, and the proxy's address, without its password. */
  readonly proxy: string | undefined;
  /** The status with which the proxy refused. */
  readonly proxyStatus: number | undefined;
  /** The headers of an answer that broke off. */
  readonly headers: Headers | undefined;
};

/** What this module needs of Deno. */
type Deno = { createHttpClient(options: { readonly poolMaxIdlePerHost: number }): unknown };

/** For Deno, which ignores `Connection: close`: a client that keeps no connection. */
const client = (globalThis as { readonly Deno?: Deno }).Deno?.createHttpClient({ poolMaxIdlePerHost: 0 });

/** Sends one request, without following redirects. Never rejects. */
export async function requestJson(url: string, request: JsonRequest): Promise<JsonReply | NoReply> {
  const { headers, post, timeoutMs, bytesMax, fetch: send, parse } = request;
  const late = AbortSignal.timeout(timeoutMs);
  // Node has no `any` before 20.3: there, a request ends with its timeout.
  const signal = request.signal === undefined ? late : (AbortSignal.any?.([late, request.signal]) ?? late);
  let response: Response | undefined;
  try {
    response = await send(url, {
      // On a connection that is used again, runtimes take an answer that nobody asked for as the next one.
      headers: { ...headers, Connection: "close" },
      ...(client !== undefined && { client }),
      ...(post !== undefined && { method: "POST", body: post }),
      redirect: "manual",
      signal,
      // For Bun: HTTP_PROXY would get the key in the clear, even for a request to this machine.
      ...(url.startsWith("http:") && { proxy: false }),
    });
    const { status } = response;
    const isUnread = status >= 300 && status < 400;
    if (isUnread) await response.body?.cancel();
    const body = isUnread
      ? { wrong: "a redirect" }
      : await readJson(response, status === 200 ? bytesMax : Math.min(bytesMax, 64 * 1024), parse);
    return { status, headers: response.headers, body };
  } catch (error) {
    const failed = late.aborted ? "timeout" : "unreachable";
    return { failed, ...causeOf(error), headers: response?.headers };
  }
}

/** Why there is no answer, as a clause that follows the server's name. */
export function whyNoReply({ failed, reason = "no reason given", proxy, proxyStatus }: NoReply, timeoutMs: number) {
  const through = proxy === undefined ? "" : ` through the proxy of ${proxy}`;
  if (failed === "timeout") return `did not answer within ${timeoutMs / 1000} s${through}`;
  const refusal = proxyStatus === undefined ? undefined : `the proxy answered ${proxyStatus}`;
  const hint = proxyStatus === undefined ? undefined : proxyRefusals[proxyStatus];
  const why = [refusal, hint].filter((part) => part !== undefined).join(", so ");
  return `cannot be reached${through}: ${why || networkFailureOf(reason)}`;
}

/** Why a server cannot be reached, as a clause. @param code - of the system or of TLS */
export function networkFailureOf(code: string): string {
  return networkFailures[code] ?? code;
}

/**
 * What is wrong with a server's certificate, by the code of TLS, as the end of a clause.
 * @param hint - how to name an authority of one's own
 */
export function certificateFailures(hint: string): Readonly<Record<string, string>> {
  const unknown = `comes from an unknown authority (${hint})`;
  // A server that leaves out a part of its chain looks like one of an unknown authority.
  const cut = `comes without the intermediate certificates of its chain, or from an unknown authority (${hint})`;
  return {
    CERT_HAS_EXPIRED: "has expired, or this machine's clock is ahead",
    CERT_NOT_YET_VALID: "is not valid yet, or this machine's clock is behind",
    DEPTH_ZERO_SELF_SIGNED_CERT: unknown,
    SELF_SIGNED_CERT_IN_CHAIN: unknown,
    UNABLE_TO_GET_ISSUER_CERT: cut,
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: cut,
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: cut,
    ERR_TLS_CERT_ALTNAME_INVALID: "belongs to another host",
  };
}

const proxyRefusals: Readonly<Record<number, string>> = {
  403: "it does not allow this host",
  407: "it wants a user and a password, as in http://USER:PASSWORD@HOST:PORT",
};

const noTls = "it answers, but not with TLS: is the port right, or does it speak plain http";
const networkFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection broke before the answer was complete",
  EPROTO: noTls,
  ERR_SSL_WRONG_VERSION_NUMBER: noTls,
  ENOTFOUND: "there is no such host",
  EAI_AGAIN: "its name cannot be looked up now, as the DNS does not answer",
  ENOENT: "there is no such socket",
  ERR_PROXY_TUNNEL: "the proxy refused",
  UnsupportedProxyProtocol: "only proxies of http:// and https:// can be used, not of SOCKS",
  "bad port": "fetch refuses this port (bad port). Let the server use another",
  ...Object.fromEntries(
    Object.entries(certificateFailures("NODE_EXTRA_CA_CERTS may name a file with yours")).map(([code, words]) => [
      code,
      `its certificate ${words}`,
    ]),
  ),
};

/** Whether a URL may be asked: by https, or by http on this machine. */
export function mayAsk(url: string): boolean {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** Whether this can be an issuer of tokens, whose keys are published below this URL. */
export function isIssuer(text: string): boolean {
  return mayAsk(text) && !/[?#@]|\/\.well-known\//.test(text);
}

/** What {@link isIssuer} demands, for the messages of those who ask. */
export const issuerRule = "must be an https URL without a user, a query and /.well-known/, as in the token's iss.";

/** The URL of a server on this host, such as `http://127.0.0.1:4100`. */
export function originOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Whether a host is this machine. @param hostname - an IPv6 address of any form, also in brackets, as URL writes it */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127(?:\.\d+){1,3}|\[?(?:0{0,4}:){1,7}(?:0{0,3}1|ffff:127(?:\.\d+){3}|ffff:7f[\da-f]{2}:[\da-f]{1,4})\]?)$/i.test(
    hostname,
  );
}

/** A whole body. Undefined if it is too long: it is cancelled at the first chunk that exceeds the bound. */
export async function readAtMost({ body }: Request | Response, bytesMax: number): Promise<Blob | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return new Blob(chunks);
}

async function readJson(response: Response, bytesMax: number, parse: Parse = JSON.parse): Promise<JsonReply["body"]> {
  const body = await readAtMost(response, bytesMax);
  if (body === undefined) return { wrong: `longer than ${bytesMax / 1024} KiB` };
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    return { json: parse(decoder.decode(await body.arrayBuffer())) };
  } catch {
    return { wrong: "not complete JSON in UTF-8" };
  }
}

/** The code of a network failure, which the runtimes put in different places, and what a proxy had to do with it. */
function causeOf(error: unknown): Pick<NoReply, "reason" | "proxy" | "proxyStatus"> {
  const { code, cause, proxy, status } = (error ?? {}) as Partial<Record<string, unknown>> & {
    readonly cause?: { readonly code?: unknown; readonly message?: unknown };
  };
  const found = cause?.message === "bad port" ? "bad port" : (cause?.code ?? code);
  const reason = typeof found === "string" && /^(?:\w{1,60}|bad port)$/.test(found) ? found : undefined;
  return {
    reason,
    proxy: typeof proxy === "string" ? proxy : reason && proxyFailures.includes(reason) ? "the environment" : undefined,
    proxyStatus: reason === "ERR_PROXY_TUNNEL" && typeof status === "number" ? status : undefined,
  };
}

const proxyFailures = ["ERR_PROXY_TUNNEL", "UnsupportedProxyProtocol"];
