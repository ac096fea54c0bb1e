import { describe, expect, test } from "bun:test";
import {
  parseKeySet,
  readToken,
  type Terms,
  type Token,
  type Trust,
  usableKeys,
  verifyToken,
  wordsOf,
} from "../../src/serve/access/token.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import recorded from "../vectors/tokens.json";

const id = "0199a3c4-0000-7000-8000-000000000000";

function trustOf(terms: Omit<Terms, "jwks">, jwks: unknown): Trust {
  return { id, digest: new Uint8Array(), terms: { ...terms, jwks: JSON.stringify(jwks) }, pinned: parseKeySet(jwks) };
}

async function whyRefused(token: Token, trust: Trust, nowMs = Date.now()): Promise<string> {
  return verifyToken(token, [trust], undefined, nowMs).then(
    () => "accepted",
    (refused: Error) => refused.message,
  );
}

describe("a token in the shape of", () => {
  test.each(recorded.map((one) => [one.name, one] as const))("%s", async (_, one) => {
    const { issuer, audience, nowMs } = one;
    const claims = one.claims as unknown as Record<string, string>;
    const trust = trustOf({ issuer, audience, claims }, one.jwks);
    const token = readToken(one.token);
    expect(await verifyToken(token, [trust], undefined, nowMs)).toBe(trust);
    expect(await whyRefused(token, trust)).toContain("it has expired");
    expect(await whyRefused(token, trust, nowMs - 120_000)).toMatch(/not valid yet|issued in the future/);
    // Each claim of the trust counts, and so does the audience.
    for (const name of Object.keys(claims)) {
      const other = { ...trust, terms: { ...trust.terms, claims: { ...claims, [name]: "other" } } };
      expect(await whyRefused(token, other, nowMs)).toContain(`its claim ${name} is `);
    }
    const other = { ...trust, terms: { ...trust.terms, audience: "other" } };
    expect(await whyRefused(token, other, nowMs)).toContain("its audience is ");
  });

  test("GitHub and GitLab names its run, and those of Kubernetes and SPIRE have none", () => {
    expect(recorded.map(({ token }) => wordsOf(readToken(token)))).toEqual([
      { jti: expect.any(String), sub: "repo:acme/web:environment:production", run: "12857775555" },
      { jti: expect.any(String), sub: "project_path:acme/web:ref_type:branch:ref:main", run: "302" },
      { jti: expect.any(String), sub: "system:serviceaccount:web:web", run: "" },
      { jti: "", sub: "spiffe://example.org/ns/web/sa/web", run: "" },
    ]);
  });
});

describe("a key set", () => {
  const issuer = "https://issuer.example";
  const [key, another] = [newSigningKey("ES256"), newSigningKey("ES256")];
  const token = readToken(compact({ alg: "ES256", kid: "one" }, usualClaims(issuer), key));
  const trust = (jwks: unknown) => trustOf({ issuer, audience, claims: { sub: "job" } }, jwks);

  test("with two keys of one kid verifies nothing by either", async () => {
    const jwks = { keys: [publicJwk("one", another), publicJwk("one", key)] };
    expect(await whyRefused(token, trust(jwks))).toContain("several of the issuer's keys could have signed it");
  });

  test("with a key for another use, or for another algorithm, verifies nothing by it", async () => {
    for (const change of [{ use: "enc" }, { alg: "RS256" }, { key_ops: ["sign"] }]) {
      const jwks = { keys: [{ ...publicJwk("one", key), ...change }] };
      expect(await whyRefused(token, trust(jwks))).toContain("the issuer has no such key");
    }
  });

  test("of SPIFFE verifies tokens by its keys for JWT-SVIDs, and by no other", async () => {
    const bundle = (use: string) => ({
      keys: [
        { ...publicJwk("one", another), alg: undefined, kid: undefined, use: "x509-svid" },
        { ...publicJwk("one", key), alg: undefined, use },
      ],
      spiffe_sequence: 1,
    });
    expect(await whyRefused(token, trust(bundle("jwt-svid")))).toBe("accepted");
    const unnamed = readToken(compact({ alg: "ES256" }, usualClaims(issuer), another));
    expect(await whyRefused(unnamed, trust(bundle("jwt-svid")))).toContain("its signature is not by the issuer's key");
    for (const use of ["x509-svid", "wit-svid", "JWT-SVID"]) {
      expect(await whyRefused(token, trust(bundle(use)))).toContain("the issuer has no such key");
    }
  });

  test("without keys verifies nothing: its issuer has withdrawn them", async () => {
    expect(await whyRefused(token, trust({ keys: [] }))).toContain("the issuer has no such key");
  });

  test("of a shared secret verifies nothing", async () => {
    const jwks = { keys: [{ kty: "oct", kid: "one", k: Buffer.alloc(32).toString("base64url") }] };
    expect(await whyRefused(token, trust(jwks))).toContain("the issuer has no such key");
  });

  test("is refused as a whole if it is no key set, or a long one", () => {
    const none: unknown[] = [null, [], {}, { keys: {} }, { keys: [null] }, { keys: ["x"] }];
    for (const document of none) expect(() => parseKeySet(document)).toThrow("it is not a JSON Web Key Set");
    expect(() => parseKeySet({ keys: Array(101).fill({ kty: "RSA" }) })).toThrow("it has more than 100 keys");
  });

  test("that a trust pins is not mixed with what its issuer publishes", async () => {
    const pinned = trust({ keys: [publicJwk("one", another)] });
    const published = parseKeySet({ keys: [publicJwk("one", key)] });
    const unpinned = { ...pinned, id: "other", terms: { ...pinned.terms, jwks: null }, pinned: null };
    expect(await verifyToken(token, [pinned, unpinned], published, Date.now())).toBe(unpinned);
    expect(await whyRefused(token, pinned)).toContain("its signature is not");
    await expect(verifyToken(token, [pinned], published, Date.now())).rejects.toThrow("its signature is not");
  });
});

test("of the keys that an issuer publishes, those that cannot verify are counted out, whatever they hold", () => {
  const good = publicJwk("one", newSigningKey("ES256"));
  const odd = [{}, { ...good, alg: { toString: 1 } }, { ...good, x: 7 }, { ...good, key_ops: ["sign"] }];
  expect(usableKeys([good, ...odd])).toBe(1);
});
