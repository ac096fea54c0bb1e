import { constants, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** An OpenID Connect issuer of this machine, whose keys and answers a test changes at will. */
export type Issuer = AsyncDisposable & {
  readonly url: string;
  /** What the key set holds now, by `kid`. */
  readonly keys: Map<string, SigningKey>;
  /** The paths that were asked for. */
  readonly asked: string[];
  /** Answers in place of the issuer, unless it returns undefined. */
  answer: (path: string) => Response | Promise<Response> | undefined;
  /** A token by the key `kid`: the usual claims, changed and added to; `undefined` removes one. */
  readonly token: (claims?: Claims, kid?: string) => string;
};
export type Claims = Readonly<Record<string, unknown>>;

export type SigningKey = { readonly alg: string; readonly privateKey: KeyObject; readonly publicKey: KeyObject };

export const audience = "https://keyhole.example.com";

export function startIssuer(): Issuer {
  const keys = new Map([["one", newSigningKey("ES256")]]);
  const asked: string[] = [];
  // A port may come back within a run, and the trusts of an earlier test must not name this issuer.
  const base = `/${crypto.randomUUID()}`;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const path = new URL(request.url).pathname.replace(base, "");
      asked.push(path);
      const own = await issuer.answer(path);
      if (own) return own;
      if (path === "/.well-known/openid-configuration") {
        return Response.json({ issuer: issuer.url, jwks_uri: `${issuer.url}/jwks` });
      }
      return Response.json({ keys: [...keys].map(([kid, key]) => publicJwk(kid, key)) });
    },
  });
  const issuer: Issuer = {
    url: `http://127.0.0.1:${server.port}${base}`,
    keys,
    asked,
    answer: () => undefined,
    token: (claims, kid = "one") => {
      const key = keys.get(kid) as SigningKey;
      return compact({ alg: key.alg, kid, typ: "JWT" }, usualClaims(issuer.url, claims), key);
    },
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
  return issuer;
}

/** What the tokens of these tests say, issued now. */
export function usualClaims(issuer: string, changed: Claims = {}): Claims {
  const now = Math.floor(Date.now() / 1000);
  const base = { iss: issuer, aud: audience, sub: "job", jti: "token-1", repository_id: "1", iat: now, exp: now + 300 };
  return { ...base, ...changed };
}

export function newSigningKey(alg: string): SigningKey {
  if (alg === "ES256") return { alg, ...generateKeyPairSync("ec", { namedCurve: "P-256" }) };
  if (alg === "ES384") return { alg, ...generateKeyPairSync("ec", { namedCurve: "P-384" }) };
  if (alg === "EdDSA") return { alg, ...generateKeyPairSync("ed25519") };
  return { alg, ...generateKeyPairSync("rsa", { modulusLength: 2048 }) };
}

export function publicJwk(kid: string, { alg, publicKey }: SigningKey): Record<string, unknown> {
  return { ...publicKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

/** A signed token. A header or a payload that is a text is taken as it stands, so that it may be no good JSON. */
export function compact(header: Claims | string, payload: Claims | string, key: SigningKey): string {
  const signed = [header, payload].map(encoded).join(".");
  return `${signed}.${signatureOf(Buffer.from(signed), key).toString("base64url")}`;
}

export function encoded(part: Claims | string): string {
  return Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url");
}

function signatureOf(bytes: Buffer, { alg, privateKey: key }: SigningKey): Buffer {
  if (alg === "ES256") return sign("sha256", bytes, { key, dsaEncoding: "ieee-p1363" });
  if (alg === "ES384") return sign("sha384", bytes, { key, dsaEncoding: "ieee-p1363" });
  if (alg === "EdDSA") return sign(null, bytes, key);
  if (alg === "PS256") return sign("sha256", bytes, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 });
  return sign("sha256", bytes, key);
}

/** What a runner of GitHub Actions gives a job that may have tokens: this one, or a new one each time. */
export function startRunner(given: string | (() => string) = compact({}, {}, newSigningKey("ES256"))) {
  const bearer = "bearer-of-the-runner";
  const audiences: (string | null)[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: ({ url, headers }) => {
      if (headers.get("authorization") !== `Bearer ${bearer}`) return new Response("no", { status: 401 });
      audiences.push(new URL(url).searchParams.get("audience"));
      return Response.json({ value: typeof given === "string" ? given : given(), count: 1 });
    },
  });
  return {
    token: typeof given === "string" ? given : "",
    audiences,
    env: {
      ACTIONS_ID_TOKEN_REQUEST_URL: `http://127.0.0.1:${server.port}/token?api-version=2`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer,
    },
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
}
