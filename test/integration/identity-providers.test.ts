import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { visible } from "../../src/core/visible.ts";
import { forLog, mayLead } from "../../src/dashboard/provider.ts";
import { type Identity, SignIn } from "../../src/dashboard/sign-in.ts";
import { type Claims, clientId, startProvider } from "../support/identity-provider.ts";

/* What identity providers answer, by their documentation, and what the operator's log has of a sign-in that fails. */

const origin = "https://secrets.example";
const clientSecret = "parrot:secret+1";

let provider: ReturnType<typeof startProvider>;
let reported: string[];
beforeEach(() => {
  provider = startProvider();
  reported = [];
});
afterEach(() => provider.stop());

type Told = { readonly issuer?: string; readonly clientSecret?: string | undefined; readonly scopes?: string[] };

function newSignIn(told: Told = {}) {
  const report = (error: unknown) => reported.push((error as Error).message);
  return new SignIn({ issuer: provider.url, clientId, clientSecret, ...told }, origin, Date.now, report);
}

/** Signs in. @param changed - of what the browser comes back with */
async function signedIn(
  told: Told = {},
  changed: Record<string, string> = {},
  again = false,
  signIn = newSignIn(told),
): Promise<Identity> {
  const { to, cookie } = await signIn.begin(again, undefined, "/");
  const asked = new URL(to).searchParams;
  provider.nonce = asked.get("nonce") ?? "";
  const query = new URLSearchParams({ code: "parrot-code", state: asked.get("state") ?? "", iss: provider.url });
  for (const [name, value] of Object.entries(changed)) query.set(name, value);
  return (await signIn.finish(cookie, query.toString())).identity;
}

/** Why a sign-in fails: what the page says, and what the log has. */
async function failure(signing: Promise<unknown>): Promise<{ kind: string; page: string; log: string }> {
  const error = await signing.then(
    () => expect.unreachable("somebody was signed in"),
    (error: unknown) => error as Error & { kind: string },
  );
  return { kind: error.kind, page: error.message, log: forLog(error).message };
}

/** What the provider is, as its documentation has it, and what Keyhole makes of it. */
type Case = {
  readonly path?: string;
  readonly scopes?: string[];
  readonly document?: Claims;
  readonly claims: Claims;
  readonly userInfo?: Claims;
  readonly sendsSecretBy: "basic" | "post";
  readonly identity: Partial<Identity>;
};

