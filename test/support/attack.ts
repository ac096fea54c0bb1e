import fc from "fast-check";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import type { Client, World } from "./world.ts";

/*
 * What the attacking suites share: a clock that fills every bucket, random numbers from a seed, and what CONTRACT
 * promises of any answer, written a second time from its text alone.
 */

/** A clock that advances by an hour each time it is read, so that no bucket is ever empty. */
export function impatient(): () => number {
  let nowUs = 0;
  return () => {
    nowUs += 3_600_000_000;
    return nowUs;
  };
}

/** An app on the world's installation that never answers 429. */
export function unlimited(world: World, change: (keyhole: ApiParts) => Partial<ApiParts> = () => ({})): Client {
  return world.client((keyhole) => {
    const own = { ...keyhole, gate: { ...keyhole.gate, nowUs: impatient() } };
    return { ...own, ...change(own) };
  });
}

/** Random choices from a seed: the same seed, the same choices. */
export type Dice = {
  /** A number from 0 to 1, exclusive. */
  readonly fraction: () => number;
  /** A whole number from 0 to `below - 1`. */
  readonly below: (below: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(list: readonly T[]) => T;
  /** Each member with this probability, in the order of the list. */
  readonly some: <T>(list: readonly T[], probability?: number) => T[];
};

export function diceOf(seed: number): Dice {
  const anyStream = fc.infiniteStream(fc.nat(2 ** 31 - 1), { noHistory: true });
  const [stream] = fc.sample(anyStream, { seed, numRuns: 1, unbiased: true }) as [fc.Stream<number>];
  const fraction = () => (stream.next().value as number) / 2 ** 31;
  const below = (bound: number) => Math.floor(fraction() * bound);
  return {
    fraction,
    below,
    chance: (probability) => fraction() < probability,
    pick: <T>(list: readonly T[]) => list[below(list.length)] as T,
    some: (list, probability = 0.5) => list.filter(() => fraction() < probability),
  };
}

/** CONTRACT §3: the status of each code. */
const statusOf: Readonly<Record<string, number>> = {
  ...{ invalid_request: 400, unauthorized: 401 },
  ...{ plan_required: 403, surface_required: 403, resource_required: 403, environment_not_in_scope: 403 },
  ...{ project_not_found: 404, not_found: 404, method_not_allowed: 405 },
  ...{ too_many_items: 422, env_unrepresentable: 422, content_too_large: 422, rate_limited: 429 },
  ...{ internal_error: 500, decryption_failed: 503, unavailable: 503 },
};

/** The parts of an answer that the contract fixes for every answer. */
export type Judged = { readonly status: number; readonly headers: Headers; readonly text: string };

const bodies = new Map<string, string>();
const parameterSentence = new RegExp(
  "^The query parameter ('[A-Za-z_][A-Za-z0-9_.-]{0,31}'|with an unusual name) " +
    "(is required|is not known here|is not percent-encoded UTF-8|is empty|may be given only once|has an empty name|" +
    "must be one of [a-z0-9, ]+|may be given at most 1000 times|may hold at most 1000 names|" +
    "must not be env with metadata_only=true)\\.$",
);
const neverSent =
  /^(access-control-.*|last-modified|set-cookie|server|location|content-encoding|x-powered-by|vary|age|expires)$/;

/**
 * What is wrong with an answer by CONTRACT §1 and §3, or undefined: headers, the closed list of codes, one body for
 * each code. It remembers bodies across calls, so a second wording for a code is found.
 */
export function contractProblem({ status, headers, text }: Judged): string | undefined {
  if (!/^[A-Za-z0-9._-]{1,128}$/.test(headers.get("x-request-id") ?? "")) return "no well-formed x-request-id";
  if (headers.get("cache-control") !== "no-store") return "not no-store";
  if (headers.get("x-content-type-options") !== "nosniff") return "not nosniff";
  for (const name of headers.keys()) if (neverSent.test(name)) return `the header ${name}`;
  const etag = headers.get("etag");
  const isTagged = status === 200 || status === 304;
  if (etag !== null && !(isTagged && /^"[0-9A-Za-z_-]{43}"$/.test(etag))) return `the ETag ${etag}`;
  // `If-None-Match: *` fits any answer that there is.
  if (status === 304) return etag !== null && text === "" ? undefined : "a 304 without a tag, or with a body";
  const type = headers.get("content-type");
  if (status === 200) {
    if (type === "text/plain; charset=utf-8") return undefined;
    return type === "application/json; charset=utf-8" && isJson(text) ? undefined : "a 200 that is no JSON";
  }
  if (type !== "application/json; charset=utf-8") return `content type ${type}`;
  const failure = isJson(text)
    ? (JSON.parse(text) as { error: unknown; code: string })
    : { error: undefined, code: "" };
  if (Object.keys(failure).join() !== "error,code") return "a body that is not {error, code}";
  const { error, code } = failure;
  if (statusOf[code] !== status || typeof error !== "string") return `code ${code} with status ${status}`;
  if (code === "invalid_request" && error !== "The body must be left out.") {
    return parameterSentence.test(error) ? undefined : "an unknown sentence about a parameter";
  }
  if (code !== "env_unrepresentable") {
    const known = bodies.get(code) ?? text;
    bodies.set(code, known);
    if (text !== known) return `a second body for ${code}`;
    if (Buffer.byteLength(text) > 200) return "a body of over 200 bytes";
  }
  const own: Record<string, boolean> = {
    "www-authenticate": code === "unauthorized",
    allow: code === "method_not_allowed",
    "retry-after": code === "rate_limited",
  };
  for (const [name, due] of Object.entries(own)) if (headers.has(name) !== due) return `${name} at ${code}`;
  if (code === "unauthorized" && headers.get("www-authenticate") !== 'Bearer realm="keyhole"') return "the challenge";
  if (code === "method_not_allowed" && headers.get("allow") !== "GET") return "the Allow header";
  if (code === "rate_limited" && !/^[1-9][0-9]*$/.test(headers.get("retry-after") ?? ""))
    return "the Retry-After header";
  return undefined;
}

/** "200", the code of a failure, or what is wrong with the answer. */
export function verdictOf(answer: Judged): string {
  const problem = contractProblem(answer);
  if (problem !== undefined) return `BROKEN CONTRACT (${problem}): ${answer.status} ${answer.text.slice(0, 300)}`;
  return answer.status === 200 ? "200" : (JSON.parse(answer.text) as { code: string }).code;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
