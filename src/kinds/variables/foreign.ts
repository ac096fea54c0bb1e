/*
 * Values of other tools: encrypted text, and references to where a value is. An application that gets one would take it
 * for its password.
 */

const readAs: readonly (readonly [pattern: RegExp, is: string])[] = [
  [/^ENC\[AES256_GCM,data:.*\]$/s, "is still encrypted by SOPS: run sops decrypt first"],
  [/^encrypted:[A-Za-z0-9+/]{80,}={0,2}$/, "is still encrypted by dotenvx: run dotenvx get first"],
  [/^vault:v\d+:\S+$/, "is still encrypted by Vault: decrypt it first"],
  [/^\$ANSIBLE_VAULT;/, "is still encrypted by Ansible: run ansible-vault decrypt first"],
  [/^(?:\{\{\s*)?op:\/\/[^/\n]+\/[^/\n]+\/[^\n]+$/, "is a reference of 1Password: run op inject first"],
  [/^ref\+[a-z0-9]+:\/\//, "is a reference of vals: run vals eval first"],
  // `vault:8200` is a host and its port.
  [/^(?:>>)?vault:(?!\d+(?:\/|$))[^\s:]*[/#]\S+$/, "is a reference to Vault: read its value first"],
];
const metadata: readonly (readonly [pattern: RegExp, is: string])[] = [
  [
    /^sops_(?:mac|version|lastmodified|shamir_threshold|(?:un)?encrypted_|mac_only_|(?:age|pgp|kms|gcp_kms|azure_kv|hc_vault)__)/,
    "belongs to a file that is still encrypted by SOPS: run sops decrypt first",
  ],
  [/^DOTENV_PUBLIC_KEY(?:_|$)/, "belongs to a file that is encrypted by dotenvx: run dotenvx get first"],
];

/** Says which other tool a variable is text of. */
export function findForeign(name: string, value: string): string | undefined {
  const text = value.trim();
  const found = metadata.find(([pattern]) => pattern.test(name)) ?? readAs.find(([pattern]) => pattern.test(text));
  return found?.[1];
}

/** Whether this is a key in PEM whose line breaks are written as a backslash and an n, so that no program reads it. */
export function isEscapedPem(value: string): boolean {
  return value.startsWith("-----BEGIN ") && value.includes("\\n");
}
