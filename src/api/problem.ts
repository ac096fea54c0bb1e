import type { Fault, FaultCode } from "../core/fault.ts";

/** Status and sentence of every error. Faults with the same code differ only in the names of parameters or variables. */
export const problems = {
  invalid_request: [400, "A request takes no body here."],
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
} as const satisfies Record<FaultCode, readonly [status: number, sentence: string]>;

/** The response to a Fault, without the headers that every response has. */
export function problemOf({ code, detail }: Fault) {
  const [status, sentence] = problems[code];
  const { parameter, argument, body, pending, method = "GET", names, retryAfterS } = detail;
  const headers: Record<string, string> = {};
  let error: string = sentence;
  if (parameter) error = `The query parameter ${quotable(parameter.name)} ${parameter.problem}.`;
  if (argument) error = `The argument '${argument.name}' ${argument.problem}.`;
  if (body) error = `The body ${body}.`;
  if (pending)
    error = `${pending.max} requests of this ${pending.of} are pending already; no more are taken before some are decided or expire.`;
  if (code === "method_not_allowed") error = `Only ${method} is allowed.`;
  if (names) error = `${sentence} They are: ${names.join(", ")}.`;
  if (code === "unauthorized") headers["WWW-Authenticate"] = 'Bearer realm="keyhole"';
  if (code === "method_not_allowed") headers["Allow"] = method;
  if (retryAfterS !== undefined) headers["Retry-After"] = String(retryAfterS);
  return { status, body: JSON.stringify({ error, code }), headers };
}

/** Name and place of a defect, for the log. Its message may quote input and is left out. */
export function defectOf(error: unknown): { readonly defect: string; readonly at: string | undefined } {
  if (!(error instanceof Error)) return { defect: typeof error, at: undefined };
  return { defect: error.name, at: /^ +(at .*)$/m.exec(error.stack ?? "")?.[1] };
}

/** Quotes a parameter's name. An unusual one may be a key or markup, and is not quoted. */
function quotable(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(name) ? `'${name}'` : "with an unusual name";
}
