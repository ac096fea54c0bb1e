import { ask, isApiKey, parseApiRoot, type Question, realClock, type Wire } from "../wire.ts";
import type {
  Accounts,
  Environment,
  FileSelection,
  Files,
  Organization,
  Project,
  Projects,
  Selection,
  VariableNames,
  Variables,
} from "./answers.ts";
import { badOption, KeyholeError, requireMs } from "./error.ts";
import { answered, valuesOf, watchVariables } from "./follow.ts";
import { questionsOf } from "./questions.ts";
import type { FollowOptions, VariablesWatch } from "./watch.ts";

/*
 * The package `keyhole/client`: reads a Keyhole server from Node 20+, Bun and Deno. It is bundled into one file, so
 * nothing that it imports may need a package or another runtime.
 */

export type * from "./answers.ts";
export type { ApiErrorCode, ClientErrorCode } from "./error.ts";
export type { FollowOptions, Values, VariablesWatch } from "./watch.ts";
export { KeyholeError };

/** What an answer has beside its members. Undefined if the server or a proxy sent none. */
export type Tagged = {
  /** What later reads may send as `ifNoneMatch`. */
  readonly etag: string | undefined;
  /** The audit entries of this read, `LANE:NUMBER` or `LANE:FIRST-LAST`. An answer without values has none. */
  readonly receipt: string | undefined;
};

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
  /** Keeps the values of variables, and follows their changes until it is closed. */
  readonly watch: (project: string, environment: Environment, options?: FollowOptions) => VariablesWatch;
};

/** What is sent as `Authorization: Bearer`: a text, or a function that fetches one for each request. */
export type Token = string | (() => string | Promise<string>);

export type ClientOptions = {
  /** The server's origin or its API root, such as `https://keyhole.example.com`. */
  readonly url: string;
  /** Used in place of the runtime's own. It must not follow redirects. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** How long one request may take, including its answer, and how long the token function before it. Default: 30,000. */
  readonly timeoutMs?: number | undefined;
  /**
   * How long a refused read is repeated: after `Retry-After`, or after a growing pause if the server is `unavailable`.
   * A read whose `Retry-After` is longer is not repeated. 0 means never. Default: 30,000.
   */
  readonly waitMs?: number | undefined;
  /** Allows plain http to another machine, where others on the network can read the key and the values. */
  readonly allowHttp?: boolean | undefined;
} & ({ readonly apiKey: string; readonly token?: undefined } | { readonly token: Token; readonly apiKey?: undefined });

/**
 * A client of one server. It keeps no answers and logs nothing.
 *
 * @throws KeyholeError `invalid_options`
 * @example
 * const keyhole = createClient({ url: "https://keyhole.example.com", apiKey });
 * const { DATABASE_URL } = await keyhole.values("web", "production");
 */
export function createClient(options: ClientOptions): KeyholeClient {
  const wire = wireOf(options);
  const questions = questionsOf(rootOf(options));
  const whole = async <T>(question: Question<T>) => answered(await ask(wire, question)).answer;
  const read = <Where, Options, Answer>(
    question: (project: string, environment: Where, options: Partial<Options>) => Question<Answer>,
  ) => {
    const conditional = async (project: string, environment: Where, options: Partial<Options & Conditional> = {}) => {
      const { ifNoneMatch } = options;
      if (ifNoneMatch !== undefined && !/^(W\/)?"[!#-~]*"$/.test(ifNoneMatch)) {
        throw new KeyholeError("invalid_request", "ifNoneMatch must be the etag of an earlier answer.");
      }
      const outcome = await ask(wire, { ...question(slugOf(project), environment, options), ifNoneMatch });
      if ("failure" in outcome && outcome.failure.isUnchanged) return undefined;
      const { answer, etag, receipt } = answered(outcome);
      return { ...answer, etag, receipt };
    };
    return conditional as Read<Where, Options, Answer>;
  };
  const variables = read<Environment, Selection, Variables>(questions.variables);
  return Object.freeze({
    organization: () => whole(questions.organization),
    projects: () => whole(questions.projects),
    project: async (slug: string) => whole(questions.project(slugOf(slug))),
    variables,
    variableNames: read<Environment | null, Selection, VariableNames>(questions.variableNames),
    values: async (project: string, environment: Environment, { keys, prefix }: Selection = {}) => {
      return valuesOf(await variables(project, environment, { keys, prefix }));
    },
    accounts: read<Environment | null, unknown, Accounts>(questions.accounts),
    files: read<Environment, FileSelection, Files>((project, environment, { paths }) => {
      // The API would take no path for all of them.
      if (paths?.length === 0) throw new KeyholeError("invalid_request", "paths is empty: leave it out for all files.");
      return questions.files(project, environment, paths);
    }),
    watch: (project: string, environment: Environment, options: FollowOptions = {}) => {
      const { keys, prefix } = options;
      const question = questions.variables(slugOf(project), environment, { keys, prefix });
      return watchVariables(options, (more) => ask(wire, { ...question, ...more }));
    },
  });
}

type Conditional = { readonly ifNoneMatch: string | undefined };

/** The wire with the key inside: nothing that prints the client shows it. */
function wireOf(options: ClientOptions): Wire {
  const { timeoutMs = 30_000, waitMs = 30_000 } = options;
  requireMs({ timeoutMs, waitMs });
  return {
    credential: credentialOf(options, timeoutMs),
    timeoutMs,
    waitMs,
    mayPass: ({ retryAfter, code }) => retryAfter !== undefined || code === "unavailable",
    // For Bun, whose environment can make it print requests with their key, and trust any certificate.
    fetch: options.fetch ?? ((url, init) => fetch(url, { ...init, ...strictInBun })),
    clock: realClock,
  };
}

const strictInBun = { verbose: false, tls: { rejectUnauthorized: true } };

function rootOf({ url, allowHttp }: ClientOptions): string {
  const parsed = parseApiRoot("url", url, () => allowHttp === true, "use https");
  if ("wrong" in parsed) throw badOption(parsed.wrong);
  return parsed.root;
}

function credentialOf({ apiKey, token }: ClientOptions, timeoutMs: number): () => Promise<string> {
  if ((apiKey === undefined) === (token === undefined)) throw badOption("One of apiKey and token is required.");
  if (apiKey !== undefined) {
    if (isApiKey(apiKey)) return async () => apiKey;
    throw badOption("apiKey is not an API key, which begins with kh_ and has 52 characters.");
  }
  return async () => {
    const text = typeof token === "function" ? await inTime(token, timeoutMs) : token;
    if (typeof text === "string" && /^[A-Za-z0-9._~+/=-]{1,8192}$/.test(text)) return text;
    throw badOption("token is not a bearer token, or returned none: it may have letters, digits and -._~+/= only.");
  };
}

/** What the token function returns. @throws KeyholeError `timeout`, or what the function throws */
async function inTime(token: () => string | Promise<string>, timeoutMs: number): Promise<string> {
  const over = new AbortController();
  const late = realClock.sleep(timeoutMs, over.signal).then(() => {
    throw new KeyholeError("timeout", `The token function gave no token within ${timeoutMs / 1000} s.`);
  });
  return Promise.race([(async () => token())(), late]).finally(() => over.abort());
}

function slugOf(text: string): string {
  if (/^[a-z0-9][a-z0-9-]{0,63}$/.test(text)) return text;
  throw new KeyholeError("invalid_request", "The project must be a slug, such as web: small letters, digits and -.");
}
