CREATE TABLE "accounts" (
	"id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"environments" smallint NOT NULL,
	"version" integer NOT NULL,
	"generation" integer NOT NULL,
	"sealed" "bytea" NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "accounts_project_id_name_pk" PRIMARY KEY("project_id","name"),
	CONSTRAINT "accounts_environments_rule" CHECK (environments between 1 and 7),
	CONSTRAINT "accounts_version_rule" CHECK (version >= 1)
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"organization_id" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"digest" "bytea" NOT NULL,
	"surfaces" smallint NOT NULL,
	"resources" smallint NOT NULL,
	"environments" smallint NOT NULL,
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
CREATE TABLE "files" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"path" text COLLATE "C" NOT NULL,
	"environments" smallint NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"mode" text COLLATE "C" NOT NULL,
	"size" integer NOT NULL,
	"sha256" text COLLATE "C" NOT NULL,
	"content_type" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"generation" integer NOT NULL,
	"sealed" "bytea" NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "files_environments_rule" CHECK (environments between 1 and 7),
	CONSTRAINT "files_mode_rule" CHECK (mode in ('0600', '0400')),
	CONSTRAINT "files_size_rule" CHECK (size between 0 and 8388608),
	CONSTRAINT "files_sha256_rule" CHECK (sha256 ~ '^[0-9a-f]{64}$'),
	CONSTRAINT "files_version_rule" CHECK (version >= 1)
);
--> statement-breakpoint
CREATE TABLE "item_sets" (
	"project_id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"generation" integer NOT NULL,
	"sealed" "bytea" NOT NULL,
	"listing" text COLLATE "C" NOT NULL,
	CONSTRAINT "item_sets_project_id_kind_environment_pk" PRIMARY KEY("project_id","kind","environment"),
	CONSTRAINT "item_sets_kind_rule" CHECK (kind in ('accounts', 'files'))
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
CREATE TABLE "project_environments" (
	"project_id" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"revision" bigint NOT NULL,
	"state" text COLLATE "C" DEFAULT gen_random_uuid()::text NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "project_environments_project_id_environment_pk" PRIMARY KEY("project_id","environment"),
	CONSTRAINT "project_environments_rule" CHECK (environment in ('development', 'staging', 'production'))
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
	"created_at" bigint NOT NULL,
	CONSTRAINT "projects_slug_rule" CHECK (slug ~ '^[a-z0-9][a-z0-9-]{0,63}$')
);
--> statement-breakpoint
CREATE TABLE "system_keys" (
	"purpose" text COLLATE "C" PRIMARY KEY NOT NULL,
	"root_id" text COLLATE "C" NOT NULL,
	"wrapped" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	CONSTRAINT "system_keys_rule" CHECK (purpose in ('pepper', 'grant', 'audit'))
);
--> statement-breakpoint
CREATE TABLE "variable_sets" (
	"project_id" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"revision" bigint NOT NULL,
	"generation" integer NOT NULL,
	"listing" text COLLATE "C" NOT NULL,
	"sealed" "bytea" NOT NULL,
	CONSTRAINT "variable_sets_project_id_environment_pk" PRIMARY KEY("project_id","environment")
);
--> statement-breakpoint
CREATE TABLE "variables" (
	"id" text COLLATE "C" NOT NULL,
	"project_id" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"version" integer NOT NULL,
	"generation" integer NOT NULL,
	"sealed" "bytea" NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "variables_project_id_environment_name_pk" PRIMARY KEY("project_id","environment","name"),
	CONSTRAINT "variables_environment_rule" CHECK (environment in ('development', 'staging', 'production')),
	CONSTRAINT "variables_name_rule" CHECK (name ~ '^[A-Za-z_][A-Za-z0-9_]{0,254}$' and name not in ('_', '__proto__')),
	CONSTRAINT "variables_version_rule" CHECK (version >= 1)
);
--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "accounts" ADD CONSTRAINT "accounts_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "data_keys" ADD CONSTRAINT "data_keys_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "files" ADD CONSTRAINT "files_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "files" ADD CONSTRAINT "files_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "item_sets" ADD CONSTRAINT "item_sets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "item_sets" ADD CONSTRAINT "item_sets_environment" FOREIGN KEY ("project_id","environment") REFERENCES "public"."project_environments"("project_id","environment") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "item_sets" ADD CONSTRAINT "item_sets_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "key_uses" ADD CONSTRAINT "key_uses_key_id_api_keys_id_fk" FOREIGN KEY ("key_id") REFERENCES "public"."api_keys"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "project_environments" ADD CONSTRAINT "project_environments_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "projects" ADD CONSTRAINT "projects_organization_id_organizations_id_fk" FOREIGN KEY ("organization_id") REFERENCES "public"."organizations"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variable_sets" ADD CONSTRAINT "variable_sets_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variable_sets" ADD CONSTRAINT "variable_sets_environment" FOREIGN KEY ("project_id","environment") REFERENCES "public"."project_environments"("project_id","environment") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variable_sets" ADD CONSTRAINT "variable_sets_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variables" ADD CONSTRAINT "variables_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "variables" ADD CONSTRAINT "variables_data_key" FOREIGN KEY ("project_id","generation") REFERENCES "public"."data_keys"("project_id","generation") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "accounts_reach_1" ON "accounts" USING btree ("project_id","name") WHERE (environments & 1) <> 0;--> statement-breakpoint
CREATE INDEX "accounts_reach_2" ON "accounts" USING btree ("project_id","name") WHERE (environments & 2) <> 0;--> statement-breakpoint
CREATE INDEX "accounts_reach_3" ON "accounts" USING btree ("project_id","name") WHERE (environments & 3) <> 0;--> statement-breakpoint
CREATE INDEX "accounts_reach_4" ON "accounts" USING btree ("project_id","name") WHERE (environments & 4) <> 0;--> statement-breakpoint
CREATE INDEX "accounts_reach_5" ON "accounts" USING btree ("project_id","name") WHERE (environments & 5) <> 0;--> statement-breakpoint
CREATE INDEX "accounts_reach_6" ON "accounts" USING btree ("project_id","name") WHERE (environments & 6) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX "api_keys_digest" ON "api_keys" USING btree ("digest");--> statement-breakpoint
CREATE INDEX "api_keys_organization" ON "api_keys" USING btree ("organization_id");--> statement-breakpoint
CREATE INDEX "audit_entries_key" ON "audit_entries" USING btree ("key_id","at");--> statement-breakpoint
CREATE INDEX "audit_entries_organization" ON "audit_entries" USING btree ("organization_id","at");--> statement-breakpoint
CREATE INDEX "audit_entries_at" ON "audit_entries" USING btree ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "files_development" ON "files" USING btree ("project_id","path") WHERE (environments & 1) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX "files_staging" ON "files" USING btree ("project_id","path") WHERE (environments & 2) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX "files_production" ON "files" USING btree ("project_id","path") WHERE (environments & 4) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX "organizations_slug" ON "organizations" USING btree ("slug");--> statement-breakpoint
CREATE UNIQUE INDEX "projects_place" ON "projects" USING btree ("organization_id","slug");--> statement-breakpoint
ALTER TABLE "files" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
ALTER TABLE "variable_sets" ALTER COLUMN "sealed" SET STORAGE EXTERNAL;--> statement-breakpoint
CREATE FUNCTION "draw_state"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	NEW."state" := gen_random_uuid()::text;
	RETURN NEW;
END $$;--> statement-breakpoint
CREATE TRIGGER "project_environments_state" BEFORE INSERT OR UPDATE OF "revision", "state" ON "project_environments"
	FOR EACH ROW EXECUTE FUNCTION "draw_state"();--> statement-breakpoint
CREATE FUNCTION "raise_revisions"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		UPDATE "project_environments" AS e SET "revision" = e."revision" + 1
		FROM (SELECT "project_id", "environment" FROM "old_rows" UNION SELECT "project_id", "environment" FROM "new_rows") AS c
		WHERE e."project_id" = c."project_id" AND e."environment" = c."environment";
	ELSE
		UPDATE "project_environments" AS e SET "revision" = e."revision" + 1
		FROM (SELECT DISTINCT "project_id", "environment" FROM "changed") AS c
		WHERE e."project_id" = c."project_id" AND e."environment" = c."environment";
	END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "variables_insert_revision" AFTER INSERT ON "variables" REFERENCING NEW TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE TRIGGER "variables_update_revision" AFTER UPDATE ON "variables" REFERENCING OLD TABLE AS "old_rows" NEW TABLE AS "new_rows"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE TRIGGER "variables_delete_revision" AFTER DELETE ON "variables" REFERENCING OLD TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE TRIGGER "variable_sets_insert_revision" AFTER INSERT ON "variable_sets" REFERENCING NEW TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE TRIGGER "variable_sets_update_revision" AFTER UPDATE ON "variable_sets" REFERENCING OLD TABLE AS "old_rows" NEW TABLE AS "new_rows"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE TRIGGER "variable_sets_delete_revision" AFTER DELETE ON "variable_sets" REFERENCING OLD TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "raise_revisions"();--> statement-breakpoint
CREATE FUNCTION "change_states"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF TG_OP = 'UPDATE' THEN
		UPDATE "project_environments" AS e SET "state" = DEFAULT
		FROM (SELECT "project_id" FROM "old_rows" UNION SELECT "project_id" FROM "new_rows") AS c
		WHERE e."project_id" = c."project_id";
	ELSE
		UPDATE "project_environments" AS e SET "state" = DEFAULT
		FROM (SELECT DISTINCT "project_id" FROM "changed") AS c
		WHERE e."project_id" = c."project_id";
	END IF;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "data_keys_insert_state" AFTER INSERT ON "data_keys" REFERENCING NEW TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_states"();--> statement-breakpoint
CREATE TRIGGER "data_keys_update_state" AFTER UPDATE ON "data_keys" REFERENCING OLD TABLE AS "old_rows" NEW TABLE AS "new_rows"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_states"();--> statement-breakpoint
CREATE TRIGGER "data_keys_delete_state" AFTER DELETE ON "data_keys" REFERENCING OLD TABLE AS "changed"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_states"();--> statement-breakpoint
CREATE FUNCTION "change_every_state"() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE "project_environments" SET "revision" = "revision" + 1;
	RETURN NULL;
END $$;--> statement-breakpoint
CREATE TRIGGER "variables_truncate_state" AFTER TRUNCATE ON "variables"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_every_state"();--> statement-breakpoint
CREATE TRIGGER "variable_sets_truncate_state" AFTER TRUNCATE ON "variable_sets"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_every_state"();--> statement-breakpoint
CREATE TRIGGER "data_keys_truncate_state" AFTER TRUNCATE ON "data_keys"
	FOR EACH STATEMENT EXECUTE FUNCTION "change_every_state"();
