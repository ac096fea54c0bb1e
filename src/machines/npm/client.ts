/*
 * The package `keyhole/client`: reads a Keyhole server from Node 20+, Bun and Deno. It is compiled alone, so it imports
 * nothing. A test compares its types with the schemas of the API's description.
 */

export type Environment = "development" | "staging" | "production";

/** The organization of a key. */
export type Organization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly plan: "free" | "pro";
};

/** A project in a list. Counts are those of the environments that the key reaches. */
export type ProjectSummary = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly variableCount: number;
  readonly accountCount: number;
};

/** The projects that the key reaches, in byte order of slug. */
export type Projects = { readonly projects: readonly ProjectSummary[] };

/** A project. Times are milliseconds since 1970. */
export type Project = ProjectSummary & {
  /** Those that the key reaches. */
  readonly environments: readonly Environment[];
  readonly fileCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** A variable without its value. */
export type VariableName = { readonly key: string; readonly updatedAt: number };
export type Variable = VariableName & { readonly value: string };

/** Variables in byte order of name. */
export type VariableNames = { readonly environment: Environment | null; readonly variables: readonly VariableName[] };
export type Variables = { readonly environment: Environment | null; readonly variables: readonly Variable[] };

export type Account = {
  readonly name: string;
  /** Those that have it and that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
  /** Fields such as `password`. */
  readonly values: Readonly<Record<string, string>>;
};

/** Shared accounts in byte order of name. */
export type Accounts = { readonly environment: Environment | null; readonly accounts: readonly Account[] };

export type SecretFile = {
  readonly name: string;
  /** Where it belongs: relative, with `/` between its parts. */
  readonly path: string;
  readonly mode: "0600" | "0400";
  /** Bytes of the content. */
  readonly size: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
  readonly contentType: string;
  /** Those that have it and that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
  /** In base64: `Buffer.from(content, "base64")` or `atob` decode it. */
  readonly content: string;
};

/** Secret files in byte order of path. */
export type Files = {
  readonly project: { readonly slug: string };
  readonly environment: Environment;
  readonly files: readonly SecretFile[];
};

/** Which variables: all if neither is given, those that match both if both are. */
export type Selection = { readonly keys?: readonly string[] | undefined; readonly prefix?: string | undefined };
/** Which files: all if no paths are given. */
export type FileSelection = { readonly paths?: readonly string[] | undefined };

/** What later reads may send as `ifNoneMatch`. Undefined if the server or a proxy sent none. */
export type Tagged = { readonly etag: string | undefined };

/**
 * A read that may depend on what the caller has: with `ifNoneMatch`, the `etag` of an earlier answer to the same
 * question, it returns undefined if nothing changed.
 */
export type Read<Where, Options, Answer> = {
  (
    project: string,
    environment: Where,
    options?: Options & { readonly ifNoneMatch?: undefined },
  ): Promise<Answer & Tagged>;
  (
    project: string,
    environment: Where,
    options: Options & { readonly ifNoneMatch: string | undefined },
  ): Promise<(Answer & Tagged) | undefined>;
};

/** Every method returns a whole answer of the API, or throws a {@link KeyholeError}. */
export type KeyholeClient = {
  readonly organization: () => Promise<Organization>;
  readonly projects: () => Promise<Projects>;
  readonly project: (slug: string) => Promise<Project>;
  readonly variables: Read<Environment, Selection, Variables>;
  /** Decrypts nothing and is not audited. Null asks for the names of every environment that the key reaches. */
  readonly variableNames: Read<Environment | null, Selection, VariableNames>;
  /** The values of variables by name. A name that does not exist is absent. */
  readonly values: (project: string, environment: Environment, options?: Selection) => Promise<Record<string, string>>;
  /** Null asks for the accounts of every environment that the key reaches. */
  readonly accounts: Read<Environment | null, unknown, Accounts>;
  readonly files: Read<Environment, FileSelection, Files>;
};

/** What is sent as `Authorization: Bearer`: a text, or a function that fetches one for each request. */
export type Token = string | (() => string | Promise<string>);

export type ClientOptions = {
  /** The server's origin or its API root, such as `https://keyhole.example.com`. */
  readonly url: string;
  /** Used in place of the runtime's own. It must not follow redirects. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** How long one request may take, including its answer. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * For how long a refused read may be repeated: after `Retry-After`, or after a growing pause if the server is
   * `unavailable`. A pause that would end later is not begun. 0 means never. Default: 30,000.
   */
  readonly waitMs?: number | undefined;
  /** Allows plain http to another machine, where others on the network can read the key and the values. */
  readonly allowHttp?: boolean | undefined;
} & ({ readonly apiKey: string; readonly token?: undefined } | { readonly token: Token; readonly apiKey?: undefined });

/** The codes of the API. */
export type ApiErrorCode =
  | "invalid_request"
  | "unauthorized"
  | "plan_required"
  | "surface_required"
  | "resource_required"
  | "environment_not_in_scope"
  | "project_not_found"
  | "not_found"
  | "method_not_allowed"
  | "too_many_items"
  | "env_unrepresentable"
  | "content_too_large"
  | "rate_limited"
  | "internal_error"
  | "decryption_failed"
  | "unavailable";

/** The codes of the client. `http_502` and the like: something that is not Keyhole answered with that status. */
export type ClientErrorCode =
  | "invalid_options"
  | "invalid_answer"
  | "redirected"
  | "timeout"
  | "unreachable"
  | `http_${number}`;

/** Why there is no answer. It contains neither the key nor a value, so it may be logged. */
export class KeyholeError extends Error {
  override readonly name = "KeyholeError";
  /** A later server may send a code that this version does not know. */
  readonly code: ApiErrorCode | ClientErrorCode | (string & Record<never, never>);
  /** Names the request in the server's log and audit. */
  readonly requestId: string | undefined;
  /** Whole seconds after which a request will pass. */
  readonly retryAfter: number | undefined;

  constructor(
    code: KeyholeError["code"],
    message: string,
    more: { readonly requestId?: string | undefined; readonly retryAfter?: number | undefined } = {},
  ) {
    super(message);
    this.code = code;
    this.requestId = more.requestId;
    this.retryAfter = more.retryAfter;
  }
}

/**
 * A client of one server. It keeps no answers and logs nothing.
 * @throws KeyholeError `invalid_options` if the key could not be sent, or would be sent in the clear
 */
export function createClient(options: ClientOptions): KeyholeClient {
  const get = transport(options);
  const whole = async <T>(path: string, is: Is<T>) => accepted(await get(path, {}), is).answer;
  const read = <Where, Options, Answer>(
    question: (project: string, environment: Where, options: Partial<Options>) => Question<Answer>,
  ) => {
    const ask = async (project: string, environment: Where, options: Partial<Options & Conditional> = {}) => {
      const { path, query, is, fits } = question(slugOf(project), environment, options);
      const response = await get(path, query, options.ifNoneMatch);
      if (response === "not modified") return undefined;
      const { answer, etag } = accepted(response, is, fits);
      return { ...answer, etag };
    };
    return ask as Read<Where, Options, Answer>;
  };
  const variables = read<Environment, Selection, Variables>((project, environment, selection) => ({
    path: `/projects/${project}/variables`,
    query: { environment, keys: selection.keys?.join(","), prefix: selection.prefix },
    is: isVariables,
    fits: fitsSelection(environment, selection),
  }));
  return Object.freeze({
    organization: () => whole("/organization", isOrganization),
    projects: () => whole("/projects", isProjects),
    project: async (slug: string) => {
      const project = await whole(`/projects/${slugOf(slug)}`, isProject);
      if (project.slug !== slug) throw untrustworthy("it is about another project than the one asked for");
      return project;
    },
    variables,
    variableNames: read<Environment | null, Selection, VariableNames>((project, environment, { keys, prefix }) => ({
      path: `/projects/${project}/variables`,
      query: { environment, keys: keys?.join(","), prefix, metadata_only: "true" },
      is: isVariableNames,
      fits: fitsSelection(environment, { keys, prefix }),
    })),
    values: async (project: string, environment: Environment, { keys, prefix }: Selection = {}) => {
      const answer = await variables(project, environment, { keys, prefix });
      return Object.fromEntries(answer.variables.map(({ key, value }) => [key, value]));
    },
    accounts: read<Environment | null, unknown, Accounts>((project, environment) => ({
      path: `/projects/${project}/accounts`,
      query: { environment },
      is: isAccounts,
      fits: (answer) => answer.environment === environment && areDistinct(answer.accounts.map(({ name }) => name)),
    })),
    files: read<Environment, FileSelection, Files>((project, environment, { paths }) => {
      // The API would take no path for all of them.
      if (paths?.length === 0) throw new KeyholeError("invalid_request", "paths is empty: leave it out for all files.");
      return {
        path: "/files",
        query: { project, environment, path: paths },
        is: isFiles,
        fits: (answer) =>
          answer.environment === environment &&
          answer.project.slug === project &&
          areDistinct(answer.files.map(({ path }) => path)) &&
          answer.files.every(({ path }) => paths?.includes(path) ?? true),
      };
    }),
  });
}

/** 8 MiB of files in base64, their records, and some room. */
const answerBytesMax = 16 * 1024 * 1024;

type Conditional = { readonly ifNoneMatch: string | undefined };
/** In sending order. Undefined and null are left out; a list is sent as one parameter for each item. */
type Query = Readonly<Record<string, string | readonly string[] | null | undefined>>;
type Question<T> = {
  readonly path: string;
  readonly query: Query;
  readonly is: Is<T>;
  /** Whether the answer is about what was asked. */
  readonly fits: (answer: T) => boolean;
};
type Answer = { readonly body: unknown; readonly etag: string | undefined; readonly requestId: string | undefined };

/** The function that asks the server, with the key inside: nothing that prints the client shows it. */
function transport(options: ClientOptions) {
  const { timeoutMs = 30_000, waitMs = 30_000 } = options;
  for (const [name, ms] of Object.entries({ timeoutMs, waitMs })) {
    // Timers take no more.
    if (!(ms >= 0 && ms < 2 ** 31)) throw badOption(`${name} must be a number of milliseconds below 2147483648.`);
  }
  const root = rootOf(options);
  const credential = credentialOf(options);

  async function getOnce(url: string, ifNoneMatch: string | undefined): Promise<Answer | "not modified"> {
    const sent = await credential();
    const headers = {
      Authorization: `Bearer ${sent}`,
      Accept: "application/json",
      "User-Agent": "keyhole-client",
      ...(ifNoneMatch !== undefined && { "If-None-Match": ifNoneMatch }),
    };
    const signal = AbortSignal.timeout(timeoutMs);
    let requestId: string | undefined;
    try {
      const init: RequestInit = {
        headers,
        redirect: "manual",
        signal,
        // For Bun: HTTP_PROXY would get the key in the clear, even for a request to this machine.
        ...(root.startsWith("http:") && { proxy: false }),
      };
      const response = await (options.fetch ?? fetch)(url, init);
      const header = response.headers.get("x-request-id") ?? "";
      requestId = /^[A-Za-z0-9._-]{1,128}$/.exec(masked(header, sent))?.[0];
      if (response.status === 304 && ifNoneMatch !== undefined) return "not modified";
      if (response.status !== 200) throw await refusalOf(response, requestId);
      return { body: await jsonOf(response, requestId), etag: response.headers.get("etag") ?? undefined, requestId };
    } catch (error) {
      if (error instanceof KeyholeError) throw withoutKey(error, sent);
      // What fetch throws may quote the request, so only its code is told.
      const { origin } = new URL(root);
      if (signal.aborted) {
        throw new KeyholeError("timeout", `${origin} did not answer within ${timeoutMs / 1000} s.`, { requestId });
      }
      throw new KeyholeError("unreachable", `The request to ${origin} failed${reasonOf(error)}.`, { requestId });
    }
  }

  function get(path: string, query: Query): Promise<Answer>;
  function get(path: string, query: Query, ifNoneMatch: string | undefined): Promise<Answer | "not modified">;
  async function get(path: string, query: Query, ifNoneMatch?: string): Promise<Answer | "not modified"> {
    if (ifNoneMatch !== undefined && !/^(W\/)?"[!#-~]*"$/.test(ifNoneMatch)) {
      throw new KeyholeError("invalid_request", "ifNoneMatch must be the etag of an earlier answer.");
    }
    const url = `${root}${path}${queryOf(query)}`;
    const lastMs = performance.now() + waitMs;
    for (let tries = 0; ; tries++) {
      try {
        return await getOnce(url, ifNoneMatch);
      } catch (error) {
        if (!(error instanceof KeyholeError)) throw error;
        const { code, retryAfter } = error;
        if (retryAfter === undefined && code !== "unavailable") throw error;
        // Up to a tenth more, so that clients that were refused together do not return together.
        const leastMs = retryAfter === undefined ? Math.min(500 * 2 ** tries, 15_000) : retryAfter * 1000;
        const pauseMs = leastMs * (1 + Math.random() / 10);
        if (performance.now() + pauseMs > lastMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    }
  }
  return get;
}

/** The API root, such as `https://keyhole.example.com/api/v1`. */
function rootOf({ url: text, allowHttp }: ClientOptions): string {
  const example = "such as https://keyhole.example.com";
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw badOption(`url must be a URL ${example}.`);
  }
  if (!/^https?:$/.test(url.protocol)) throw badOption(`url must begin with https://, ${example}.`);
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    throw badOption(`url must be without a user, a query and a fragment, ${example}.`);
  }
  const isLoopback = /^(localhost|\[::1\]|127\.\d+\.\d+\.\d+)$/.test(url.hostname);
  if (url.protocol === "http:" && !isLoopback && allowHttp !== true) {
    throw badOption("url is plain http to another machine, where others on the network can read the key: use https.");
  }
  if (url.pathname === "/") return `${url.origin}/api/v1`;
  if (/\/api\/v1\/?$/.test(url.pathname)) return `${url.origin}${url.pathname.replace(/\/$/, "")}`;
  throw badOption("url must be the server's origin or its API root, which ends in /api/v1.");
}

/** What to send for each request. Any other text may be another secret that was put here by mistake: it is never sent. */
function credentialOf({ apiKey, token }: ClientOptions): () => Promise<string> {
  if ((apiKey === undefined) === (token === undefined)) throw badOption("One of apiKey and token is required.");
  if (apiKey !== undefined) {
    if (/^kh_[0-9A-Za-z]{49}$/.test(apiKey)) return async () => apiKey;
    throw badOption("apiKey is no API key: one begins with kh_ and has 52 characters.");
  }
  return async () => {
    const text = typeof token === "function" ? await token() : token;
    if (typeof text === "string" && /^[A-Za-z0-9._~+/=-]{1,8192}$/.test(text)) return text;
    throw badOption("token is, or returned, no bearer token: letters, digits and -._~+/= alone.");
  };
}

function slugOf(text: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(text)) return text;
  throw new KeyholeError("invalid_request", "The project must be a slug, such as web: small letters, digits and -.");
}

