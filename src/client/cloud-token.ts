import {
  askGiver,
  isToken,
  memberOf,
  metadataMs,
  metadataOrigin,
  type TokenContext,
  type TokenSource,
} from "./token-giver.ts";

/* Tokens of machines at Google and Azure: one GET to the metadata server of the machine. */

/**
 * Tokens of the machine's service account at Google.
 * @see https://cloud.google.com/compute/docs/instances/verifying-instance-identity
 */
export function googleTokens({ env, audience, timeoutMs }: TokenContext): TokenSource {
  const host = env["GCE_METADATA_HOST"];
  const origin = metadataOrigin("GCE_METADATA_HOST", host && `http://${host}`, usual);
  const path = "/computeMetadata/v1/instance/service-accounts/default/identity";
  const url = `${origin}${path}?audience=${encodeURIComponent(audience)}`;
  const asked = { headers: { "Metadata-Flavor": "Google" }, timeoutMs: metadataMs(timeoutMs) };
  return () => askGiver(google, url, asked, (text) => (isToken(text.trim()) ? text.trim() : undefined));
}

const usual = "http://169.254.169.254";
const google = {
  name: "The metadata server of Google",
  passing: [404],
  hints: { 404: "Has this machine a service account?" },
};

/**
 * Tokens of the machine's managed identity at Azure; AZURE_CLIENT_ID names one of several.
 * @see https://learn.microsoft.com/en-us/entra/identity/managed-identities-azure-resources/how-to-use-vm-token
 */
export function azureTokens({ env, audience, timeoutMs }: TokenContext): TokenSource {
  const authority = "AZURE_POD_IDENTITY_AUTHORITY_HOST";
  const { AZURE_CLIENT_ID: client } = env;
  const url = new URL("/metadata/identity/oauth2/token", metadataOrigin(authority, env[authority], usual));
  url.searchParams.set("api-version", "2018-02-01");
  url.searchParams.set("resource", audience);
  if (client) url.searchParams.set("client_id", client);
  const asked = { headers: { Metadata: "true" }, timeoutMs: metadataMs(timeoutMs) };
  return () => askGiver(azure, url.href, asked, (text) => memberOf(text, "access_token"));
}

const azure = {
  name: "The metadata server of Azure",
  passing: [404, 410],
  hints: { 400: "Has this machine an identity, and is the audience the id of an application in its tenant?" },
};
