/** Every error code, with its status and sentence. Faults with one code differ only in what {@link FaultDetail} has. */
export const faults = {
  invalid_request: [400, "A query parameter is missing, unknown or invalid."],
  unauthorized: [401, "A valid API key is required."],
  plan_required: [403, "The organization's plan does not include the API."],
  surface_required: [403, "This key may not be used for this endpoint."],
  resource_required: [403, "This key may not read this kind of resource."],
  environment_not_in_scope: [403, "This key may not read this environment."],
  project_not_found: [404, "No such project, or this key may not read it."],
  not_found: [404, "No such path."],
  method_not_allowed: [405, "Only GET is allowed."],
  too_many_items: [422, "The answer would hold more than 1000 items; narrow the request or use a narrower key."],
  env_unrepresentable: [422, "No harmless dotenv text can carry these variables; ask for format=json instead."],
  content_too_large: [422, "The files hold more than 8 MiB; ask for fewer at a time with path."],
  rate_limited: [429, "Too many requests; wait as long as Retry-After says."],
  internal_error: [500, "Internal error."],
  decryption_failed: [503, "Decryption failed for one or more items; nothing is returned."],
  unavailable: [503, "The service cannot answer now; nothing is returned."],
} as const satisfies Record<string, readonly [status: number, sentence: string]>;

export type FaultCode = keyof typeof faults;

/** What the client may see besides the code. */
export type FaultDetail = {
  /** The invalid query parameter and its problem, as in "is required". */
  readonly parameter?: { readonly name: string; readonly problem: string };
  /** Whole seconds after which one request will pass. */
  readonly retryAfterS?: number;
  /** The invalid argument of a tool and its problem. */
  readonly argument?: { readonly name: string; readonly problem: string };
  /** What is wrong with a request's body. */
  readonly body?: string;
  /** How many variable requests may be pending, and whose. */
  readonly pending?: { readonly max: number; readonly of: "key" | "organization" };
  /** The one method that the path takes; GET unless it is given. */
  readonly method?: "POST";
  /** Names of variables that the requested format cannot carry. */
  readonly names?: readonly string[];
};

/**
 * Ends a request. The message is for the operator's log: ids and reasons, never a value, a key or SQL parameters. The
 * client sees only what `serve/api/problem.ts` makes of the code and the detail.
 */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly detail: FaultDetail;

  constructor(code: FaultCode, message: string, detail: FaultDetail = {}, options?: ErrorOptions) {
    // A stack trace would cost as much as the rest of a refused request, and the message says enough.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.detail = detail;
  }
}
