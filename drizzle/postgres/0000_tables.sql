CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"trust" text COLLATE "C",
	"surfaces" integer NOT NULL,
	"resources" integer NOT NULL,
	"environments" integer NOT NULL,
	"projects" text COLLATE "C",
	"expires_at" bigint,
	"revoked_at" bigint,
	"created_at" bigint NOT NULL,
	"grant_seal" "bytea" NOT NULL,
	CONSTRAINT "api_keys_surfaces_rule" CHECK (surfaces between 1 and 7),
	CONSTRAINT "api_keys_resources_rule" CHECK (resources between 0 and 31),
	CONSTRAINT "api_keys_environments_rule" CHECK (environments between 1 and 7)
);
--> statement-breakpoint
CREATE TABLE "audit_checkpoints" (
	"lane" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"mac" "bytea" NOT NULL,
	"seal" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_heads" (
	"lane" text COLLATE "C" PRIMARY KEY NOT NULL,
	"seq" bigint NOT NULL,
	"at" bigint NOT NULL,
	"mac" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_segments" (
	"lane" text COLLATE "C" NOT NULL,
	"first_seq" bigint NOT NULL,
	"last_seq" bigint NOT NULL,
	"at" bigint NOT NULL,
	"mac" "bytea" NOT NULL,
	"texts" text COLLATE "C" NOT NULL,
	"entries" text COLLATE "C" NOT NULL,
	CONSTRAINT "audit_segments_lane_first_seq_at_pk" PRIMARY KEY("lane","first_seq","at")
) PARTITION BY RANGE ("at");
--> statement-breakpoint
CREATE TABLE "audit_segments_default" PARTITION OF "audit_segments" DEFAULT;
--> statement-breakpoint
CREATE TABLE "data_keys" (
	"project_id" text COLLATE "C" NOT NULL,
	"generation" integer NOT NULL,
	"root_id" text COLLATE "C" NOT NULL,
	"wrapped" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "data_keys_project_id_generation_pk" PRIMARY KEY("project_id","generation"),
	CONSTRAINT "data_keys_generation_rule" CHECK (generation >= 1)
);
--> statement-breakpoint
CREATE TABLE "file_contents" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"size" integer NOT NULL,
	"generation" integer NOT NULL,
	"sealed" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "key_uses" (
	"key_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"last_used_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "organizations" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"plan" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "organizations_slug_rule" CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,63}$'),
	CONSTRAINT "organizations_plan_rule" CHECK (plan in ('free', 'pro'))
);
--> statement-breakpoint
CREATE TABLE "projects" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"slug" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"variable_counts" text COLLATE "C" NOT NULL,
	"account_counts" text COLLATE "C" NOT NULL,
	"file_counts" text COLLATE "C" NOT NULL,
	"changed_at" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "projects_slug_rule" CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,63}$')
);
--> statement-breakpoint
CREATE TABLE "set_versions" (
	"project_id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"version" bigint NOT NULL,
	"at" bigint NOT NULL,
	"actor" text COLLATE "C" NOT NULL,
	"names" text COLLATE "C" NOT NULL,
	"mac" "bytea" NOT NULL,
	"generation" integer,
	"listing_mac" "bytea",
	"listing" text COLLATE "C",
	"sealed" "bytea",
	CONSTRAINT "set_versions_project_id_kind_environment_version_pk" PRIMARY KEY("project_id","kind","environment","version")
);
--> statement-breakpoint
CREATE TABLE "sets" (
	"project_id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"version" bigint NOT NULL,
	"generation" integer NOT NULL,
	"listing_mac" "bytea" NOT NULL,
	"listing" text COLLATE "C" NOT NULL,
	"sealed" "bytea",
	CONSTRAINT "sets_project_id_kind_environment_pk" PRIMARY KEY("project_id","kind","environment"),
	CONSTRAINT "sets_kind_rule" CHECK (kind in ('variables', 'accounts', 'files')),
	CONSTRAINT "sets_environment_rule" CHECK (environment in ('development', 'staging', 'production'))
);
--> statement-breakpoint
CREATE TABLE "system_keys" (
	"purpose" text COLLATE "C" PRIMARY KEY NOT NULL,
	"root_id" text COLLATE "C" NOT NULL,
	"wrapped" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "system_keys_rule" CHECK (purpose in ('pepper', 'grant', 'audit', 'listing'))
);
--> statement-breakpoint
CREATE TABLE "variable_requests" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"reason" text COLLATE "C" NOT NULL,
	"key_id" text COLLATE "C" NOT NULL,
	"number" bigint NOT NULL,
	"status" text COLLATE "C" NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	"decided_at" bigint,
	"decided_by" text COLLATE "C",
	"decision_reason" text COLLATE "C",
	CONSTRAINT "variable_requests_status_rule" CHECK (status in ('pending', 'approved', 'rejected'))
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "data_keys" ADD CONSTRAINT "data_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_contents" ADD CONSTRAINT "file_contents_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_contents" ADD CONSTRAINT "file_contents_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "key_uses" ADD CONSTRAINT "key_uses_key_id_api_keys_id_fk" FOREIGN KEY ("key_id") REFERENCES "public"."api_keys"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "set_versions" ADD CONSTRAINT "set_versions_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sets" ADD CONSTRAINT "sets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variable_requests" ADD CONSTRAINT "variable_requests_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variable_requests" ADD CONSTRAINT "variable_requests_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_digest" ON "api_keys" USING btree ("digest");--> statement-breakpoint
CREATE INDEX "api_keys_organization" ON "api_keys" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "api_keys_expiry" ON "api_keys" USING btree ("expires_at") WHERE revoked_at is null;--> statement-breakpoint
CREATE INDEX "api_keys_trusts" ON "api_keys" USING btree ("id") WHERE trust is not null;--> statement-breakpoint
CREATE INDEX "audit_segments_at" ON "audit_segments" USING btree ("at");--> statement-breakpoint
CREATE INDEX "file_contents_project" ON "file_contents" USING btree ("project_id");--> statement-breakpoint
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" USING btree ("slug");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_slug" ON "projects" USING btree ("organization_id","slug");--> statement-breakpoint
CREATE INDEX "sets_marked" ON "sets" USING btree ("project_id") WHERE strpos(listing, '"rotateBy":"') > 0;--> statement-breakpoint
CREATE UNIQUE INDEX "variable_requests_number" ON "variable_requests" USING btree ("organization_id","number");--> statement-breakpoint
CREATE INDEX "variable_requests_expiry" ON "variable_requests" USING btree ("organization_id","expires_at");--> statement-breakpoint
CREATE INDEX "variable_requests_project" ON "variable_requests" USING btree ("project_id");--> statement-breakpoint
ALTER TABLE "set_versions" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "sets" ALTER COLUMN "listing" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "sets" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "file_contents" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
CREATE VIEW "audit_entries" AS
SELECT lane, first_seq + n - 1 AS seq, at,
	parsed.texts ->> (entry ->> 0)::integer AS actor_type,
	parsed.texts ->> (entry ->> 1)::integer AS actor,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'key' THEN parsed.texts ->> (entry ->> 1)::integer END AS key_id,
	parsed.texts ->> (entry ->> 2)::integer AS organization_id,
	parsed.texts ->> (entry ->> 3)::integer AS organization,
	parsed.texts ->> (entry ->> 4)::integer AS project_id,
	parsed.texts ->> (entry ->> 5)::integer AS project,
	parsed.texts ->> (entry ->> 6)::integer AS environment,
	parsed.texts ->> (entry ->> 7)::integer AS action,
	(names -> (entry ->> 10)::integer)::text AS names,
	json_array_length(names -> (entry ->> 10)::integer) AS count,
	(names -> (entry ->> 12)::integer)::text AS added,
	(names -> (entry ->> 13)::integer)::text AS changed,
	(names -> (entry ->> 14)::integer)::text AS deleted,
	entry ->> 11 AS request_id,
	parsed.texts ->> (entry ->> 8)::integer AS client_address,
	parsed.texts ->> (entry ->> 9)::integer AS user_agent,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'trust' THEN parsed.texts ->> (entry ->> 1)::integer END AS trust_id,
	parsed.texts ->> (entry ->> 15)::integer AS token
FROM audit_segments,
	LATERAL (SELECT audit_segments.texts::jsonb AS texts OFFSET 0) AS parsed,
	json_to_record(audit_segments.entries::json) AS segment (names json, entries jsonb),
	jsonb_array_elements(segment.entries) WITH ORDINALITY AS numbered (entry, n);
