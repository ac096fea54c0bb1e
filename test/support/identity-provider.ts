import { compact, newSigningKey, publicJwk, type SigningKey } from "./issuer.ts";

/* An identity provider for sign-ins, whose every answer a test can change. */

export const clientId = "keyhole";

export type Claims = Record<string, unknown>;

/** What a token endpoint was sent. */
type TokenRequest = { readonly authorization: string | null; readonly form: URLSearchParams };

/** @param path - the provider is below it, such as a tenant's; its issuer may end with a slash */
export function startProvider(path = "") {
  const key = newSigningKey("ES256");
  const other = newSigningKey("ES256");
  const provider = {
    url: "",
    claims: {} as Claims,
    header: {} as Claims,
    signedBy: key as SigningKey,
    isAway: false,
    other,
    asked: [] as string[],
    /** The nonce of the attempt that the next token is for. */
    nonce: "",
    /** What the discovery document says beside, or instead of, the usual. */
    document: {} as Claims,
    /** What userinfo says; undefined for a provider without it. */
    userInfo: undefined as Claims | undefined,
    /** What an endpoint answers in place of the usual, by its name. */
    answers: {} as Record<string, () => Response>,
    /** The answer's members beside, or instead of, the usual. */
    tokens: {} as Claims,
    sent: undefined as TokenRequest | undefined,
    stop: () => server.stop(true),
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      const { url } = provider;
      const base = url.replace(/\/$/, "");
      const asked = request.url.replace(base, "");
      provider.asked.push(asked);
      if (provider.isAway) return new Response("away", { status: 503 });
      const own = provider.answers[asked];
      if (own !== undefined) return own();
      if (asked === "/.well-known/openid-configuration") {
        return Response.json({
          issuer: url,
          authorization_endpoint: `${base}/authorize`,
          token_endpoint: `${base}/token`,
          jwks_uri: `${base}/jwks`,
          response_types_supported: ["code"],
          id_token_signing_alg_values_supported: ["ES256"],
          authorization_response_iss_parameter_supported: true,
          ...(provider.userInfo !== undefined && { userinfo_endpoint: `${base}/userinfo` }),
          ...provider.document,
        });
      }
      if (asked === "/jwks") return Response.json({ keys: [publicJwk("one", key)] });
      if (asked === "/userinfo") return Response.json(provider.userInfo);
      if (asked !== "/token") return new Response(null, { status: 404 });
      provider.sent = {
        authorization: request.headers.get("authorization"),
        form: new URLSearchParams(await request.text()),
      };
      const now = Math.floor(Date.now() / 1000);
      const times = { iat: now, exp: now + 300, auth_time: now };
      const claims = { iss: url, aud: clientId, sub: "ana-1", ...times, nonce: provider.nonce, ...provider.claims };
      const token = compact({ alg: "ES256", kid: "one", ...provider.header }, claims, provider.signedBy);
      return Response.json({ access_token: "x", token_type: "Bearer", id_token: token, ...provider.tokens });
    },
  });
  provider.url = `http://127.0.0.1:${server.port}${path}`;
  return provider;
}
