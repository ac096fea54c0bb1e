import { sql } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import * as sqlite from "drizzle-orm/sqlite-core";

/*
 * The tables, described once for both databases. A kit holds what differs: column types and the spelling of checks.
 * `drizzle/` holds the SQL that drizzle-kit made of this (`bun run generate`), with storage and STRICT added by hand.
 */

/** Text in byte order, as in SQLite. Comparisons in a language's order, PostgreSQL's default, take ten times longer. */
const pgText = pg.customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });
const pgBytes = pg.customType<{ data: Buffer; driverData: Uint8Array }>({
  dataType: () => "bytea",
  toDriver: (bytes) => bytes,
  fromDriver: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
});

const postgresKit = {
  ...pg,
  table: pg.pgTable,
  text: pgText,
  bytes: pgBytes,
  /** Whole numbers to 2⁵³: versions, sequence numbers, epoch milliseconds. */
  bigint: (name: string) => pg.bigint(name, { mode: "number" }),
  check: (name: string, rule: string) => pg.check(name, sql.raw(rule)),
  slugRule: "slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'",
  /** Whether a listing has a variable that is marked for rotation. */
  markedRule: sql`strpos(listing, '"rotateBy":"') > 0`,
};

const sqliteKit = {
  ...sqlite,
  table: sqlite.sqliteTable,
  bytes: (name: string) => sqlite.blob(name, { mode: "buffer" }),
  bigint: (name: string) => sqlite.integer(name),
  check: (name: string, rule: string) => sqlite.check(name, sql.raw(rule)),
  slugRule: "length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*'",
  markedRule: sql`instr(listing, '"rotateBy":"') > 0`,
} as unknown as typeof postgresKit;

export const postgresTables = describe(postgresKit);
/** Typed as PostgreSQL's: the suites that run on both databases are what makes that honest. */
export const sqliteTables = describe(sqliteKit);
export type Tables = typeof postgresTables;