function queryOf(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value ?? []].flat()).map((one) => `${name}=${encodeURIComponent(one)}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

function badOption(sentence: string): KeyholeError {
  return new KeyholeError("invalid_options", sentence);
}

/** @param what - a clause that says what is wrong */
function untrustworthy(what: string, requestId?: string): KeyholeError {
  return new KeyholeError("invalid_answer", `The server's answer cannot be trusted: ${what}.`, { requestId });
}

/** The same error without the key, which a proxy or another server may have quoted. */
function withoutKey({ code, message, requestId, retryAfter }: KeyholeError, sent: string): KeyholeError {
  const safe = masked(message, sent).slice(0, 6000);
  return new KeyholeError(masked(code, sent), safe, { requestId, retryAfter });
}

/** A key that was cut short still tells nearly all of it. */
function masked(text: string, sent: string): string {
  return text.replaceAll(sent, "[the key]").replace(/kh_[0-9A-Za-z]{8,}/g, "[a key]");
}

/** A clause with the code of a network failure, which the runtimes put in different places. */
function reasonOf(error: unknown): string {
  const { code, cause } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown; message?: unknown } };
  if (cause?.message === "bad port") return ": fetch refuses this port (bad port). Let the server use another";
  const reason = cause?.code ?? code;
  return typeof reason === "string" && /^\w{1,60}$/.test(reason) ? ` (${reason})` : "";
}

