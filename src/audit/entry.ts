import type { Environment } from "../names.ts";

export type AuditAction = "variables.read" | "accounts.read" | "file.read" | "secrets.read";

/** What an entry says: who was given what, when, and where it was sent. Never a value, a key, a digest or a checksum. */
export type AuditEntry = {
  readonly keyId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string;
  readonly project: string;
  /** Null where an account read named none. */
  readonly environment: Environment | null;
  readonly action: AuditAction;
  /** The names returned: of variables, of accounts, or one file's path. */
  readonly names: readonly string[];
  /** The caller's word, which is why it identifies nothing. */
  readonly requestId: string;
  /** The socket's peer. */
  readonly clientAddress: string;
  /** At most 256 printable ASCII characters. */
  readonly userAgent: string;
};

/** The user agent as an entry holds it: what is not printable ASCII becomes `?`, and the rest is cut. */
export function printableUserAgent(header: string | null): string {
  return (header ?? "").slice(0, 256).replace(/[^\x20-\x7e]/g, "?");
}