const now = Math.floor(Date.now() / 1000);
const both = { token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic"] };
const guid = "5d6e3a1c-90c6-4c30-8ad5-4a2b1f0f6a11";

const cases: Readonly<Record<string, Case>> = {
  // https://learn.microsoft.com/entra/identity-platform/id-token-claims-reference
  "Microsoft Entra: groups are object ids, and auth_time an optional claim": {
    path: `/${guid}/v2.0`,
    document: {
      token_endpoint_auth_methods_supported: ["client_secret_post", "private_key_jwt", "client_secret_basic"],
    },
    claims: {
      preferred_username: "ana@example.com",
      oid: guid,
      tid: guid,
      ver: "2.0",
      groups: [guid],
      auth_time: undefined,
    },
    userInfo: { sub: "ana-1", name: "Ana" },
    sendsSecretBy: "basic",
    identity: { groups: [guid], label: "ana@example.com", provedAt: 0 },
  },
  "Microsoft Entra: somebody in more than 200 groups": {
    path: `/${guid}/v2.0`,
    document: both,
    claims: { _claim_names: { groups: "src1" }, _claim_sources: { src1: { endpoint: "https://graph.example" } } },
    userInfo: { sub: "ana-1", name: "Ana" },
    sendsSecretBy: "basic",
    identity: { groups: [], label: "Ana" },
  },
  // https://developers.google.com/identity/openid-connect/openid-connect
  "Google: no groups, and no auth_time": {
    document: both,
    claims: { email: "ana@example.com", email_verified: true, hd: "example.com", auth_time: undefined },
    userInfo: { sub: "ana-1", email: "ana@example.com" },
    sendsSecretBy: "basic",
    identity: { groups: [], label: "ana@example.com", provedAt: 0 },
  },
  // https://developer.okta.com/docs/guides/customize-tokens-groups-claim/
  "Okta: groups by a scope": {
    path: "/oauth2/default",
    scopes: ["groups"],
    document: { token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"] },
    claims: { email: "ana@example.com", groups: ["Everyone", "leads"], auth_time: now - 60, amr: ["pwd"] },
    sendsSecretBy: "basic",
    identity: { groups: ["Everyone", "leads"], provedAt: (now - 60) * 1000 },
  },
  // https://www.keycloak.org/docs/latest/server_admin/
  "Keycloak: a mapper of groups writes their whole path": {
    path: "/realms/acme",
    document: {
      token_endpoint_auth_methods_supported: ["private_key_jwt", "client_secret_basic", "client_secret_post"],
    },
    claims: { preferred_username: "ana", azp: clientId, groups: ["/leads", "/staff/leads"], auth_time: now },
    sendsSecretBy: "basic",
    identity: { groups: ["/leads", "/staff/leads"], label: "ana", provedAt: now * 1000 },
  },
  // https://docs.goauthentik.io/add-secure-apps/providers/oauth2/
  "Authentik: its issuer ends with a slash, and groups come with the scope profile": {
    path: "/application/o/keyhole/",
    document: both,
    claims: { email: "ana@example.com", groups: ["leads"], auth_time: now },
    sendsSecretBy: "basic",
    identity: { groups: ["leads"] },
  },
  // https://www.authelia.com/integration/openid-connect/openid-connect-1.0-claims/
  "Authelia: groups by a scope, and only at userinfo, as is the address": {
    scopes: ["groups"],
    document: {
      token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "private_key_jwt"],
    },
    claims: { auth_time: now, amr: ["pwd"], azp: clientId },
    userInfo: { sub: "ana-1", email: "ana@example.com", groups: ["leads", "admins"] },
    sendsSecretBy: "basic",
    identity: { groups: ["leads", "admins"], label: "ana@example.com", provedAt: now * 1000 },
  },
  // https://dexidp.io/docs/configuration/custom-scopes-claims-clients/
  "Dex: groups by a scope, and no auth_time": {
    path: "/dex",
    scopes: ["groups"],
    document: { token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"] },
    claims: { email: "ana@example.com", groups: ["acme:leads"], auth_time: undefined },
    userInfo: { sub: "ana-1" },
    sendsSecretBy: "basic",
    identity: { groups: ["acme:leads"], provedAt: 0 },
  },
  // https://learn.microsoft.com/windows-server/identity/ad-fs/development/custom-id-tokens-in-ad-fs
  "AD FS: one group is a text, by the scope allatclaims": {
    path: "/adfs",
    scopes: ["allatclaims"],
    document: {
      token_endpoint_auth_methods_supported: ["client_secret_post", "client_secret_basic", "private_key_jwt"],
    },
    claims: { upn: "ana@corp.example", unique_name: "CORP\\ana", groups: "leads", auth_time: now },
    userInfo: { sub: "ana-1" },
    sendsSecretBy: "basic",
    identity: { groups: ["leads"], label: "ana-1", provedAt: now * 1000 },
  },
  "one that takes the secret in the form alone": {
    document: { token_endpoint_auth_methods_supported: ["client_secret_post"] },
    claims: {},
    sendsSecretBy: "post",
    identity: { groups: [] },
  },
  "one that does not say how it takes the secret": { claims: {}, sendsSecretBy: "basic", identity: { groups: [] } },
  "one whose methods are no list": {
    document: { token_endpoint_auth_methods_supported: 5 },
    claims: {},
    sendsSecretBy: "basic",
    identity: { groups: [] },
  },
  "one whose auth_time is a text": {
    claims: { auth_time: String(now) },
    sendsSecretBy: "basic",
    identity: { provedAt: 0, subject: "ana-1" },
  },
  ...Object.fromEntries(
    [true, null, {}, [now], -1, ""].map((odd) => [
      `one whose auth_time is ${JSON.stringify(odd)}`,
      { claims: { auth_time: odd }, sendsSecretBy: "basic" as const, identity: { subject: "ana-1" } },
    ]),
  ),
  ...Object.fromEntries(
    [null, {}, 7, [["leads"]], [{ name: "leads" }]].map((odd) => [
      `one whose groups are ${JSON.stringify(odd)}`,
      { claims: { groups: odd }, sendsSecretBy: "basic" as const, identity: { groups: [] } },
    ]),
  ),
};

describe("signs people in at", () => {
  test.each(Object.entries(cases))(
    "%s",
    async (_, { path, scopes, document, claims, userInfo, sendsSecretBy, identity }) => {
      provider.url += path ?? "";
      Object.assign(provider, { document: document ?? {}, claims, userInfo });
      expect(await signedIn({ ...(scopes && { scopes }) })).toMatchObject({ issuer: provider.url, ...identity });
      expect(reported).toEqual([]);
      const { authorization, form } = provider.sent ?? {};
      const basic = `Basic ${btoa(`${clientId}:parrot%3Asecret%2B1`)}`;
      expect([authorization, form?.get("client_secret")]).toEqual(
        sendsSecretBy === "basic" ? [basic, null] : [null, clientSecret],
      );
    },
  );

  test("asks for the scopes that the operator names, beside its own", async () => {
    const asked = async (told: Told) => new URL((await newSignIn(told).begin(false, undefined, "/")).to).searchParams;
    expect((await asked({})).get("scope")).toBe("openid profile email");
    expect((await asked({ scopes: ["groups", "allatclaims"] })).get("scope")).toBe(
      "openid profile email groups allatclaims",
    );
  });

  test("asks userinfo only if the ID token names no groups, and believes it of the same subject alone", async () => {
    provider.userInfo = { sub: "ana-1", groups: ["admins"] };
    provider.claims = { groups: ["leads"] };
    expect((await signedIn()).groups).toEqual(["leads"]);
    expect(provider.asked).not.toContain("/userinfo");
    provider.claims = {};
    expect((await signedIn()).groups).toEqual(["admins"]);
    for (const userInfo of [{ sub: "eve-1", groups: ["admins"] }, { groups: ["admins"] }]) {
      provider.userInfo = userInfo;
      expect(await signedIn()).toMatchObject({ subject: "ana-1", groups: [] });
      expect(reported.splice(0).join()).toStartWith("Somebody's groups are not known.");
    }
  });

  test("userinfo that fails keeps nobody out: its groups are missing, and the log says why", async () => {
    provider.userInfo = { sub: "ana-1", groups: ["admins"] };
    provider.answers = { "/userinfo": () => new Response("no", { status: 500 }) };
    expect(await signedIn()).toMatchObject({ subject: "ana-1", groups: [] });
    expect(reported.join()).toContain(`"${provider.url}/userinfo" answered 500`);
  });
});

test("an ID token by an unknown key has the keys asked for once, however often it comes", async () => {
  provider.header = { kid: "parrot" };
  const signIn = newSignIn();
  for (let times = 0; times < 5; times++) {
    const { log } = await failure(signedIn({}, {}, false, signIn));
    expect(log).toContain("is not signed by a key that the provider publishes");
  }
  expect(provider.asked.filter((path) => path === "/jwks")).toHaveLength(1);
});

test.each([
  ["https://id.example", "https://keys.example/jwks", true],
  ["https://id.example", "http://127.0.0.1:8080/jwks", false],
  ["https://id.example", "HTTP://127.0.0.1:8080/jwks", false],
  ["https://id.example", " http://localhost/jwks", false],
  ["http://localhost:8080", "HTTP://127.0.0.1:8080/jwks", true],
  ["http://localhost:8080", "https://keys.example/jwks", true],
  ["http://localhost:8080", "http://keys.example/jwks", false],
])("%s may lead to %s: %p", (issuer, url, may) => expect(mayLead(issuer, url)).toBe(may));

/** What fails a sign-in, and words of the log's line: what the provider is, what the operator says, what comes back. */
type Failing = {
  readonly change?: () => void;
  readonly told?: () => Told;
  readonly back?: Record<string, string>;
  readonly again?: true;
  readonly kind?: "unavailable";
  readonly log: (url: string) => string;
};

const refusedWith =
  (status: number, error: string, headers: Record<string, string> = {}) =>
  () => {
    const body = { error, error_description: `parrot ${clientSecret} parrot-code` };
    provider.answers = { "/token": () => Response.json(body, { status, headers }) };
  };
const claims = (claims: Claims) => () => Object.assign(provider, { claims });

const failing: Readonly<Record<string, Failing>> = {
  "a wrong client secret": {
    change: refusedWith(401, "invalid_client", { "www-authenticate": 'Basic realm="parrot"' }),
    log: () => "token endpoint answered 401, invalid_client: is KEYHOLE_CLIENT_SECRET the secret of --client-id",
  },
  "a code that was used": { change: refusedWith(400, "invalid_grant"), log: () => "400, invalid_grant" },
  "a code of an error that quotes": {
    change: refusedWith(400, "parrot code"),
    log: () => "400, an error without a code of OAuth",
  },
  "the provider's refusal": { back: { error: "access_denied" }, log: () => "it answered access_denied" },
  "a scope that is not the client's": { back: { error: "invalid_scope" }, log: () => "those of --scope" },
  "an issuer that ends with a slash": {
    change: () => Object.assign(provider, { document: { issuer: `${provider.url}/` } }),
    log: (url) => `says that its issuer is "${url}/", and --issuer is "${url}"`,
  },
  "an issuer without the slash at its end": {
    told: () => ({ issuer: `${provider.url}/` }),
    log: (url) => `says that its issuer is "${url}", and --issuer is "${url}/"`,
  },
  "no discovery document": {
    told: () => ({ issuer: `${provider.url}/realms/none` }),
    kind: "unavailable",
    log: (url) => `"${url}/realms/none/.well-known/openid-configuration" answered 404`,
  },
  "a page in place of the discovery document": {
    change: () => Object.assign(provider.answers, { "/.well-known/openid-configuration": () => new Response("<p>") }),
    kind: "unavailable",
    log: () => `/.well-known/openid-configuration" answered 200, and its answer is not complete JSON in UTF-8`,
  },
  "a provider that is not there": {
    told: () => ({ issuer: "http://127.0.0.1:1" }),
    kind: "unavailable",
    log: () => `"http://127.0.0.1:1/.well-known/openid-configuration" cannot be reached: the connection was refused`,
  },
  "a token endpoint without TLS": {
    change: () => Object.assign(provider, { document: { token_endpoint: "http://id.example/token" } }),
    kind: "unavailable",
    log: (url) => `"${url}/.well-known/openid-configuration" has no token_endpoint that is an https URL`,
  },
  ...Object.fromEntries(
    ["javascript:alert(1)", "http://id.example/", 5, null, ["https://id.example/"]].flatMap((odd) =>
      ["authorization_endpoint", "token_endpoint", "jwks_uri"].map((name) => [
        `the ${name} ${JSON.stringify(odd)}`,
        {
          change: () => Object.assign(provider, { document: { [name]: odd } }),
          kind: "unavailable" as const,
          log: () => `/.well-known/openid-configuration" has no ${name} that is an https URL`,
        },
      ]),
    ),
  ),
  "a token endpoint that is out of order": {
    change: refusedWith(503, "temporarily_unavailable"),
    kind: "unavailable",
    log: (url) => `"${url}/token" answered 503`,
  },
  ...Object.fromEntries(
    ["/token", "/jwks"].flatMap((path): [string, Failing][] => [
      [
        `a redirect from ${path}`,
        {
          change: () => Object.assign(provider.answers, { [path]: () => Response.redirect(`${provider.url}/parrot`) }),
          kind: "unavailable",
          log: () => `${path}" answered 302, and its answer is a redirect`,
        },
      ],
      [
        `an answer of ${path} that is too long`,
        {
          change: () => Object.assign(provider.answers, { [path]: () => new Response(" ".repeat(256 * 1024 + 1)) }),
          kind: "unavailable",
          log: () => `${path}" answered 200, and its answer is longer than 256 KiB`,
        },
      ],
    ]),
  ),
  "keys that are away": {
    change: () => Object.assign(provider.answers, { "/jwks": () => new Response("", { status: 502 }) }),
    kind: "unavailable",
    log: (url) => `"${url}/jwks" answered 502`,
  },
  "an ID token for another client": {
    change: claims({ aud: "another" }),
    log: () => `the ID token has the aud "another", not "keyhole"`,
  },
  "an ID token for several, handed on": {
    change: claims({ aud: ["another", "keyhole"], azp: "another" }),
    log: () => `the ID token's azp is "another", not "keyhole"`,
  },
  "an ID token for us, made for another": {
    change: claims({ azp: "another" }),
    log: () => `the ID token's azp is "another", not "keyhole"`,
  },
  "an ID token for several that does not say for whom": {
    change: claims({ aud: ["another", "keyhole"] }),
    log: () => `the ID token's azp is missing, not "keyhole"`,
  },
  "an ID token that is not valid yet": {
    change: claims({ nbf: now + 3600 }),
    log: () => `the ID token has the nbf ${now + 3600}, and this machine's clock says `,
  },
  ...Object.fromEntries(
    ["", "ana-1\u0000", "ana-1\u200b", "ana\n-1", "\u001b[31mana", "\u202e1-ana", "\ud800", "a".repeat(513), 1].map(
      (sub) => [
        `the subject ${visible(JSON.stringify(sub)).slice(0, 20)}`,
        { change: claims({ sub }), log: () => "not 1 to 512 characters and no control characters" },
      ],
    ),
  ),
  "an ID token of another issuer": {
    change: claims({ iss: "https://evil.example" }),
    log: (url) => `the ID token has the iss "https://evil.example", not "${url}"`,
  },
  "an ID token that has expired": { change: claims({ exp: 1 }), log: () => "the ID token expired at 1, and this" },
  "an ID token without a time": { change: claims({ iat: undefined }), log: () => "the ID token has the iat missing" },
  "an ID token without a subject": {
    change: claims({ sub: undefined }),
    log: () => "the ID token has the sub missing",
  },
  "another nonce": { change: claims({ nonce: "x" }), log: () => "the ID token's nonce is not the one of this attempt" },
  "no ID token": {
    change: () => Object.assign(provider, { tokens: { id_token: undefined } }),
    log: () => "the token endpoint's answer has no ID token",
  },
  "an ID token under the name that Keyhole gives it": {
    change: () => Object.assign(provider, { tokens: { id_token: undefined, keyhole_id_token: "parrot" } }),
    log: () => "the token endpoint's answer has no ID token",
  },
  "an ID token in the browser's address": {
    back: { id_token: "parrot" },
    log: () => "its answer is refused: unsupported operation",
  },
  "an ID token that is none": {
    change: () => Object.assign(provider, { tokens: { id_token: "parrot" } }),
    log: () => "the ID token cannot be verified (ERR_JWS_INVALID)",
  },
  "an ID token by another key": {
    change: () => Object.assign(provider, { signedBy: provider.other }),
    log: () => "the ID token is not signed by a key that the provider publishes",
  },
  "an ID token signed with the client's secret": {
    change: () => {
      provider.header = { alg: "HS256" };
      provider.document = { id_token_signing_alg_values_supported: ["HS256", "none"] };
    },
    log: () => "the ID token is signed with an algorithm without a public key, or that the provider does not publish",
  },
  "another state": { back: { state: "parrot" }, log: () => 'unexpected "state" response parameter value' },
  "another issuer in the answer": {
    back: { iss: "https://evil.example" },
    log: (url) => `the answer's iss is "https://evil.example", not "${url}"`,
  },
  "no code": { back: { code: "" }, log: () => "no authorization code" },
  "no auth_time where it was asked for": {
    again: true,
    change: claims({ auth_time: undefined }),
    log: () => "the ID token has no auth_time, and max_age=0 asks for one from",
  },
  "an auth_time that is a text, where it was asked for": {
    again: true,
    change: claims({ auth_time: String(now) }),
    log: () => `the ID token has the auth_time "${now}", and max_age=0 asks for one from`,
  },
  "an old auth_time": {
    again: true,
    change: claims({ auth_time: now - 3600 }),
    log: () => `the ID token has the auth_time ${now - 3600}, and max_age=0 asks for one from`,
  },
};

describe("signs nobody in, and the log has the cause and no secret, with", () => {
  test.each(Object.entries(failing))("%s", async (_, { change, told, back, again, kind = "forbidden", log }) => {
    change?.();
    const failed = await failure(signedIn(told?.(), back, again));
    expect(failed.kind).toBe(kind);
    expect(failed.log).toContain(log(provider.url));
    expect(failed.log).toMatch(/^Signing in failed at the identity provider: [^\n]+\.$/);
    expect(failed.page).toStartWith("The identity provider d");
    const { authorization = "", form } = provider.sent ?? {};
    const secrets = ["parrot", clientSecret, authorization || "parrot", form?.get("code_verifier") ?? "parrot"];
    for (const secret of [...secrets, provider.nonce || "parrot"]) {
      expect(JSON.stringify([failed, reported])).not.toContain(secret);
    }
  });
});
