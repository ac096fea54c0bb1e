import { type Fault, faults } from "../../core/fault.ts";

/** The response to a Fault, without the headers that every response has. */
export function problemOf({ code, detail }: Fault) {
  const [status, sentence] = faults[code];
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
  const stack = (error.stack ?? "").replace(error.message, ""); // a line of a message may look like a place
  return { defect: error.name, at: /^ +(at .*)$/m.exec(stack)?.[1] };
}

/** Quotes a parameter's name. An unusual one may be a key or markup, and is not quoted. */
function quotable(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(name) ? `'${name}'` : "with an unusual name";
}
