import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  customType,
  foreignKey,
  index,
  integer,
  pgTable,
  primaryKey,
  smallint,
  uniqueIndex,
} from "drizzle-orm/pg-core";

/*
 * The tables in PostgreSQL. `sqlite.ts` declares the same tables with SQLite's column kinds and the same TypeScript
 * types, so that one set of queries serves both; what a column means is said here only.
 */

/**
 * Text in byte order: every list of the API is sorted so, and prefixes are ranges of it. Ids too: by the rules of a
 * language, which a database may have by default, comparing two takes ten times as long, and every look-up compares.
 */
const text = customType<{ data: string }>({
  dataType: () => 'text COLLATE "C"',
});
const bytea = customType<{ data: Buffer; driverData: Uint8Array }>({
  dataType: () => "bytea",
  toDriver: (bytes) => bytes,
  fromDriver: (bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
});
/** Epoch milliseconds. */
const moment = (name: string) => bigint(name, { mode: "number" });
const slugRule = (column: string) => sql.raw(`${column} ~ '^[a-z0-9][a-z0-9-]{0,63}$'`);
const environmentRule = sql.raw("environment in ('development', 'staging', 'production')");
/** Bits of a set of environments: development 1, staging 2, production 4. */
const maskRule = sql.raw("environments between 1 and 7");

export const organizations = pgTable(
  "organizations",
  {
    id: text("id").primaryKey(),
    slug: text("slug").notNull(),
    name: text("name").notNull(),
    plan: text("plan").$type<"free" | "pro">().notNull(),
    createdAt: moment("created_at").notNull(),
  },
  (t) => [
    uniqueIndex("organizations_slug").on(t.slug),
    check("organizations_slug_rule", slugRule("slug")),
    check("organizations_plan_rule", sql.raw("plan in ('free', 'pro')")),
  ],
);

export const projects = pgTable(
  "projects",
  {
    id: text("id").primaryKey(),
    organizationId: text("organization_id")
      .notNull()
      .references(() => organizations.id),
    slug: text("slug").notNull(),
    name: text("name").notNull(),
    /**
     * How many names, accounts and files stand in exactly the environments of mask 1 to 7, as a JSON array of seven:
     * any key's counts are then sums of one row, however many items the project holds.
     */
    variableCounts: text("variable_counts").notNull(),
    accountCounts: text("account_counts").notNull(),
    fileCounts: text("file_counts").notNull(),
    createdAt: moment("created_at").notNull(),
  },
  (t) => [uniqueIndex("projects_place").on(t.organizationId, t.slug), check("projects_slug_rule", slugRule("slug"))],
);

/** One row for each environment of a project: what changes with every write to it. */
export const projectEnvironments = pgTable(
  "project_environments",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    environment: text("environment").notNull(),
    /** Grows with every write to the environment's variables or their set: triggers see to it, whoever writes. */
    revision: bigint("revision", { mode: "number" }).notNull(),
    /**
     * Random, and another one wherever this or the revision is written, so with every such write and every write to the
     * project's data keys: by it, whoever has read the environment knows whether all still is so. Triggers draw it, and
     * whoever writes cannot put an earlier one back.
     */
    state: text("state").notNull().default(sql`gen_random_uuid()::text`),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.projectId, t.environment] }), check("project_environments_rule", environmentRule)],
);

/** Keys that belong to the whole installation: pepper, grant seal and audit, each wrapped by a root key. */
export const systemKeys = pgTable(
  "system_keys",
  {
    purpose: text("purpose").primaryKey(),
    rootId: text("root_id").notNull(),
    wrapped: bytea("wrapped").notNull(),
    createdAt: moment("created_at").notNull(),
  },
  () => [check("system_keys_rule", sql.raw("purpose in ('pepper', 'grant', 'audit')"))],
);

/** A project's data keys by generation; new values are sealed under the highest. */
export const dataKeys = pgTable(
  "data_keys",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    generation: integer("generation").notNull(),
    rootId: text("root_id").notNull(),
    wrapped: bytea("wrapped").notNull(),
    createdAt: moment("created_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.generation] }),
    check("data_keys_generation_rule", sql.raw("generation >= 1")),
  ],
);