/** Reading stops at the first chunk that exceeds the bound. @throws KeyholeError if it is not JSON */
async function jsonOf(response: Response, requestId: string | undefined): Promise<unknown> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for (let read = await reader?.read(); read?.value !== undefined; read = await reader?.read()) {
    bytes += read.value.length;
    if (bytes > answerBytesMax) {
      await reader?.cancel();
      throw untrustworthy(`it is longer than ${answerBytesMax / 1024 / 1024} MiB`, requestId);
    }
    chunks.push(read.value);
  }
  if (!/^application\/json(?:;|$)/i.test(response.headers.get("content-type") ?? "")) {
    throw untrustworthy("it is not JSON, so something other than Keyhole may have answered", requestId);
  }
  const whole = await new Blob(chunks).arrayBuffer();
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(whole));
  } catch {
    throw untrustworthy("it is not complete JSON in UTF-8", requestId);
  }
}

/** The error for an answer other than 200. */
async function refusalOf(response: Response, requestId: string | undefined): Promise<KeyholeError> {
  const { status } = response;
  if (response.type === "opaqueredirect" || (status >= 300 && status < 400)) {
    await response.body?.cancel();
    const words = "The server answered with a redirect. The key is not sent elsewhere: check the url.";
    return new KeyholeError("redirected", words, { requestId });
  }
  // Keyhole never sends a date, so a date is ignored.
  const header = /^\d{1,6}$/.exec(response.headers.get("retry-after") ?? "")?.[0];
  const more = { requestId, retryAfter: header === undefined ? undefined : Math.max(Number(header), 1) };
  const body = await jsonOf(response, requestId).catch((error: unknown) => {
    if (error instanceof KeyholeError) return undefined;
    throw error;
  });
  if (isProblem(body) && /^[a-z][a-z_]{0,63}$/.test(body.code)) {
    return new KeyholeError(body.code, `The server answered ${body.code}: ${body.error}`, more);
  }
  const words = `The server answered ${status}, but not in Keyhole's format: a proxy may have answered.`;
  return new KeyholeError(`http_${status}`, words, more);
}

