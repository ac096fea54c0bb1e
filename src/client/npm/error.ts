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
  | "not_ready"
  | "too_old"
  | "closed"
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

export function badOption(sentence: string): KeyholeError {
  return new KeyholeError("invalid_options", sentence);
}

/** @throws KeyholeError `invalid_options` for what no timer takes */
export function requireMs(options: Readonly<Record<string, number>>, leastMs = 0): void {
  for (const [name, ms] of Object.entries(options)) {
    if (ms >= leastMs && ms < 2 ** 31) continue;
    const least = leastMs > 0 ? `at least ${leastMs} and ` : "";
    throw badOption(`${name} must be a number of milliseconds ${least}below 2147483648.`);
  }
}
