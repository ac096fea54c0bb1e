/* Tokens of AWS, Google and Azure, made by the rules of their documents: no cloud is reachable from a test. */
import { expect, test } from "bun:test";
import { ageOf, requirePerJob, requirePinned } from "../../src/people/keys/providers.ts";
import { parseKeySet, readToken, type Terms, verifyToken } from "../../src/serve/access/token.ts";
import { type CloudToken, cloudTokens as clouds, roleOfAws } from "../support/clouds.ts";
import { compact, newSigningKey, publicJwk } from "../support/issuer.ts";

const nowS = 1_768_478_400;
test.each(Object.entries<CloudToken>(clouds))(
  "a machine of %s is known by its token as long as it gets the same",
  async (_, row) => {
    const { alg, claims, pin, ageS } = row;
    const key = newSigningKey(alg);
    const jwks = { keys: [publicJwk("one", key)] };
    const { iss: issuer, aud: audience } = claims;
    const asked = { issuer, claims: { [pin]: String(claims[pin]) } };
    requirePinned(asked);
    expect(requirePerJob(asked)).toBeUndefined();
    const longer = ageOf(issuer);
    const terms: Terms = { ...asked, audience, jwks: JSON.stringify(jwks), ...(longer && { ageS: longer }) };
    const trust = { id: "t", digest: new Uint8Array(), terms, pinned: parseKeySet(jwks) };
    const tokenOf = (changed: object) => {
      const payload = { ...claims, iat: nowS, nbf: nowS, exp: nowS + 2 * ageS, ...changed };
      return readToken(compact({ alg, kid: "one", typ: "JWT" }, payload, key));
    };
    const judged = (changed: object, afterS: number) => {
      return verifyToken(tokenOf(changed), [trust], undefined, (nowS + afterS) * 1000).then(
        () => "accepted",
        ({ message }: Error) => message,
      );
    };
    expect(await judged({}, ageS)).toBe("accepted");
    expect(await judged({}, ageS + 31)).toContain(`it was issued more than ${ageS / 60} minutes ago`);
    expect(await judged({ exp: nowS + 60 }, 91)).toContain("it has expired");
    expect(await judged({ [pin]: "another" }, 0)).toContain(`its claim ${pin} is "another"`);
    expect(await judged({ aud: "https://another.example" }, 0)).toContain("its audience is ");
  },
);

test("a trust that takes older tokens makes no other take them", async () => {
  const key = newSigningKey("ES384");
  const jwks = { keys: [publicJwk("one", key)] };
  const issuer = clouds.AWS.claims.iss;
  const terms = { issuer, audience: "a", jwks: JSON.stringify(jwks) };
  const trustOf = (id: string, more: Pick<Terms, "claims" | "ageS">) => {
    return { id, digest: new Uint8Array(), terms: { ...terms, ...more }, pinned: parseKeySet(jwks) };
  };
  const trusts = [
    trustOf("older", { claims: { sub: "x" }, ageS: 3600 }),
    trustOf("usual", { claims: { sub: roleOfAws } }),
  ];
  const payload = { iss: issuer, aud: "a", sub: roleOfAws, iat: nowS - 700, exp: nowS + 100 };
  const token = readToken(compact({ alg: "ES384", kid: "one" }, payload, key));
  await expect(verifyToken(token, trusts, undefined, nowS * 1000)).rejects.toThrow("issued more than 10 minutes ago");
});