export const variables = pgTable(
  "variables",
  {
    id: text("id").notNull(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    environment: text("environment").notNull(),
    name: text("name").notNull(),
    version: integer("version").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.environment, t.name] }),
    foreignKey({
      name: "variables_data_key",
      columns: [t.projectId, t.generation],
      foreignColumns: [dataKeys.projectId, dataKeys.generation],
    }),
    check("variables_environment_rule", environmentRule),
    check("variables_name_rule", sql.raw("name ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$' and name not in ('_', '__proto__')")),
    check("variables_version_rule", sql.raw("version >= 1")),
  ],
);

/**
 * The variables of one environment as the API's answer spells them, sealed as one, beside the sealed rows, which stay
 * the truth. Kept by the writer in its transaction; where an answer could not hold them all, or nearly so, a fingerprint of
 * each row instead.
 */
export const variableSets = pgTable(
  "variable_sets",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    environment: text("environment").notNull(),
    /** Of the environment when the set was made: another one there means that somebody else wrote since. */
    revision: bigint("revision", { mode: "number" }).notNull(),
    generation: integer("generation").notNull(),
    /** The set without its values, as JSON: what a metadata read answers. */
    listing: text("listing").notNull(),
    sealed: bytea("sealed").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.environment] }),
    foreignKey({
      name: "variable_sets_environment",
      columns: [t.projectId, t.environment],
      foreignColumns: [projectEnvironments.projectId, projectEnvironments.environment],
    }),
    foreignKey({
      name: "variable_sets_data_key",
      columns: [t.projectId, t.generation],
      foreignColumns: [dataKeys.projectId, dataKeys.generation],
    }),
  ],
);

export const accounts = pgTable(
  "accounts",
  {
    id: text("id").notNull(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    name: text("name").notNull(),
    environments: smallint("environments").notNull(),
    version: integer("version").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.name] }),
    // One partial index for each set of environments a key may reach (all three: the primary key): it scans what it gets.
    ...[1, 2, 3, 4, 5, 6].map((mask) =>
      index(`accounts_reach_${mask}`)
        .on(t.projectId, t.name)
        .where(sql.raw(`(environments & ${mask}) <> 0`)),
    ),
    foreignKey({
      name: "accounts_data_key",
      columns: [t.projectId, t.generation],
      foreignColumns: [dataKeys.projectId, dataKeys.generation],
    }),
    check("accounts_environments_rule", maskRule),
    check("accounts_version_rule", sql.raw("version >= 1")),
  ],
);

export const files = pgTable(
  "files",
  {
    id: text("id").primaryKey(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    path: text("path").notNull(),
    environments: smallint("environments").notNull(),
    name: text("name").notNull(),
    mode: text("mode").$type<"0600" | "0400">().notNull(),
    /** Bytes of plaintext. */
    size: integer("size").notNull(),
    /** SHA-256 of the plaintext, lower-case hex. */
    sha256: text("sha256").notNull(),
    contentType: text("content_type").notNull(),
    version: integer("version").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [
    // One file for each path and environment, by an index for each environment; they also serve the reads.
    ...(["development", "staging", "production"] as const).map((environment, bit) =>
      uniqueIndex(`files_${environment}`)
        .on(t.projectId, t.path)
        .where(sql.raw(`(environments & ${1 << bit}) <> 0`)),
    ),
    foreignKey({
      name: "files_data_key",
      columns: [t.projectId, t.generation],
      foreignColumns: [dataKeys.projectId, dataKeys.generation],
    }),
    check("files_environments_rule", maskRule),
    check("files_mode_rule", sql.raw("mode in ('0600', '0400')")),
    check("files_size_rule", sql.raw("size between 0 and 8388608")),
    check("files_sha256_rule", sql.raw("sha256 ~ '^[0-9a-f]{64}$'")),
    check("files_version_rule", sql.raw("version >= 1")),
  ],
);

/**
 * The seals over all accounts and over all files of each environment (`seal/item-set.ts`). There is always one of each,
 * of what holds nothing too. The writer makes the next one of the last one and the change, never of the rows.
 */
export const itemSets = pgTable(
  "item_sets",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    kind: text("kind").$type<"accounts" | "files">().notNull(),
    environment: text("environment").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    /** What was sealed; readers make their own of the rows, writers go on from this one. */
    listing: text("listing").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.kind, t.environment] }),
    foreignKey({
      name: "item_sets_environment",
      columns: [t.projectId, t.environment],
      foreignColumns: [projectEnvironments.projectId, projectEnvironments.environment],
    }),
    foreignKey({
      name: "item_sets_data_key",
      columns: [t.projectId, t.generation],
      foreignColumns: [dataKeys.projectId, dataKeys.generation],
    }),
    check("item_sets_kind_rule", sql.raw("kind in ('accounts', 'files')")),
  ],
);

