import type { Environment } from "../names.ts";

/** The endpoint that returned values. */
export type AuditAction = "variables.read" | "accounts.read" | "file.read" | "secrets.read";

/** Who received what, and at which address. Never holds a value, a key, a digest or a checksum. */
export type AuditEntry = {
  readonly keyId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string;
  readonly project: string;
  /** Null if an account read named no environment. */
  readonly environment: Environment | null;
  readonly action: AuditAction;
  /** What was returned: names of variables, names of accounts, or the path of one file. */
  readonly names: readonly string[];
  /** May be chosen by the caller, so it identifies nothing. */
  readonly requestId: string;
  /** Address of the socket's peer. */
  readonly clientAddress: string;
  /** At most 256 printable ASCII characters. */
  readonly userAgent: string;
};

/** The first 256 characters of a user agent, with `?` for all that is not printable ASCII. */
export function printableUserAgent(header: string | null): string {
  return (header ?? "").slice(0, 256).replace(/[^\x20-\x7e]/g, "?");
}
