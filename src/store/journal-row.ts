/** An audit entry as its table holds it. The table's definition says what the columns mean. */
export type JournalRow = {
  readonly lane: string;
  readonly seq: number;
  readonly at: number;
  readonly keyId: string;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string;
  readonly project: string;
  readonly environment: string | null;
  readonly action: string;
  readonly names: string;
  /** `names` as a JSON string, if the caller has it already. */
  readonly namesJson?: string;
  readonly count: number;
  readonly requestId: string;
  readonly clientAddress: string;
  readonly userAgent: string;
  readonly mac: Uint8Array;
};

/** How a batch ended: durable, refused (nothing of it was written), or unknown (the connection failed around the commit). */
export type AppendResult = {
  readonly outcome: "durable" | "refused" | "unknown";
  /** The database's or the driver's code where it failed. */
  readonly reason?: string;
};

/** Column, field and PostgreSQL type of each. */
export const journalColumns = [
  ["lane", "lane", "text"],
  ["seq", "seq", "bigint"],
  ["at", "at", "bigint"],
  ["key_id", "keyId", "text"],
  ["organization_id", "organizationId", "text"],
  ["organization", "organization", "text"],
  ["project_id", "projectId", "text"],
  ["project", "project", "text"],
  ["environment", "environment", "text"],
  ["action", "action", "text"],
  ["names", "names", "text"],
  ["count", "count", "integer"],
  ["request_id", "requestId", "text"],
  ["client_address", "clientAddress", "text"],
  ["user_agent", "userAgent", "text"],
  ["mac", "mac", "bytea"],
] as const satisfies readonly (readonly [string, keyof JournalRow, string])[];
