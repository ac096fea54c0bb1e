CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"digest" "bytea" NOT NULL,
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
CREATE TABLE "audit_entries" (
	"lane" text COLLATE "C" NOT NULL,
	"seq" bigint NOT NULL,
	"at" bigint NOT NULL,
	"key_id" text COLLATE "C" NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"organization" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"project" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C",
	"action" text COLLATE "C" NOT NULL,
	"names" text COLLATE "C" NOT NULL,
	"count" integer NOT NULL,
	"request_id" text COLLATE "C" NOT NULL,
	"client_address" text COLLATE "C" NOT NULL,
	"user_agent" text COLLATE "C" NOT NULL,
	"mac" "bytea" NOT NULL,
	CONSTRAINT "audit_entries_lane_seq_at_pk" PRIMARY KEY("lane","seq","at"),
	CONSTRAINT "audit_entries_action_rule" CHECK (action in ('variables.read', 'accounts.read', 'file.read', 'secrets.read'))
) PARTITION BY RANGE ("at");
--> statement-breakpoint
CREATE TABLE "audit_entries_default" PARTITION OF "audit_entries" DEFAULT;
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
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "data_keys" ADD CONSTRAINT "data_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_contents" ADD CONSTRAINT "file_contents_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "file_contents" ADD CONSTRAINT "file_contents_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "key_uses" ADD CONSTRAINT "key_uses_key_id_api_keys_id_fk" FOREIGN KEY ("key_id") REFERENCES "public"."api_keys"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sets" ADD CONSTRAINT "sets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_digest" ON "api_keys" USING btree ("digest");--> statement-breakpoint
CREATE INDEX "api_keys_organization" ON "api_keys" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "audit_entries_key" ON "audit_entries" USING btree ("key_id","at");--> statement-breakpoint
CREATE INDEX "audit_entries_organization" ON "audit_entries" USING btree ("organization_id","at");--> statement-breakpoint
CREATE INDEX "audit_entries_at" ON "audit_entries" USING btree ("at");--> statement-breakpoint
CREATE INDEX "file_contents_project" ON "file_contents" USING btree ("project_id");--> statement-breakpoint
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" USING btree ("slug");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_slug" ON "projects" USING btree ("organization_id","slug");--> statement-breakpoint
ALTER TABLE "sets" ALTER COLUMN "listing" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "sets" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "file_contents" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;