function describe({ table, text, bytes, integer, bigint, ...kit }: typeof postgresKit) {
  const organizations = table(
    "organizations",
    {
      id: text("id").primaryKey(),
      slug: text("slug").notNull(),
      name: text("name").notNull(),
      plan: text("plan").$type<"free" | "pro">().notNull(),
      createdAt: bigint("created_at").notNull(),
      /** HMAC over id and slug (`serve/access/grant.ts`). Null only while a database of 0.2.0 is brought up to date. */
      seal: bytes("seal"),
    },
    (t) => [
      kit.uniqueIndex("organizations_slug").on(t.slug),
      kit.check("organizations_slug_rule", kit.slugRule),
      kit.check("organizations_plan_rule", "plan in ('free', 'pro')"),
    ],
  );

  const organizationId = () =>
    text("organization_id")
      .notNull()
      .references(() => organizations.id);

  const projects = table(
    "projects",
    {
      id: text("id").primaryKey(),
      organizationId: organizationId(),
      slug: text("slug").notNull(),
      name: text("name").notNull(),
      /** How many are in exactly the environments of mask 1 to 7: a JSON array. Any key's counts are sums of it. */
      variableCounts: text("variable_counts").notNull(),
      accountCounts: text("account_counts").notNull(),
      fileCounts: text("file_counts").notNull(),
      /** When each environment last changed: a JSON array of three, in epoch milliseconds. */
      changedAt: text("changed_at").notNull(),
      createdAt: bigint("created_at").notNull(),
      /** The environments that it uses: a mask. The others have their empty sets all the same. */
      environments: integer("environments").notNull().default(7),
    },
    (t) => [
      kit.uniqueIndex("projects_slug").on(t.organizationId, t.slug),
      kit.check("projects_slug_rule", kit.slugRule),
    ],
  );

  const projectId = () =>
    text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" });

  /** A key, wrapped by a root key. */
  const wrappedKey = () => ({
    rootId: text("root_id").notNull(),
    wrapped: bytes("wrapped").notNull(),
    createdAt: bigint("created_at").notNull(),
  });

  /** Keys that belong to the whole installation. */
  const systemKeys = table("system_keys", { purpose: text("purpose").primaryKey(), ...wrappedKey() }, () => [
    kit.check("system_keys_rule", "purpose in ('pepper', 'grant', 'audit', 'listing')"),
  ]);

  /** A project's data keys by generation. New values are sealed under the highest. */
  const dataKeys = table(
    "data_keys",
    {
      projectId: projectId(),
      generation: integer("generation").notNull(),
      ...wrappedKey(),
    },
    (t) => [
      kit.primaryKey({ columns: [t.projectId, t.generation] }),
      kit.check("data_keys_generation_rule", "generation >= 1"),
    ],
  );

  const setVersion = () => ({
    projectId: projectId(),
    kind: text("kind").notNull(),
    environment: text("environment").$type<"development" | "staging" | "production">().notNull(),
    /** From 1; every write raises it. */
    version: bigint("version").notNull(),
  });

  /** What a project holds of one kind in one environment (`seal/set.ts`). A project has nine, from its creation on. */
  const sets = table(
    "sets",
    {
      ...setVersion(),
      /** Of the data key that sealed the values; 0 for files, whose contents are sealed one by one. */
      generation: integer("generation").notNull(),
      listingMac: bytes("listing_mac").notNull(),
      /** JSON: the items without their values. */
      listing: text("listing").notNull(),
      /** The values; null for files. Large columns come last: SQLite walks over what precedes a column. */
      sealed: bytes("sealed"),
    },
    (t) => [
      kit.primaryKey({ columns: [t.projectId, t.kind, t.environment] }),
      kit.index("sets_marked").on(t.projectId).where(kit.markedRule),
      kit.check("sets_kind_rule", "kind in ('variables', 'accounts', 'files')"),
      kit.check("sets_environment_rule", "environment in ('development', 'staging', 'production')"),
    ],
  );

  /** Every version of a set: who wrote it, and once it was replaced, the version itself. Only commands read it. */
  const setVersions = table(
    "set_versions",
    {
      ...setVersion(),
      at: bigint("at").notNull(),
      /** As in the audit. */
      actor: text("actor").notNull(),
      /** JSON: which names were added, changed and deleted. */
      names: text("names").notNull(),
      /** HMAC under the listing key over all of the above and `listing_mac`. */
      mac: bytes("mac").notNull(),
      /** The row of `sets` as it was replaced. While it is there, only `listing_mac`; the others are null. */
      generation: integer("generation"),
      listingMac: bytes("listing_mac"),
      listing: text("listing"),
      sealed: bytes("sealed"),
    },
    (t) => [kit.primaryKey({ columns: [t.projectId, t.kind, t.environment, t.version] })],
  );

  /** The contents that the listings of files refer to by id. */
  const fileContents = table(
    "file_contents",
    {
      id: text("id").primaryKey(),
      projectId: projectId(),
      /** Bytes of plaintext. */
      size: integer("size").notNull(),
      generation: integer("generation").notNull(),
      sealed: bytes("sealed").notNull(),
    },
    (t) => [
      kit.index("file_contents_project").on(t.projectId),
      kit.foreignKey({
        name: "file_contents_data_key",
        columns: [t.projectId, t.generation],
        foreignColumns: [dataKeys.projectId, dataKeys.generation],
      }),
    ],
  );

  const apiKeys = table(
    "api_keys",
    {
      id: text("id").primaryKey(),
      organizationId: organizationId(),
      name: text("name").notNull(),
      /** HMAC under the pepper: of the key's text, or of a trust's id, which nobody can present as a key. */
      digest: bytes("digest").notNull(),
      /** Of a trust only: which tokens stand in place of a key, as JSON (`serve/access/token.ts`). */
      trust: text("trust"),
      /** Bits, in the order of `serve/access/grant.ts`. */
      surfaces: integer("surfaces").notNull(),
      resources: integer("resources").notNull(),
      environments: integer("environments").notNull(),
      /** JSON object of slug to project id; null: every project of the organization. */
      projects: text("projects"),
      expiresAt: bigint("expires_at"),
      revokedAt: bigint("revoked_at"),
      createdAt: bigint("created_at").notNull(),
      /** HMAC over all of the above except name, revocation and creation. */
      grantSeal: bytes("grant_seal").notNull(),
      /** How many times as large its buckets are, which the seal covers; null: once. */
      rate: integer("rate"),
      /** From which addresses it may be used: ranges with commas, which the seal covers; null: from everywhere. */
      from: text("ranges"),
      /** Of a trust only: what a token finds it by (`foundByOf` in `serve/access/token.ts`). */
      foundBy: text("found_by"),
    },
    (t) => [
      kit.uniqueIndex("api_keys_digest").on(t.digest),
      kit.index("api_keys_organization").on(t.organizationId),
      kit.index("api_keys_expiry").on(t.expiresAt).where(sql`revoked_at is null`),
      kit.index("api_keys_found_by").on(t.foundBy).where(sql`found_by is not null`),
      kit.check("api_keys_surfaces_rule", "surfaces between 1 and 7"),
      kit.check("api_keys_resources_rule", "resources between 0 and 31"),
      kit.check("api_keys_environments_rule", "environments between 1 and 7"),
    ],
  );

  /** When a key or a trust was last used. */
  const keyUses = table("key_uses", {
    keyId: text("key_id")
      .primaryKey()
      .references(() => apiKeys.id, { onDelete: "cascade" }),
    lastUsedAt: bigint("last_used_at").notNull(),
  });

  /**
   * Variables that machines ask people for. A row is neither sealed nor believed: approval writes exactly what the
   * approver saw.
   */
  const variableRequests = table(
    "variable_requests",
    {
      id: text("id").primaryKey(),
      organizationId: organizationId(),
      projectId: projectId(),
      environment: text("environment").$type<"development" | "staging" | "production">().notNull(),
      name: text("name").notNull(),
      reason: text("reason").notNull(),
      keyId: text("key_id").notNull(),
      /** Numbers the requests of an organization: of two filed at once one gets the number, the other counts again. */
      number: bigint("number").notNull(),
      /** One that is pending after `expiresAt` has expired. */
      status: text("status").$type<"pending" | "approved" | "rejected">().notNull(),
      createdAt: bigint("created_at").notNull(),
      expiresAt: bigint("expires_at").notNull(),
      decidedAt: bigint("decided_at"),
      decidedBy: text("decided_by"),
      decisionReason: text("decision_reason"),
    },
    (t) => [
      kit.uniqueIndex("variable_requests_number").on(t.organizationId, t.number),
      kit.index("variable_requests_expiry").on(t.organizationId, t.expiresAt),
      kit.index("variable_requests_project").on(t.projectId),
      kit.check("variable_requests_status_rule", "status in ('pending', 'approved', 'rejected')"),
    ],
  );

  /**
   * What left, for whom, when: a row for each commit (`record/segment.ts`). It refers to no other table, so that it
   * outlives projects. PostgreSQL partitions it. The view `audit_entries`, in `drizzle/`, has a row for each entry.
   */
  const auditSegments = table(
    "audit_segments",
    {
      /** A chain of segments: one for each writer's run of uninterrupted success. */
      lane: text("lane").notNull(),
      firstSeq: bigint("first_seq").notNull(),
      lastSeq: bigint("last_seq").notNull(),
      at: bigint("at").notNull(),
      /** HMAC under the audit key over the lane's previous mac and this row. */
      mac: bytes("mac").notNull(),
      /** JSON, kept as the text the mac was made over: what filters look for, and the entries (`record/segment.ts`). */
      texts: text("texts").notNull(),
      entries: text("entries").notNull(),
    },
    (t) => [kit.primaryKey({ columns: [t.lane, t.firstSeq, t.at] }), kit.index("audit_segments_at").on(t.at)],
  );

  /** All versions of the persons and their rights (`serve/access/roster.ts`). In force is the one that the head names. */
  const rosters = table(
    "rosters",
    {
      id: text("id").primaryKey(),
      /** From 1; every change raises it. */
      version: bigint("version").notNull(),
      /** JSON: the persons. */
      listing: text("listing").notNull(),
      /** HMAC under the grant key over all of the above. */
      mac: bytes("mac").notNull(),
    },
    (t) => [kit.uniqueIndex("rosters_version").on(t.version)],
  );

  /** The end of the lane that commands share. A command locks this row before it writes the next segment. */
  const auditHeads = table("audit_heads", {
    lane: text("lane").primaryKey(),
    seq: bigint("seq").notNull(),
    at: bigint("at").notNull(),
    mac: bytes("mac").notNull(),
    /** The id of the version in force; null if there never was one. */
    roster: text("roster"),
    /**
     * HMAC under the audit key over all of the above (`record/head.ts`). Null if it did not fit: then no roster is
     * trusted.
     */
    seal: bytes("seal"),
  });

  /** The last entry that retention dropped of each lane, and its segment's mac, from which the rest continues. */
  const auditCheckpoints = table("audit_checkpoints", {
    lane: text("lane").primaryKey(),
    seq: bigint("seq").notNull(),
    mac: bytes("mac").notNull(),
    /** HMAC under the audit key over all of the above: nobody can pass off a removal in SQL as retention. */
    seal: bytes("seal").notNull(),
  });

  /** The Merkle tree over what all lanes wrote (`record/tree.ts`), in the notary's order. Retention keeps it. */
  const auditLeaves = table(
    "audit_leaves",
    {
      /** From 0, without gaps. A primary key, so that of two notaries one appends and the other reads again. */
      leaf: bigint("leaf").primaryKey(),
      lane: text("lane").notNull(),
      /** Its last and first entry. */
      lastSeq: bigint("last_seq").notNull(),
      firstSeq: bigint("first_seq").notNull(),
      /** The leaf's hash, and those of the nodes that it completes, by level: 32 bytes each. */
      hashes: bytes("hashes").notNull(),
    },
    (t) => [kit.uniqueIndex("audit_leaves_segment").on(t.lane, t.lastSeq)],
  );

  /** The heads of the tree that the notary signed. */
  const auditCheckpointsSigned = table("audit_checkpoints_signed", {
    /** How many leaves. */
    size: bigint("size").primaryKey(),
    root: bytes("root").notNull(),
    at: bigint("at").notNull(),
    /** As others verify it (`record/tree-note.ts`). */
    note: text("note").notNull(),
  });

  /** Signatures of these heads by witnesses. */
  const auditCosignatures = table(
    "audit_cosignatures",
    {
      size: bigint("size").notNull(),
      /** Its verifier key. */
      witness: text("witness").notNull(),
      at: bigint("at").notNull(),
      /** The line that a note takes. */
      line: text("line").notNull(),
    },
    (t) => [kit.primaryKey({ columns: [t.witness, t.size] })],
  );

  /**
   * What the tables hold and the record does not say, as the notary found it (`record/record.ts`). A server takes no key
   * and serves no set that is named here, until an operator accepts it.
   */
  const auditExceptions = table("audit_exceptions", {
    /** `key:ID`, `set:PROJECT/KIND/ENVIRONMENT`, `project:ID`, `plan:ORGANIZATION` or `roster`. */
    subject: text("subject").primaryKey(),
    /** What the record says, and what the table held. */
    recorded: text("recorded").notNull(),
    found: text("found").notNull(),
    at: bigint("at").notNull(),
    /** HMAC under the audit key over all of the above. */
    seal: bytes("seal").notNull(),
  });

  /** The keys that sign these heads, wrapped like system keys. The highest signs, and the others stay listed. */
  const auditSigners = table("audit_signers", {
    /** From 1. */
    generation: integer("generation").primaryKey(),
    publicKey: bytes("public_key").notNull(),
    ...wrappedKey(),
  });

  /**
   * When machines last read what (`record/last-reads.ts`): a row for each name that was asked for, and one without a name
   * for reads of a whole set. The notary keeps it. It is a count, and not sealed: the audit is the proof.
   */
  const lastReads = table(
    "last_reads",
    {
      projectId: projectId(),
      kind: text("kind").notNull(),
      environment: text("environment").$type<"development" | "staging" | "production">().notNull(),
      name: text("name").notNull(),
      at: bigint("at").notNull(),
    },
    (t) => [kit.primaryKey({ columns: [t.projectId, t.kind, t.environment, t.name] })],
  );

  /** Which reads `last_reads` has: one row, from the notary's first round on. */
  const lastReadsKnown = table(
    "last_reads_known",
    {
      id: integer("id").primaryKey(),
      /** 0 if the reads of all segments are stored, -1 if not. */
      size: bigint("size").notNull(),
      /** The record begins here: earlier reads are not known. */
      sinceAt: bigint("since_at").notNull(),
      /** Before this, entries did not say whether names were asked for, and count as reads of the whole set. */
      byNameSinceAt: bigint("by_name_since_at").notNull(),
    },
    () => [kit.check("last_reads_known_rule", "id = 1")],
  );

  /**
   * How many answers with values each job got, if its trust bounds them (`record/journal.ts`). Counts are not sealed.
   */
  const jobReads = table(
    "job_reads",
    {
      trustId: text("trust_id").notNull(),
      /** SHA-256 of the claims that name the job (`serve/access/token.ts`). */
      job: bytes("job").notNull(),
      reads: bigint("reads").notNull(),
      /** From then on, the issuer gives the job no token. */
      endsAt: bigint("ends_at").notNull(),
    },
    (t) => [kit.primaryKey({ columns: [t.trustId, t.job] }), kit.index("job_reads_end").on(t.endsAt)],
  );

  return {
    organizations,
    projects,
    systemKeys,
    dataKeys,
    sets,
    setVersions,
    fileContents,
    apiKeys,
    keyUses,
    variableRequests,
    rosters,
    auditSegments,
    auditHeads,
    auditCheckpoints,
    auditLeaves,
    auditCheckpointsSigned,
    auditCosignatures,
    auditExceptions,
    auditSigners,
    lastReads,
    lastReadsKnown,
    jobReads,
  };
}

type ProjectColumns = (typeof postgresTables)["projects"]["$inferSelect"];
/** The columns of `projects` that count items: one for each kind. */
export type CountsColumns = Pick<ProjectColumns, Extract<keyof ProjectColumns, `${string}Counts`>>;
