import { expect } from "bun:test";
import { apiRoot } from "../../src/serve/api/app.ts";

/** An answer, read to its end. */
export type Answer = {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
  /** The body, parsed; throws if it is no JSON. */
  readonly json: unknown;
};

export type Ask = {
  /** Sent as `Authorization: Bearer KEY`. */
  readonly key?: string | { readonly key: string } | undefined;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** A request for a path below the API's root. */
export function requestOf(path: string, { key, method = "GET", headers = {} }: Ask = {}): Request {
  const text = typeof key === "object" ? key.key : key;
  return new Request(`http://localhost${apiRoot}${path}`, {
    method,
    headers: { ...(text !== undefined && { authorization: `Bearer ${text}` }), ...headers },
  });
}

/** A path with each of these at its end, such as queries. */
export function below(path: string, ...ends: readonly string[]): string[] {
  return ends.map((end) => `${path}${end}`);
}

/** Reads an answer to its end. */
export async function answerOf(response: Response): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const text = bytes.toString("utf8");
  return {
    status: response.status,
    headers: response.headers,
    bytes,
    text,
    get json() {
      return JSON.parse(text) as unknown;
    },
  };
}

/** Every header of an answer by its name, so that a test also notices one too many. */
export function headersOf(answer: Answer): Record<string, unknown> {
  return Object.fromEntries(answer.headers);
}

/** The tag of every 200 that can be asked for conditionally. */
export const tagged = { etag: expect.stringMatching(/^"[0-9A-Za-z_-]{43}"$/) as string };

/** The headers of every answer, and `more`. The request id is a generated one unless `more` has another. */
export function usualHeaders(more: Readonly<Record<string, string>> = {}): Record<string, unknown> {
  return {
    "cache-control": "no-store",
    "content-type": "application/json; charset=utf-8",
    "x-content-type-options": "nosniff",
    "x-request-id": expect.stringMatching(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/),
    ...more,
  };
}

/** The RateLimit fields of a bucket's first request. */
export const firstOf = {
  metadata: { "ratelimit-policy": '"metadata";q=120;w=60', ratelimit: '"metadata";r=119;t=1' },
  value: { "ratelimit-policy": '"value";q=30;w=60', ratelimit: '"value";r=29;t=2' },
  content: { "ratelimit-policy": '"file-content";q=1000;w=1000', ratelimit: '"file-content";r=999;t=1' },
} as const;

/** The header of an answer with values. */
export const onRecord = { "keyhole-audit": expect.stringMatching(/^[0-9a-f-]{36}:[1-9]\d*(-[1-9]\d*)?$/) } as const;

/** Fails unless the answer is exactly this refusal. */
export function expectRefusal(answer: Answer, status: number, code: string, error: string): void {
  expect({ status: answer.status, text: answer.text }).toEqual({ status, text: JSON.stringify({ error, code }) });
}

export function expectTooMany(answer: Answer): void {
  const sentence = "The answer would hold more than 1000 items; narrow the request or use a narrower key.";
  expectRefusal(answer, 422, "too_many_items", sentence);
}

/** Which of the secrets a text contains, as they are, in JSON or in base64. */
export function leaksIn(secrets: Iterable<string>, text: string): string[] {
  return [...secrets].filter((secret) => {
    const inJson = JSON.stringify(secret).slice(1, -1);
    return [secret, inJson, Buffer.from(secret).toString("base64")].some((spelling) => text.includes(spelling));
  });
}
