import { createHash, createHmac } from "node:crypto";
import { mayAsk } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import {
  askGiver,
  isMetadata,
  memberOf,
  metadataMs,
  metadataOrigin,
  NoToken,
  type TokenContext,
  type TokenSource,
} from "./token-giver.ts";

/*
 * Tokens of an AWS role: one signed request to AWS STS. The credentials that sign it are asked for each time, in the
 * order of AWS's own programs, without their files: environment, web identity, container, instance.
 */

/** What signs a request. */
export type AwsKeys = { readonly id: string; readonly secret: string; readonly session?: string | undefined };

/** @param readFile - reads a small text file; the setting names it in messages */
type AwsContext = TokenContext & { readonly readFile: (setting: string, path: string) => Promise<string> };

/**
 * Tokens of the role that this process has, for five minutes each.
 * @throws Problem
 * @see https://docs.aws.amazon.com/STS/latest/APIReference/API_GetWebIdentityToken.html
 */
export function awsTokens(context: AwsContext): TokenSource {
  const { env, audience } = context;
  const setting = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
  const metadata = metadataOrigin(setting, env[setting], "http://169.254.169.254");
  if (env["AWS_ENDPOINT_URL_STS"] && !mayAsk(env["AWS_ENDPOINT_URL_STS"])) {
    throw usageProblem("AWS_ENDPOINT_URL_STS must be an https URL.");
  }
  const instance = instanceOf(context, metadata);
  return async () => {
    const named = env["AWS_REGION"] || env["AWS_DEFAULT_REGION"];
    const region = named || (await instance("placement/region", (text) => text.trim() || undefined));
    if (!/^[a-z0-9-]{1,40}$/.test(region))
      throw new NoToken(sts, `the region ${JSON.stringify(region)} is none.`, false);
    const body = formOf({
      Action: "GetWebIdentityToken",
      "Audience.member.1": audience,
      DurationSeconds: "300",
      SigningAlgorithm: "ES384",
    });
    const keys = await keysOf(context, region, instance);
    return askSts(context, region, body, keys, (text) => memberOfXml(text, "WebIdentityToken"));
  };
}

/** The first credentials that there are. */
async function keysOf(context: AwsContext, region: string, instance: Instance): Promise<AwsKeys> {
  const { env, readFile } = context;
  const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret, AWS_SESSION_TOKEN: session } = env;
  if (id && secret) return { id, secret, session };
  const { AWS_WEB_IDENTITY_TOKEN_FILE: file, AWS_ROLE_ARN: role } = env;
  if (file && role) {
    const body = formOf({
      Action: "AssumeRoleWithWebIdentity",
      RoleArn: role,
      RoleSessionName: env["AWS_ROLE_SESSION_NAME"] || "keyhole",
      WebIdentityToken: await readFile("AWS_WEB_IDENTITY_TOKEN_FILE", file),
    });
    return askSts(context, region, body, undefined, (text) =>
      parseKeys((name) => memberOfXml(text, name), "SessionToken"),
    );
  }
  const relative = env["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"];
  const full = env["AWS_CONTAINER_CREDENTIALS_FULL_URI"];
  if (relative || full) return containerKeys(context, relative ? `http://169.254.170.2${relative}` : (full ?? ""));
  const roles = "iam/security-credentials/";
  const name = await instance(roles, (text) => /^[\w+=,.@-]{1,64}/.exec(text)?.[0]);
  return instance(`${roles}${name}`, keysInJson);
}

