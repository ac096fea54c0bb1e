/** Every error code that a client can receive. */
export type FaultCode =
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
 * client sees only what `api/problem.ts` makes of the code and the detail.
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
