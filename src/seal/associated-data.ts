import { Fault } from "../core/fault.ts";

/*
 * What a sealed value belongs to, as bytes: the associated data of its envelope, after the envelope's own header.
 * Callers take project and environment from what was authorized, never from the row, so a row that was moved does not
 * open. It is a list of fields. Each list begins with a label of its own.
 *
 *   offset  bytes  of each field
 *        0      4  n, the length of what follows, big endian
 *        4      n  text as UTF-8, an integer as 8 bytes big endian, bytes as they are
 *
 * The lengths keep neighbours apart: ("ab", "c") and ("a", "bc") give different bytes.
 */

/** A set's identity: the project as the caller was authorized for it, the kind, the environment and the version. */
export type SetIdentity = {
  readonly organizationId: string;
  readonly projectId: string;
  readonly slug: string;
  readonly kind: string;
  readonly environment: string;
  readonly version: number;
};

/** The associated data of a set's values. The mac covers the listing, so metadata shows what was sealed. */
export function setAssociatedData(set: SetIdentity, listingMac: Uint8Array): Buffer {
  return encodeFields("set", ...identityFields(set), listingMac);
}

/** What the mac of a listing covers: the listing, all that identifies the set, and its data key's generation. */
export function listingFields(set: SetIdentity, generation: number, listing: string): Buffer {
  return encodeFields("listing", ...identityFields(set), generation, listing);
}

function identityFields({ organizationId, projectId, slug, kind, environment, version }: SetIdentity) {
  return [organizationId, projectId, slug, kind, environment, version];
}

/** The associated data of a file's content. Its path is in the listing, which refers to the content by id. */
export function contentAssociatedData(content: { projectId: string; id: string; size: number; sha256: string }) {
  return encodeFields("file content", content.projectId, content.id, content.size, content.sha256);
}

/** The associated data of a wrapped data key. */
export function dataKeyAssociatedData(projectId: string, generation: number, rootId: string): Buffer {
  return encodeFields("data key", projectId, generation, rootId);
}

/** The associated data of a wrapped key that serves the whole installation. */
export function systemKeyAssociatedData(purpose: string, rootId: string): Buffer {
  return encodeFields("system key", purpose, rootId);
}

/**
 * The fields one after the other, as the table above says.
 * @throws Fault `decryption_failed` for text with half a surrogate pair, and for a number that is not a whole one from
 *   0 to 2⁵³ − 1. Only rows that were edited with SQL have such fields.
 */
export function encodeFields(...fields: readonly (string | number | Uint8Array)[]): Buffer {
  let length = 0;
  for (const field of fields) length += 4 + lengthOf(field);
  const bytes = Buffer.allocUnsafe(length);
  let at = 0;
  for (const field of fields) {
    const start = at + 4;
    if (typeof field === "string") {
      at = start + bytes.write(field, start);
    } else if (typeof field === "number") {
      bytes.writeUInt32BE(Math.floor(field / 2 ** 32), start);
      at = bytes.writeUInt32BE(field % 2 ** 32, start + 4);
    } else {
      bytes.set(field, start);
      at = start + field.length;
    }
    bytes.writeUInt32BE(at - start, start - 4);
  }
  return bytes;
}

function lengthOf(field: string | number | Uint8Array): number {
  if (typeof field === "string") {
    if (!field.isWellFormed()) throw new Fault("decryption_failed", "associated data holds text that is not Unicode");
    return Buffer.byteLength(field);
  }
  if (typeof field === "number") {
    if (!Number.isSafeInteger(field) || field < 0) {
      throw new Fault("decryption_failed", "associated data holds a number that is not whole or out of range");
    }
    return 8;
  }
  return field.length;
}