/** Of ECS, and of EKS Pod Identity. */
async function containerKeys({ env, timeoutMs, readFile }: AwsContext, text: string): Promise<AwsKeys> {
  const url = URL.parse(text);
  if (url === null || !isMetadata(url)) {
    throw usageProblem("AWS_CONTAINER_CREDENTIALS_FULL_URI must be http to a link-local address.");
  }
  const file = env["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"];
  const bearer = file
    ? await readFile("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
    : env["AWS_CONTAINER_AUTHORIZATION_TOKEN"];
  if (bearer && /[^!-~ ]/.test(bearer)) throw usageProblem("AWS_CONTAINER_AUTHORIZATION_TOKEN is no header.");
  const headers = bearer ? { Authorization: bearer } : {};
  return askGiver(container, url.href, { headers, timeoutMs: metadataMs(timeoutMs) }, keysInJson);
}

type Instance = <T>(path: string, take: (text: string) => T | undefined) => Promise<T>;

/** Reads the metadata of an instance, with a session of version 2. */
function instanceOf({ timeoutMs }: AwsContext, origin: string): Instance {
  const asked = { timeoutMs: metadataMs(timeoutMs) };
  return async (path, take) => {
    const begun = { "X-aws-ec2-metadata-token-ttl-seconds": "60" };
    const url = `${origin}/latest/api/token`;
    const token = await askGiver(imds, url, { ...asked, method: "PUT", headers: begun }, (text) => {
      return /^[!-~]{1,1024}$/.exec(text.trim())?.[0];
    });
    const headers = { "X-aws-ec2-metadata-token": token };
    return askGiver(imds, `${origin}/latest/meta-data/${path}`, { ...asked, headers }, take);
  };
}

function keysInJson(text: string): AwsKeys | undefined {
  return parseKeys((name) => memberOf(text, name), "Token");
}

function parseKeys(member: (name: string) => string | undefined, session: string): AwsKeys | undefined {
  const [id, secret] = [member("AccessKeyId"), member("SecretAccessKey")];
  return id && secret ? { id, secret, session: member(session) } : undefined;
}

/** A member of STS's answer: what is asked for holds no character that XML escapes. */
function memberOfXml(text: string, name: string): string | undefined {
  return new RegExp(`<${name}>([\\w.+/=-]+)</${name}>`).exec(text)?.[1];
}

function formOf(members: Readonly<Record<string, string>>): string {
  return new URLSearchParams({ ...members, Version: "2011-06-15" }).toString();
}

/** @param keys - undefined for a request that is not signed */
async function askSts<T>(
  { env, timeoutMs }: AwsContext,
  region: string,
  body: string,
  keys: AwsKeys | undefined,
  take: (text: string) => T | undefined,
): Promise<T> {
  const usual = `https://sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
  const url = new URL(env["AWS_ENDPOINT_URL_STS"] || usual);
  const type = { "content-type": "application/x-www-form-urlencoded" };
  const headers =
    keys === undefined ? type : signed({ host: url.host, ...type }, body, keys, { region, service: "sts" });
  return askGiver(sts, `${url.origin}/`, { method: "POST", headers, body, timeoutMs }, take);
}

/**
 * The headers of a POST to the root of a host, with the signature of AWS, version 4.
 * @param headers - by lower-case name
 * @see https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
 */
export function signed(
  headers: Readonly<Record<string, string>>,
  body: string,
  { id, secret, session }: AwsKeys,
  { region, service, now = new Date() }: { readonly region: string; readonly service: string; readonly now?: Date },
): Record<string, string> {
  const at = now.toISOString().replace(/[-:]|\.\d+/g, "");
  const all: Record<string, string> = {
    ...headers,
    "x-amz-date": at,
    ...(session && { "x-amz-security-token": session }),
  };
  const names = Object.keys(all).sort();
  const lines = names.map((name) => `${name}:${all[name]}`);
  const canonical = ["POST", "/", "", ...lines, "", names.join(";"), sha256(body)].join("\n");
  const scope = [at.slice(0, 8), region, service, "aws4_request"];
  const text = ["AWS4-HMAC-SHA256", at, scope.join("/"), sha256(canonical)].join("\n");
  const key = scope.reduce<string | Buffer>((previous, part) => hmac(previous, part).digest(), `AWS4${secret}`);
  const credential = `Credential=${id}/${scope.join("/")}, SignedHeaders=${names.join(";")}`;
  const authorization = `AWS4-HMAC-SHA256 ${credential}, Signature=${hmac(key, text).digest("hex")}`;
  return { ...all, authorization };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function hmac(key: string | Buffer, text: string) {
  return createHmac("sha256", key).update(text);
}

const hops = "In a container, the instance's http-put-response-hop-limit must be 2.";
const imds = {
  name: "The metadata server of AWS",
  passing: [404],
  hints: { 404: "Has this instance a role?", timeout: hops },
};
const container = { name: "The credentials endpoint of AWS" };
const sts = {
  name: "AWS STS",
  code: /<Code>([A-Za-z]{1,60})<\/Code>/,
  passing: ["Throttling", "ThrottlingException", "RequestLimitExceeded", "ExpiredToken", "ExpiredTokenException"],
  hints: { AccessDenied: "The role needs the permission sts:GetWebIdentityToken for this audience." },
};
