import { sql } from "drizzle-orm";
import {
  blob,
  check,
  foreignKey,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

/* The tables of `postgres.ts` in SQLite's column kinds; what they mean is said there. */

const bytea = (name: string) => blob(name, { mode: "buffer" });
const moment = (name: string) => integer(name);
const slugRule = (column: string) =>
  sql.raw(`length(${column}) between 1 and 64 and ${column} not glob '*[^a-z0-9-]*' and ${column} not glob '-*'`);
const environmentRule = sql.raw("environment in ('development', 'staging', 'production')");
const maskRule = sql.raw("environments between 1 and 7");

export const organizations = sqliteTable(
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

export const projects = sqliteTable(
  "projects",
  {
    id: text("id").primaryKey(),
    organizationId: text("organization_id")
      .notNull()
      .references(() => organizations.id),
    slug: text("slug").notNull(),
    name: text("name").notNull(),
    variableCounts: text("variable_counts").notNull(),
    accountCounts: text("account_counts").notNull(),
    fileCounts: text("file_counts").notNull(),
    createdAt: moment("created_at").notNull(),
  },
  (t) => [uniqueIndex("projects_place").on(t.organizationId, t.slug), check("projects_slug_rule", slugRule("slug"))],
);

export const projectEnvironments = sqliteTable(
  "project_environments",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    environment: text("environment").notNull(),
    revision: integer("revision").notNull(),
    state: text("state").notNull().default(sql`(lower(hex(randomblob(16))))`),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [primaryKey({ columns: [t.projectId, t.environment] }), check("project_environments_rule", environmentRule)],
);

export const systemKeys = sqliteTable(
  "system_keys",
  {
    purpose: text("purpose").primaryKey(),
    rootId: text("root_id").notNull(),
    wrapped: bytea("wrapped").notNull(),
    createdAt: moment("created_at").notNull(),
  },
  () => [check("system_keys_rule", sql.raw("purpose in ('pepper', 'grant', 'audit')"))],
);

export const dataKeys = sqliteTable(
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

export const variables = sqliteTable(
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
    check(
      "variables_name_rule",
      sql.raw(
        "length(name) between 1 and 255 and name not glob '*[^A-Za-z0-9_]*' and name not glob '[0-9]*' and name not in ('_', '__proto__')",
      ),
    ),
    check("variables_version_rule", sql.raw("version >= 1")),
  ],
);

export const variableSets = sqliteTable(
  "variable_sets",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    environment: text("environment").notNull(),
    revision: integer("revision").notNull(),
    generation: integer("generation").notNull(),
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

export const accounts = sqliteTable(
  "accounts",
  {
    id: text("id").notNull(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    name: text("name").notNull(),
    environments: integer("environments").notNull(),
    version: integer("version").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.projectId, t.name] }),
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

export const files = sqliteTable(
  "files",
  {
    id: text("id").primaryKey(),
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    path: text("path").notNull(),
    environments: integer("environments").notNull(),
    name: text("name").notNull(),
    mode: text("mode").$type<"0600" | "0400">().notNull(),
    size: integer("size").notNull(),
    sha256: text("sha256").notNull(),
    contentType: text("content_type").notNull(),
    version: integer("version").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
    updatedAt: moment("updated_at").notNull(),
  },
  (t) => [
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
    check("files_sha256_rule", sql.raw("length(sha256) = 64 and sha256 not glob '*[^0-9a-f]*'")),
    check("files_version_rule", sql.raw("version >= 1")),
  ],
);

export const itemSets = sqliteTable(
  "item_sets",
  {
    projectId: text("project_id")
      .notNull()
      .references(() => projects.id, { onDelete: "cascade" }),
    kind: text("kind").$type<"accounts" | "files">().notNull(),
    environment: text("environment").notNull(),
    generation: integer("generation").notNull(),
    sealed: bytea("sealed").notNull(),
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

export const apiKeys = sqliteTable(
  "api_keys",
  {
    id: text("id").primaryKey(),
    organizationId: text("organization_id")
      .notNull()
      .references(() => organizations.id),
    name: text("name").notNull(),
    digest: bytea("digest").notNull(),
    surfaces: integer("surfaces").notNull(),
    resources: integer("resources").notNull(),
    environments: integer("environments").notNull(),
    projects: text("projects"),
    expiresAt: moment("expires_at"),
    revokedAt: moment("revoked_at"),
    createdAt: moment("created_at").notNull(),
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

export const keyUses = sqliteTable("key_uses", {
  keyId: text("key_id")
    .primaryKey()
    .references(() => apiKeys.id, { onDelete: "cascade" }),
  lastUsedAt: moment("last_used_at").notNull(),
});

export const auditEntries = sqliteTable(
  "audit_entries",
  {
    lane: text("lane").notNull(),
    seq: integer("seq").notNull(),
    at: moment("at").notNull(),
    keyId: text("key_id").notNull(),
    organizationId: text("organization_id").notNull(),
    organization: text("organization").notNull(),
    projectId: text("project_id").notNull(),
    project: text("project").notNull(),
    environment: text("environment"),
    action: text("action").notNull(),
    names: text("names").notNull(),
    count: integer("count").notNull(),
    requestId: text("request_id").notNull(),
    clientAddress: text("client_address").notNull(),
    userAgent: text("user_agent").notNull(),
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

export const auditCheckpoints = sqliteTable("audit_checkpoints", {
  lane: text("lane").primaryKey(),
  seq: integer("seq").notNull(),
  mac: bytea("mac").notNull(),
  seal: bytea("seal").notNull(),
});
