import { isSameMac, macOf } from "../core/hash.ts";
import type { Caller } from "./authenticate.ts";

/*
 * The tag of an answer: 43 base64url characters in double quotes. It is an HMAC over the key's id, the project, the
 * exact query and a fingerprint of the answer. So it tells nothing without the etag key, and no two keys or
 * queries share one.
 */

/** @returns the tag that the header names; undefined for a list, `*`, a weak tag or one of another form */
export function parseEtag(header: string | null): string | undefined {
  return header !== null && /^"[0-9A-Za-z_-]{43}"$/.test(header) ? header : undefined;
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

/** Compares two tags in constant time. */
export function isSameEtag(a: string, b: string | undefined): boolean {
  return b !== undefined && isSameMac(Buffer.from(a), Buffer.from(b));
}
