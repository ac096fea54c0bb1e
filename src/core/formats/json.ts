import type { Body } from "../held.ts";

export const jsonType = "application/json; charset=utf-8";
export const textType = "text/plain; charset=utf-8";

/** Up to this many bytes Bun 1.4.5 sends a body at once, and fastest as text. */
export const atOnceBytesMax = 15 * 1024;
/** Up to this many bytes a body is made whole. More leaves in pieces, without a second copy. */
const wholeBytesMax = 256 * 1024;

/** JSON made of opened bytes and what stands around them. Bytes that are copied are zeroed. */
export function jsonAround(before: string, opened: Buffer, after: string): Body {
  if (opened.length > wholeBytesMax) return { content: [before, opened, after], contentType: jsonType };
  const content =
    opened.length > atOnceBytesMax
      ? Buffer.concat([Buffer.from(before), opened, Buffer.from(after)])
      : `${before}${opened.toString("utf8")}${after}`;
  opened.fill(0);
  return { content, contentType: jsonType };
}
