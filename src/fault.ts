/** The closed list of error codes a client can meet (CONTRACT, errors). */
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

/** What the client may be told beside the code: nothing else of a Fault ever leaves the process. */
export type FaultDetail = {
  /** The query parameter at fault and what is wrong with it, as in "is missing". */
  readonly parameter?: { readonly name: string; readonly problem: string };
  /** Whole seconds after which one request will pass. */
  readonly retryAfterS?: number;
  /** Variable names that no harmless dotenv text can carry. */
  readonly names?: readonly string[];
};

/**
 * How a request stops. The message is for the operator's log: ids and reasons, never a value, a key or SQL parameters.
 * The client sees only what `http/problem.ts` makes of the code and the detail.
 */
export class Fault extends Error {
  override readonly name = "Fault";
  readonly code: FaultCode;
  readonly detail: FaultDetail;

  constructor(code: FaultCode, message: string, detail: FaultDetail = {}, options?: ErrorOptions) {
    // The message says where and why. A trace would cost as much as all the rest of a refusal.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(message, options);
    Error.stackTraceLimit = stackTraceLimit;
    this.code = code;
    this.detail = detail;
  }
}
