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
  /** How many bytes of a 200 are read. Of any other answer, at most 64 KiB are. */
  readonly bytesMax: number;
  readonly fetch: Fetch;
};

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
  /** The headers of an answer that broke off. */
  readonly headers: Headers | undefined;
};

/** Sends one request, without following redirects. Never rejects. */
export async function requestJson(url: string, request: JsonRequest): Promise<JsonReply | NoReply> {
  const { headers, post, timeoutMs, bytesMax, fetch } = request;
  const signal = AbortSignal.timeout(timeoutMs);
  let response: Response | undefined;
  try {
    response = await fetch(url, {
      headers,
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
      : await readJson(response, status === 200 ? bytesMax : Math.min(bytesMax, 64 * 1024));
    return { status, headers: response.headers, body };
  } catch (error) {
    const failed = signal.aborted ? "timeout" : "unreachable";
    return { failed, reason: reasonOf(error), headers: response?.headers };
  }
}

/** Whether a URL may be asked: by https, or by http on this machine. */
export function mayAsk(url: string): boolean {
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

/** Whether this can be an issuer of tokens, whose keys are published below this URL. */
export function isIssuer(text: string): boolean {
  return mayAsk(text) && !/[?#@]/.test(text);
}

/** What {@link isIssuer} demands, for the messages of those who ask. */
export const issuerRule = "must be an https URL without a user and a query, as in the token's iss.";

/** The URL of a server on this host, such as `http://127.0.0.1:4100`. */
export function originOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

/** Whether a host is this machine. @param hostname - as URL writes it: IPv4 in full, IPv6 in brackets */
export function isLoopback(hostname: string): boolean {
  return /^(?:localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(hostname);
}

/** A whole body. Undefined if it is too long: it is cancelled at the first chunk that exceeds the bound. */
export async function readAtMost({ body }: Response, bytesMax: number): Promise<Blob | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > bytesMax) return undefined;
    chunks.push(chunk);
  }
  return new Blob(chunks);
}

async function readJson(response: Response, bytesMax: number): Promise<JsonReply["body"]> {
  const body = await readAtMost(response, bytesMax);
  if (body === undefined) return { wrong: `longer than ${bytesMax / 1024} KiB` };
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  try {
    return { json: JSON.parse(decoder.decode(await body.arrayBuffer())) };
  } catch {
    return { wrong: "not complete JSON in UTF-8" };
  }
}

/** The code of a network failure, which the runtimes put in different places. */
function reasonOf(error: unknown): string | undefined {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown; message?: unknown } };
  if (cause?.message === "bad port") return "bad port";
  const reason = cause?.code ?? code;
  return typeof reason === "string" && /^\w{1,60}$/.test(reason) ? reason : undefined;
}
