import { createPrivateKey, createPublicKey, type webcrypto } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { compact, usualClaims } from "../support/issuer.ts";
import { runOn } from "../support/postgres.ts";

/* What `make.ts` writes of a release, and its test reads. */

/** What a dialect's database of a release holds, as commands and reads show it. */
export type Expected = {
  readonly commands: readonly { readonly args: readonly string[]; readonly printed: unknown }[];
  readonly reads: readonly Read[];
  readonly trusted: Trusted;
  /** Commands in order, each with a read after it. */
  readonly rollbacks: readonly { readonly args: readonly string[]; readonly read: Read }[];
};

/** A read and its answer. */
export type Read = {
  /** The text of an API key. */
  readonly key: string;
  readonly path: string;
  readonly status: number;
  /** Parsed if it is JSON, or text. */
  readonly body: unknown;
};

/** An issuer that a trust names, with its private key, and a read that its tokens may do. */
export type Trusted = Pick<Read, "path" | "body"> & {
  readonly issuer: string;
  readonly audience: string;
  readonly kid: string;
  readonly privateKey: webcrypto.JsonWebKey;
};

/** A token of this issuer. @param movedMs - how far the clock of the server that reads it is ahead */
export function tokenOf({ issuer, audience, kid, privateKey: jwk }: Trusted, movedMs = 0): string {
  const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
  const key = { alg: "ES256", privateKey, publicKey: createPublicKey(privateKey) };
  const iat = Math.floor((Date.now() + movedMs) / 1000);
  const claims = { ...usualClaims(issuer), aud: audience, iat, exp: iat + 300 };
  return compact({ alg: "ES256", kid, typ: "JWT" }, claims, key);
}

/** The body of an answer: parsed if it is JSON, or text. */
export function bodyOf({ headers, body }: { readonly headers: ReadonlyMap<string, string>; readonly body: Buffer }) {
  const text = body.toString("utf8");
  return headers.get("content-type")?.startsWith("application/json") ? (JSON.parse(text) as unknown) : text;
}

/** A file beside this one, as text. */
export function releaseFile(path: string): string {
  return readFileSync(join(import.meta.dir, path), "utf8");
}

/** The root key of the databases of f841f4c. */
export const earlierRootKey: string = Buffer.from("keyhole: of no use but in tests!").toString("base64");

/** Runs what a dump holds in an empty PostgreSQL database. */
export const loadDump = (url: string, path: string) => runOn(url, releaseFile(path));
