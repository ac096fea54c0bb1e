import { Fault } from "../fault.ts";
import type { EnvironmentMask } from "../names.ts";

/*
 * Where a sealed value belongs, as bytes: the associated data of its envelope, after the envelope's own header. The
 * database may hold the row, move it or edit it, but a value opens only at the place it was sealed for. Callers take
 * the project and the environment from what was authorized, never from the row.
 *
 * A place is a list of fields, the first of them a label that no other kind of place has:
 *
 *   offset  bytes  of each field
 *        0      4  n, the length of what follows, big endian
 *        4      n  text as UTF-8, an integer as 8 bytes big endian, a SHA-256 as its 32 bytes
 *
 * The lengths keep neighbours apart: ("ab", "c") and ("a", "bc") are different places.
 */

/** The place of a variable's value. A version is part of it, so that an older value put back by SQL does not open. */
export function variablePlace(variable: {
  readonly projectId: string;
  readonly environment: string;
  readonly variableId: string;
  readonly version: number;
  readonly name: string;
}): Buffer {
  const { projectId, environment, variableId, version, name } = variable;
  return encodeFields("variable", projectId, environment, variableId, version, name);
}

/** The place of an account, whose fields are one plaintext. */
export function accountPlace(account: {
  readonly projectId: string;
  readonly accountId: string;
  readonly version: number;
  readonly environments: EnvironmentMask;
  readonly name: string;
}): Buffer {
  const { projectId, accountId, version, environments, name } = account;
  return encodeFields("account", projectId, accountId, version, environments, name);
}

/**
 * The place of a file's content: everything a client acts on when it writes the file, so that no SQL can give it
 * another path, mode or name.
 *
 * @param file.sha256 - 64 lower-case hex digits, as stored; anything else throws the Fault that a place which does not
 * open throws, because only a row edited by hand has it
 */
export function filePlace(file: {
  readonly projectId: string;
  readonly fileId: string;
  readonly version: number;
  readonly environments: EnvironmentMask;
  readonly path: string;
  readonly mode: string;
  readonly size: number;
  readonly sha256: string;
  readonly name: string;
  readonly contentType: string;
}): Buffer {
  const { projectId, fileId, version, environments, path, mode, size, name, contentType } = file;
  const sha256 = sha256Bytes(file.sha256);
  return encodeFields("file", projectId, fileId, version, environments, path, mode, size, sha256, name, contentType);
}

/**
 * The place of a set: all variables of one environment sealed as one. Its listing, names and times in the clear, is part
 * of it, so that what a metadata read shows is what was sealed.
 */
export function setPlace(set: {
  readonly projectId: string;
  readonly environment: string;
  readonly revision: number;
  readonly listing: string;
}): Buffer {
  return encodeFields("set", set.projectId, set.environment, set.revision, set.listing);
}

/** The place of a wrapped data key. */
export function dataKeyPlace(dataKey: {
  readonly projectId: string;
  readonly generation: number;
  readonly rootId: string;
}): Buffer {
  return encodeFields("data key", dataKey.projectId, dataKey.generation, dataKey.rootId);
}

/** The place of a wrapped key that serves the whole database: the pepper, the grant-seal key, the audit key. */
export function systemKeyPlace(systemKey: { readonly purpose: string; readonly rootId: string }): Buffer {
  return encodeFields("system key", systemKey.purpose, systemKey.rootId);
}

/**
 * The fields one after the other, as the table above says. Different lists of fields of the same kinds never give the
 * same bytes.
 *
 * @throws Fault `decryption_failed` for what has no encoding of its own: text with half a surrogate pair, which UTF-8
 * would turn into the same bytes as any other such text, and a number that is not a whole one from 0 to 2⁵³ − 1. Both
 * come only from a row that was edited by hand.
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
    if (!field.isWellFormed()) throw new Fault("decryption_failed", "a place holds text that is not Unicode");
    return Buffer.byteLength(field);
  }
  if (typeof field === "number") {
    if (!Number.isSafeInteger(field) || field < 0) {
      throw new Fault("decryption_failed", "a place holds a number that is not a whole one from 0 to 2^53 - 1");
    }
    return 8;
  }
  return field.length;
}

function sha256Bytes(hex: string): Buffer {
  if (!/^[0-9a-f]{64}$/.test(hex)) throw new Fault("decryption_failed", "a file's SHA-256 is not 64 hex digits");
  return Buffer.from(hex, "hex");
}
