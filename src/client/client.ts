import type { NamedValue } from "../core/formats/dotenv.ts";
import { guardedFetch } from "../core/guarded-fetch.ts";
import { exits, Problem } from "../core/problem.ts";
import {
  type Asked,
  contentOf,
  type FetchedFile,
  type FileRecord,
  whyNotContents,
  whyNotRecords,
  whyNotVariables,
} from "./answers.ts";
import { type McpAnswer, mcpQuestion } from "./mcp.ts";
import type { Selection, Variables } from "./npm/answers.ts";
import { questionsOf } from "./npm/questions.ts";
import { ask, type Clock, type Failure, isApiKey, type Question, type Reply, realClock, type Wire } from "./wire.ts";

/** Where the API is, such as `https://keyhole.example.com/api/v1`, and how patient its client is. */
export type Api = Pick<Wire, "credential" | "timeoutMs" | "waitMs"> & {
  readonly root: string;
  /** The Unix socket that leads there, in place of the network. */
  readonly socket?: string | undefined;
  /** Tells people what the client is waiting for. */
  readonly say: (line: string) => void;
  /** Keeps all receipts so far, after each answer with values. If it is given, an answer without one is a Problem. */
  readonly keep?: ((receipts: readonly KeptReceipt[]) => Promise<void>) | undefined;
};

/** The audit entries of one answer, and the request that it answers. */
export type KeptReceipt = Asked & { readonly entries: string; readonly requestId: string | undefined };

/** The longest query that is sent: proxies in front of Keyhole commonly take a request line of 8 KiB. */
export const queryBytesMax = 7000;

/**
 * The API's client for commands. An answer is whole, well-formed and about what was asked, or it is a Problem. Only a
 * request that may succeed later (429, `unavailable`, connection refused, no token yet) is repeated.
 *
 * It remembers the variables and the records of files that it got. If they have not changed, the same question costs
 * the server little and gives the same object.
 */
export class Client {
  readonly #root: string;
  readonly #wire: Wire;
  readonly #questions: ReturnType<typeof questionsOf>;
  readonly #remembered = new Map<string, { readonly etag: string; readonly value: unknown }>();
  readonly #receipts: KeptReceipt[] = [];
  readonly #keep: Api["keep"];
  #presented = "";
  #waited = false;
  #readsPerJob: number | undefined;

  constructor(api: Api, clock: Clock = realClock) {
    const { root, socket, credential, timeoutMs, waitMs, say, keep } = api;
    const present = async () => {
      const given = await credential();
      if (typeof given === "string") this.#presented = given;
      return given;
    };
    const onPause = (failure: Failure, pauseMs: number) => {
      const request = failure.requestId === undefined ? "" : ` (request ${failure.requestId})`;
      say(`${messageOf(failure)}${request} Trying again in ${seconds(pauseMs)}.`);
    };
    this.#root = root;
    this.#keep = keep;
    const way =
      socket === undefined
        ? { fetch: guardedFetch }
        : { fetch: (url: string, init: RequestInit) => guardedFetch(url, { ...init, unix: socket }), server: socket };
    this.#wire = { credential: present, timeoutMs, waitMs, mayPass, onPause, ...way, clock };
    this.#questions = questionsOf(root);
  }

  /** The API key or token that was last sent, for keeping it from child processes and logs. */
  get key(): string {
    return this.#presented;
  }

  /** How many answers with values the trust gives this job; undefined if it gives as many as it is asked for. */
  get readsPerJob(): number | undefined {
    return this.#readsPerJob;
  }

  /** The audit entries of each answer with values so far. */
  get receipts(): readonly KeptReceipt[] {
    return this.#receipts;
  }

  /** Whether the server waited for a change, or would have, when it was last asked to. */
  get waited(): boolean {
    return this.#waited;
  }