export const apiKeys = pgTable(
  "api_keys",
  {
    id: text("id").primaryKey(),
    organizationId: text("organization_id")
      .notNull()
      .references(() => organizations.id),
    name: text("name").notNull(),
    /** HMAC of the key's text under the pepper. */
    digest: bytea("digest").notNull(),
    /** Bits, in the order of `access/grant.ts`. */
    surfaces: smallint("surfaces").notNull(),
    resources: smallint("resources").notNull(),
    environments: smallint("environments").notNull(),
    /** JSON object of slug to project id, or null for every project of the organization. */
    projects: text("projects"),
    expiresAt: moment("expires_at"),
    revokedAt: moment("revoked_at"),
    createdAt: moment("created_at").notNull(),
    /** HMAC over all of the above but name, revocation and creation. */
    grantSeal: bytea("grant_seal").notNull(),
  },
  (t) => [
    uniqueIndex("api_keys_digest").on(t.digest),
    index("api_keys_organization").on(t.organizationId),
    check("api_keys_surfaces_rule", sql.raw("surfaces between 1 and 7")),
    check("api_keys_resources_rule", sql.raw("resources between 0 and 31")),
    check("api_keys_environments_rule", maskRule),
  ],
);

/** The one thing beside audit entries that the server writes: when a key was last used, lazily. */
export const keyUses = pgTable("key_uses", {
  keyId: text("key_id")
    .primaryKey()
    .references(() => apiKeys.id, { onDelete: "cascade" }),
  lastUsedAt: moment("last_used_at").notNull(),
});

/**
 * What left, for whom, when. Slugs stand beside ids so that an entry stays readable when its project is gone, and
 * nothing refers to other tables, so that deleting a project can not touch it. Partitioned by `at` (see the migration).
 */
export const auditEntries = pgTable(
  "audit_entries",
  {
    /** A chain of entries: one for each writer's run of uninterrupted success. */
    lane: text("lane").notNull(),
    seq: bigint("seq", { mode: "number" }).notNull(),
    at: moment("at").notNull(),
    keyId: text("key_id").notNull(),
    organizationId: text("organization_id").notNull(),
    organization: text("organization").notNull(),
    projectId: text("project_id").notNull(),
    project: text("project").notNull(),
    /** Null where an account read named none. */
    environment: text("environment"),
    action: text("action").notNull(),
    /** JSON array, kept as the text the mac was made over. */
    names: text("names").notNull(),
    count: integer("count").notNull(),
    requestId: text("request_id").notNull(),
    clientAddress: text("client_address").notNull(),
    userAgent: text("user_agent").notNull(),
    /** HMAC under the audit key over the lane's previous mac and this row. */
    mac: bytea("mac").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.lane, t.seq, t.at] }),
    index("audit_entries_key").on(t.keyId, t.at),
    index("audit_entries_organization").on(t.organizationId, t.at),
    index("audit_entries_at").on(t.at),
    check(
      "audit_entries_action_rule",
      sql.raw("action in ('variables.read', 'accounts.read', 'file.read', 'secrets.read')"),
    ),
  ],
);

/**
 * The last entry of each lane whose beginning retention has dropped: where the chain of what is left goes on. Sealed
 * under the audit key, or whoever may write here could pass off a removal as retention.
 */
export const auditCheckpoints = pgTable("audit_checkpoints", {
  lane: text("lane").primaryKey(),
  seq: bigint("seq", { mode: "number" }).notNull(),
  mac: bytea("mac").notNull(),
  /** HMAC over all of the above. */
  seal: bytea("seal").notNull(),
});
