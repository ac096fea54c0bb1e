import { isSameMac, macOf } from "../../core/hash.ts";
import type { Caller } from "../access/authenticate.ts";

/*
 * The tag of an answer: 43 base64url characters in double quotes. It is an HMAC over the key's id, the project, the
 * exact query and a fingerprint of the answer. So it tells nothing without the etag key, and no two keys or
 * queries share one.
 */

/** A list of tags (RFC 9110, section 13.1.2), each weak or strong. */
const tagList = /^[\t ,]*(?:(?:W\/)?"[!#-~\x80-\xff]*"[\t ]*(?:,[\t ,]*|$))+$/;

/**
 * The tags in `If-None-Match` that can be Keyhole's, or `*`. A proxy that compresses makes a tag weak, and the
 * comparison is weak, so `W/` does not count.
 * @returns undefined if there is none, or the header is no list of tags: then the read is an ordinary one
 */
export function parseEtags(header: string | null): readonly string[] | undefined {
  if (header === null) return undefined;
  if (header === "*") return ["*"];
  const tags = tagList.test(header) ? (header.match(/"[^"]*"/g) ?? []) : [];
  const own = tags.filter((tag) => /^"[0-9A-Za-z_-]{43}"$/.test(tag));
  return own.length > 0 ? own : undefined;
}

/**
 * The tag of what this caller gets.
 * @param query - the endpoint and its parsed parameters: one spelling for each query
 * @param fingerprint - equal only for equal answers to this query about this project
 */
export function etagOf(etagKey: Uint8Array, { grant, target }: Caller, query: readonly unknown[], fingerprint: string) {
  const mac = macOf(etagKey, ["keyhole etag v1", grant.keyId, target?.projectId, query, fingerprint]);
  return `"${mac.toString("base64url")}"`;
}

/** Whether the tag is one of those that {@link parseEtags} found. Compares in constant time. */
export function isAmong(tag: string, tags: readonly string[] | undefined): boolean {
  return tags?.some((one) => one === "*" || isSameMac(Buffer.from(tag), Buffer.from(one))) ?? false;
}