  /** The variables of one environment. */
  variables(asked: Asked, selection: Selection = {}, waiting?: ChangeWait): Promise<readonly NamedValue[]> {
    const { project, environment } = asked;
    const question = stricter(this.#questions.variables(project, environment, selection), whyNotVariables);
    const use = ({ variables }: Variables) => variables.map(({ key: name, value }) => ({ name, value }));
    return this.#askAgain(question, use, { of: { project, environment }, waiting });
  }

  /** The records of all files of one environment, without content. */
  listFiles({ project, environment }: Asked, waiting?: ChangeWait): Promise<readonly FileRecord[]> {
    const question = stricter(this.#questions.fileMetadata(project, environment), whyNotRecords);
    return this.#askAgain(question, ({ files }) => files, { waiting });
  }

  /** Files with content, each exactly as listed. With `all` of the environment no paths are sent. */
  async fetchFiles(
    { project, environment }: Asked,
    records: readonly FileRecord[],
    all: boolean,
  ): Promise<FetchedFile[]> {
    const paths = all ? undefined : records.map(({ path }) => path);
    const question = this.#questions.files(project, environment, paths);
    const whole = stricter(question, (answer) => whyNotContents(answer, records));
    const found = this.#answered(await ask(this.#wire, whole));
    await this.#note({ project, environment }, found);
    const { files } = found.answer;
    return files.map((file) => ({ ...file, content: contentOf(file) }));
  }

  /** Calls a method of the Model Context Protocol at the server's `/mcp`. */
  async callMcp(method: string, params: Readonly<Record<string, unknown>>): Promise<McpAnswer> {
    return this.#answered(await ask(this.#wire, mcpQuestion(this.#root, method, params))).answer;
  }

  /** @param of - what the answer has values of; undefined if it has none */
  async #askAgain<T, Value>(
    question: Question<T>,
    use: (answer: T) => Value,
    { of, waiting }: { readonly of?: Asked; readonly waiting?: ChangeWait | undefined },
  ): Promise<Value> {
    const { url } = question;
    const before = this.#remembered.get(url);
    const outcome = await ask(this.#wire, { ...question, ...(before && waiting), ifNoneMatch: before?.etag });
    if (before && waiting?.signal.aborted && "failure" in outcome) return before.value as Value;
    if (waiting) this.#waited = outcome.waited === true;
    if ("failure" in outcome && outcome.failure.isUnchanged) return before?.value as Value;
    const found = this.#answered(outcome);
    const { answer, etag = "" } = found;
    if (of !== undefined) await this.#note(of, found);
    const value = use(answer);
    if (/^(?:W\/)?"[0-9A-Za-z_-]{43}"$/.test(etag)) this.#remembered.set(url, { etag, value });
    return value;
  }

  /** Notes the receipt of an answer with values, before anybody uses them. @throws Problem if one must be kept */
  async #note(of: Asked, { receipt, requestId, readsPerJob }: Omit<Answered, "answer" | "etag">): Promise<void> {
    this.#readsPerJob = readsPerJob;
    if (receipt !== undefined) this.#receipts.push({ entries: receipt, requestId, ...of });
    else if (this.#keep !== undefined) throw noReceipt(requestId);
    await this.#keep?.(this.#receipts);
  }

  /** @throws Problem if there is no answer */
  #answered<T>(outcome: Reply<T>) {
    if (!("failure" in outcome)) return outcome;
    const { failure } = outcome;
    const { code, requestId = null, retryAfter } = failure;
    const isToken = failure.status === 401 && !isApiKey(this.#presented);
    const message = isToken ? tokenRefused(requestId) : messageOf(failure);
    const problem = new Problem(exitCodeOf(failure), code, message, { requestId });
    if (!mayPass(failure)) throw problem;
    const words = `${problem.message} ${waitHint(failure, this.#wire.waitMs)}`;
    // A watch waits as long.
    throw Object.assign(new Problem(problem.exitCode, code, words, { requestId, cause: problem }), { retryAfter });
  }
}

/** How many seconds an answer may wait for a change. If `signal` aborts, nothing has changed. */
export type ChangeWait = { readonly waitS: number | undefined; readonly signal: AbortSignal };

type Answered = Exclude<Reply<unknown>, { readonly failure: Failure }>;

function noReceipt(requestId: string | undefined): Problem {
  const words = "The server named no audit entry for --receipt: it is an older one, or a proxy drops Keyhole-Audit.";
  return new Problem(exits.failed, "no_receipt", words, { requestId: requestId ?? null });
}

/** The question, whose answer must also pass the check of a command. */
function stricter<T>(question: Question<T>, whyNot: (answer: T) => string | undefined): Question<T> {
  return { ...question, whyNot: (answer) => whyNot(answer) ?? question.whyNot?.(answer) };
}

function mayPass({ status, code, reason, isTokenAwaited }: Failure): boolean {
  const isBusy = (status === 429 && code !== "http_429") || (status === 503 && code === "unavailable");
  return isBusy || reason === "ECONNREFUSED" || isTokenAwaited === true;
}

/** 6 is what the server could not do, decryption included; 1 is a wrong request. */
function exitCodeOf({ status, code }: Failure): number {
  if (status === undefined) return code === "invalid_answer" ? exits.failed : exits.unavailable;
  if (status === 401 || status === 403) return exits.unauthorized;
  if (status === 404) return exits.notFound;
  if (status === 422 || status === 429) return exits.refused;
  return status >= 500 ? exits.unavailable : exits.failed;
}

function messageOf({ status, code, message }: Failure): string {
  // The server's own words are about a header, which nobody sees here.
  if (status === 429 && code !== "http_429") return `The server answered ${code}: too many requests for now.`;
  return Object.hasOwn(hints, code) ? `${message} ${hints[code]}` : message;
}

/** The server's own words are about a key. */
function tokenRefused(requestId: string | null): string {
  const how = `keyhole explain ${requestId ?? "REQUEST_ID"} LOG`;
  return `The server refused the token of KEYHOLE_OIDC. An operator sees the reason in the server's log: ${how}`;
}

const hints: Readonly<Record<string, string>> = {
  unauthorized: "This one may have expired, been revoked, or belong to another server.",
  surface_required:
    "Commands and the CI action need a key with the surface rest_api, the default; `keyhole mcp` needs mcp_server, and ci_action is for /secrets alone.",
  environment_not_in_scope:
    "`keyhole key show ID` says which environments a key reaches, and `keyhole trust show ID` a trust.",
  resource_required: "Variables need a key with the resource variables, files one with the resource files.",
};

function waitHint({ retryAfter }: Failure, waitMs: number): string {
  if (waitMs === 0) {
    return `To try again until it answers, add --wait ${Math.max(60, Math.ceil((retryAfter ?? 0) * 1.1))}s.`;
  }
  if (retryAfter === undefined) return "That was the last try that --wait allows.";
  return `The next try would be in ${seconds(retryAfter * 1000)}, which --wait does not allow.`;
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
