/**
 * The endpoints by which AWS, Google and Azure tell a machine who it is, on one port of this machine, and as strict as
 * their documents say: the headers are needed, and the session of AWS comes first. No cloud is reachable from a test.
 */
export function startClouds(tokenOf: (audience: string) => string = () => "a.b.c") {
  const asked: string[] = [];
  /** Answers in place of an endpoint, by its path. */
  const answers = new Map<string, (request: Request) => Response | Promise<Response>>();
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
  const sts = { AWS_ENDPOINT_URL_STS: `http://${host}` };
  return {
    asked,
    answers,
    /** What each cloud's own programs would go by. */
    env: {
      gcp: { GCE_METADATA_HOST: host },
      azure: { AZURE_POD_IDENTITY_AUTHORITY_HOST: `http://${host}` },
      aws: { ...sts, AWS_EC2_METADATA_SERVICE_ENDPOINT: `http://${host}` },
      "aws in a container": {
        ...sts,
        AWS_REGION: "eu-central-1",
        AWS_CONTAINER_CREDENTIALS_FULL_URI: `http://${host}/v2/credentials/1`,
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
