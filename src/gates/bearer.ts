/*
 * @elysiajs/bearer accepts a key from `?access_token=` (app.ts turns that off), knows only the spelling "Bearer", and
 * reads "Bearerkh_x" as "h_x". So the header is validated here first, and rewritten to the form that it reads right.
 */

/** What the Authorization header of a request holds. */
export type Presented =
  | { readonly kind: "nothing" }
  /** Not `Bearer` and one token. Bun joins repeated headers with a comma, which is not allowed in a token. */
  | { readonly kind: "malformed"; readonly text: string }
  | { readonly kind: "token" };

/** Validates the Authorization header. Rewrites a valid one to exactly `Bearer TOKEN` and removes a malformed one. */
export function normalizeAuthorization(headers: Headers): Presented {
  const header = headers.get("authorization");
  if (header === null) return { kind: "nothing" };
  const token = /^bearer +([\w.-]+)$/i.exec(header)?.[1];
  if (token === undefined) {
    headers.delete("authorization");
    return { kind: "malformed", text: header };
  }
  if (header !== `Bearer ${token}`) headers.set("authorization", `Bearer ${token}`);
  return { kind: "token" };
}
