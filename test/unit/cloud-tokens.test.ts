/* Tokens of AWS, Google and Azure, made by the rules of their documents: no cloud is reachable from a test. */
import { expect, test } from "bun:test";
import { ageOf, requirePerJob, requirePinned } from "../../src/people/keys/providers.ts";
import { parseKeySet, readToken, type Terms, verifyToken } from "../../src/serve/access/token.ts";
import { compact, newSigningKey, publicJwk } from "../support/issuer.ts";

const nowS = 1_768_478_400;
const aws = "https://abc12345-def4-5678-90ab-cdef12345678.tokens.sts.global.api.aws";
const tenant = "0b9c6d1e-1111-4000-8000-000000000001";
const role = "arn:aws:iam::123456789012:role/web";

type Row = { alg: string; claims: Record<string, unknown> & { iss: string; aud: string }; pin: string; ageS: number };
const clouds: Record<string, Row> = {
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html
  AWS: {
    alg: "ES384",
    claims: {
      iss: aws,
      aud: "https://keyhole.example.com",
      sub: role,
      jti: "xyz123-def456-ghi789-jkl012",
      "https://sts.amazonaws.com/": { aws_account: "123456789012", source_region: "eu-central-1" },
    },
    pin: "sub",
    ageS: 600,
  },
  // https://cloud.google.com/compute/docs/instances/verifying-instance-identity
  Google: {
    alg: "RS256",
    claims: {
      iss: "https://accounts.google.com",
      aud: "https://keyhole.example.com",
      azp: "112233445566778899001",
      email: "web@acme.iam.gserviceaccount.com",
      email_verified: true,
      google: { compute_engine: { instance_id: "152986662232938449", project_number: 739419398126 } },
      sub: "112233445566778899001",
    },
    pin: "sub",
    ageS: 3600,
  },
  // https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference
  Azure: {
    alg: "RS256",
    claims: {
      iss: `https://sts.windows.net/${tenant}/`,
      aud: "api://keyhole",
      idtyp: "app",
      appid: "2a3b4c5d-3333-4000-8000-000000000003",
      oid: "1f2e0a6b-2222-4000-8000-000000000002",
      sub: "1f2e0a6b-2222-4000-8000-000000000002",
      tid: tenant,
      ver: "1.0",
    },
    pin: "oid",
    ageS: 86_400,
  },
};

test.each(Object.entries(clouds))(
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
  const terms = { issuer: aws, audience: "a", jwks: JSON.stringify(jwks) };
  const trustOf = (id: string, more: Pick<Terms, "claims" | "ageS">) => {
    return { id, digest: new Uint8Array(), terms: { ...terms, ...more }, pinned: parseKeySet(jwks) };
  };
  const trusts = [trustOf("older", { claims: { sub: "x" }, ageS: 3600 }), trustOf("usual", { claims: { sub: role } })];
  const payload = { iss: aws, aud: "a", sub: role, iat: nowS - 700, exp: nowS + 100 };
  const token = readToken(compact({ alg: "ES384", kid: "one" }, payload, key));
  await expect(verifyToken(token, trusts, undefined, nowS * 1000)).rejects.toThrow("issued more than 10 minutes ago");
});
