/*
 * The plugin takes `?access_token=` (switched off in app.ts), knows only the spelling "Bearer" and reads "Bearerkh_x"
 * as "h_x". So the header is judged here before it, and handed on in the one spelling that the plugin reads rightly.
 */

/** How a request presented itself. */
export type Presented =
  | { readonly kind: "nothing" }
  /** A header that is no `Bearer` and one token; Bun joins repeated fields with a comma, which no token holds. */
  | { readonly kind: "malformed"; readonly text: string }
  | { readonly kind: "token" };

/** Judges the Authorization header and leaves in its place exactly `Bearer TOKEN`, or nothing. */
export function judgeAuthorization(headers: Headers): Presented {
  const header = headers.get("authorization");
  if (header === null) return { kind: "nothing" };
  const token = /^bearer +([0-9A-Za-z_]+)$/i.exec(header)?.[1];
  if (token === undefined) {
    headers.delete("authorization");
    return { kind: "malformed", text: header };
  }
  if (header !== `Bearer ${token}`) headers.set("authorization", `Bearer ${token}`);
  return { kind: "token" };
}