/** An answer that is as described and about what was asked. @throws KeyholeError */
function accepted<T>({ body, etag, requestId }: Answer, is: Is<T>, fits: (answer: T) => boolean = () => true) {
  if (!is(body)) throw untrustworthy("it does not have the members that the API describes", requestId);
  if (!fits(body)) throw untrustworthy("it is not about what was asked for", requestId);
  return { answer: body, etag };
}

function fitsSelection(environment: Environment | null, { keys, prefix = "" }: Selection) {
  return (answer: VariableNames) => {
    const names = answer.variables.map(({ key }) => key);
    const wanted = (name: string) => (keys?.includes(name) ?? true) && name.startsWith(prefix);
    return answer.environment === environment && areDistinct(names) && names.every(wanted);
  };
}

function areDistinct(names: readonly string[]): boolean {
  return new Set(names).size === names.length;
}

/** Whether a value of JSON has this type. Members that it does not know are allowed: a later API may add some. */
type Is<T> = (value: unknown) => value is T;

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isNull = (value: unknown): value is null => value === null;
const isTexts = (value: unknown): value is Record<string, string> =>
  isObject(value) && Object.values(value).every(isText);
const isEnvironment = isOneOf("development", "staging", "production");

const isProblem = isRecord<{ readonly error: string; readonly code: string }>({ error: isText, code: isText });
const isOrganization = isRecord<Organization>({
  id: isText,
  name: isText,
  slug: isText,
  plan: isOneOf("free", "pro"),
});
const summary = { id: isText, name: isText, slug: isText, variableCount: isCount, accountCount: isCount };
const isProjects = isRecord<Projects>({ projects: isListOf(isRecord<ProjectSummary>(summary)) });
const isProject = isRecord<Project>({
  ...summary,
  environments: isListOf(isEnvironment),
  fileCount: isCount,
  createdAt: isCount,
  updatedAt: isCount,
});
const asked = (value: unknown): value is Environment | null => isNull(value) || isEnvironment(value);
const isVariableNames = isRecord<VariableNames>({
  environment: asked,
  variables: isListOf(isRecord<VariableName>({ key: isText, updatedAt: isCount })),
});
const isVariables = isRecord<Variables>({
  environment: asked,
  variables: isListOf(isRecord<Variable>({ key: isText, value: isText, updatedAt: isCount })),
});
const isAccounts = isRecord<Accounts>({
  environment: asked,
  accounts: isListOf(
    isRecord<Account>({ name: isText, environments: isListOf(isEnvironment), updatedAt: isCount, values: isTexts }),
  ),
});
const isFiles = isRecord<Files>({
  project: isRecord({ slug: isText }),
  environment: isEnvironment,
  files: isListOf(
    isRecord<SecretFile>({
      name: isText,
      path: isText,
      mode: isOneOf("0600", "0400"),
      size: isCount,
      sha256: isText,
      contentType: isText,
      environments: isListOf(isEnvironment),
      updatedAt: isCount,
      content: isText,
    }),
  ),
});

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOneOf<T extends string>(...words: readonly T[]): Is<T> {
  return (value): value is T => (words as readonly unknown[]).includes(value);
}

function isListOf<T>(is: Is<T>): Is<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every(is);
}

/** Has these members, none of them inherited. */
function isRecord<T>(members: { readonly [Name in keyof T]-?: Is<T[Name]> }): Is<T> {
  const checks = Object.entries<Is<unknown>>(members);
  return (value): value is T =>
    isObject(value) &&
    checks.every(([name, is]) => Object.hasOwn(value, name) && is((value as Readonly<Record<string, unknown>>)[name]));
}
