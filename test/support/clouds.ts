/**
 * The endpoints by which AWS, Google and Azure tell a machine who it is, on one port of this machine, and as strict as
 * their documents say: the headers are needed, and the session of AWS comes first. No cloud is reachable from a test.
 */
export function startClouds(tokenOf: (audience: string) => string = () => "a.b.c") {
  const asked: string[] = [];
  /** Answers in place of an endpoint, by its path, unless it returns undefined. */
  const answers = new Map<string, (request: Request) => Response | Promise<Response> | undefined>();
  const refused = (status: number) => new Response("no", { status });
  const keys = { AccessKeyId: secrets.id, SecretAccessKey: secrets.secret, Token: secrets.session };
  const role = "/latest/meta-data/iam/security-credentials/";
  const inSession = (text: string) => (request: Request) => {
    return request.headers.get("x-aws-ec2-metadata-token") === secrets.imds ? new Response(text) : refused(401);
  };
  const endpoints: Record<string, (request: Request, url: URL) => Response | Promise<Response>> = {
    "GET /computeMetadata/v1/instance/service-accounts/default/identity": ({ headers }, { searchParams }) => {
      if (headers.get("metadata-flavor") !== "Google") return refused(403);
      return new Response(`${tokenOf(searchParams.get("audience") ?? "")}\n`, {
        headers: { "Metadata-Flavor": "Google" },
      });
    },
    "GET /metadata/identity/oauth2/token": ({ headers }, { searchParams }) => {
      const isAsked = headers.get("metadata") === "true" && searchParams.get("api-version") === "2018-02-01";
      if (!isAsked || headers.has("x-forwarded-for")) return refused(400);
      const token = tokenOf(searchParams.get("resource") ?? "");
      return Response.json({ access_token: token, expires_in: "86400", token_type: "Bearer" });
    },
    "PUT /latest/api/token": ({ headers }) => {
      const isAsked =
        Number(headers.get("x-aws-ec2-metadata-token-ttl-seconds")) > 0 && !headers.has("x-forwarded-for");
      return isAsked ? new Response(secrets.imds) : refused(403);
    },
    "GET /latest/meta-data/placement/region": inSession("eu-central-1"),
    [`GET ${role}`]: inSession("web"),
    [`GET ${role}web`]: inSession(JSON.stringify({ Code: "Success", Type: "AWS-HMAC", ...keys })),
    "GET /v2/credentials/1": ({ headers }) => {
      return headers.get("authorization") === secrets.container
        ? Response.json({ RoleArn: "x", ...keys })
        : refused(401);
    },
    "POST /": async (request) => {
      const form = new URLSearchParams(await request.text());
      if (form.get("Action") === "AssumeRoleWithWebIdentity") {
        if (form.get("WebIdentityToken") !== secrets.web || request.headers.has("authorization")) return refused(400);
        const { Token, ...others } = keys;
        const members = Object.entries({ ...others, SessionToken: Token }).map(
          ([name, text]) => `<${name}>${text}</${name}>`,
        );
        return xml(`<Credentials>${members.join("")}</Credentials>`);
      }
      const scope = new RegExp(`^AWS4-HMAC-SHA256 Credential=${secrets.id}/\\d{8}/eu-central-1/sts/aws4_request, `);
      const isSigned =
        scope.test(request.headers.get("authorization") ?? "") &&
        request.headers.get("x-amz-security-token") === secrets.session;
      if (!isSigned) return new Response(errorOf("InvalidClientTokenId"), { status: 403 });
      const isAsked = form.get("Action") === "GetWebIdentityToken" && form.get("SigningAlgorithm") === "ES384";
      if (!isAsked || form.get("DurationSeconds") !== "300")
        return new Response(errorOf("ValidationError"), { status: 400 });
      return xml(`<WebIdentityToken>${tokenOf(form.get("Audience.member.1") ?? "")}</WebIdentityToken>`);
    },
  };
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => {
      const url = new URL(request.url);
      asked.push(`${request.method} ${url.pathname}`);
      const own = answers.get(url.pathname);
      return own?.(request) ?? endpoints[`${request.method} ${url.pathname}`]?.(request, url) ?? refused(404);
    },
  });
  const host = `127.0.0.1:${server.port}`;
  const origin = `http://${host}`;
  const sts = { AWS_ENDPOINT_URL_STS: origin };
  return {
    origin,
    asked,
    answers,
    /** What each cloud's own programs would go by. */
    env: {
      gcp: { GCE_METADATA_HOST: host },
      azure: { AZURE_POD_IDENTITY_AUTHORITY_HOST: origin },
      aws: { ...sts, AWS_EC2_METADATA_SERVICE_ENDPOINT: origin },
      "aws in a container": {
        ...sts,
        AWS_REGION: "eu-central-1",
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `${origin}/v2/credentials/1`,
        AWS_CONTAINER_AUTHORIZATION_TOKEN: secrets.container,
      },
      "aws in Lambda": {
        ...sts,
        AWS_REGION: "eu-central-1",
        AWS_ACCESS_KEY_ID: secrets.id,
        AWS_SECRET_ACCESS_KEY: secrets.secret,
        AWS_SESSION_TOKEN: secrets.session,
      },
      "aws by web identity": { ...sts, AWS_REGION: "eu-central-1", AWS_ROLE_ARN: "arn:aws:iam::123456789012:role/web" },
    } satisfies Record<string, Record<string, string>>,
    [Symbol.asyncDispose]: async () => server.stop(true),
  };
}

/** The role of AWS that {@link cloudTokens} and docs/aws.md name. */
export const roleOfAws = "arn:aws:iam::123456789012:role/web";

export type CloudToken = {
  readonly alg: string;
  readonly claims: Readonly<Record<string, unknown>> & { readonly iss: string; readonly aud: string };
  /** The claim that nobody else can have. */
  readonly pin: string;
  /** How old one may be. */
  readonly ageS: number;
};
const tenant = "0b9c6d1e-1111-4000-8000-000000000001";

/** What the tokens of a machine say, by the clouds' documents, without the times. */
export const cloudTokens = {
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles_providers_outbound_token_claims.html
  AWS: {
    alg: "ES384",
    claims: {
      iss: "https://abc12345-def4-5678-90ab-cdef12345678.tokens.sts.global.api.aws",
      aud: "https://keyhole.example.com",
      sub: roleOfAws,
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
      aud: "api://5e6f7081-5555-4000-8000-000000000005",
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
} satisfies Readonly<Record<string, CloudToken>>;

/** What no output may have. */
export const secrets = {
  id: "AKIDEXAMPLE",
  secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  session: "session+of/aws==",
  imds: "session-of-the-instance",
  container: "bearer-of-the-container",
  web: "web.identity.token",
};

/** What STS says in place of a token. */
export function errorOf(code: string): string {
  return `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>no</Message></Error></ErrorResponse>`;
}

function xml(inner: string): Response {
  const text = `<Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Result>${inner}</Result></Response>`;
  return new Response(text, { headers: { "Content-Type": "text/xml" } });
}
