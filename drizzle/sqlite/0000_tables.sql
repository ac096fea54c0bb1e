CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`digest` blob NOT NULL,
	`trust` text,
	`surfaces` integer NOT NULL,
	`resources` integer NOT NULL,
	`environments` integer NOT NULL,
	`projects` text,
	`expires_at` integer,
	`revoked_at` integer,
	`created_at` integer NOT NULL,
	`grant_seal` blob NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "api_keys_surfaces_rule" CHECK(surfaces between 1 and 7),
	CONSTRAINT "api_keys_resources_rule" CHECK(resources between 0 and 31),
	CONSTRAINT "api_keys_environments_rule" CHECK(environments between 1 and 7)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `api_keys_digest` ON `api_keys` (`digest`);--> statement-breakpoint
CREATE INDEX `api_keys_organization` ON `api_keys` (`organization_id`);--> statement-breakpoint
CREATE INDEX `api_keys_expiry` ON `api_keys` (`expires_at`) WHERE revoked_at is null;--> statement-breakpoint
CREATE INDEX `api_keys_trusts` ON `api_keys` (`id`) WHERE trust is not null;--> statement-breakpoint
CREATE TABLE `audit_checkpoints` (
	`lane` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`mac` blob NOT NULL,
	`seal` blob NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `audit_heads` (
	`lane` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`at` integer NOT NULL,
	`mac` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `audit_segments` (
	`lane` text NOT NULL,
	`first_seq` integer NOT NULL,
	`last_seq` integer NOT NULL,
	`at` integer NOT NULL,
	`mac` blob NOT NULL,
	`texts` text NOT NULL,
	`entries` text NOT NULL,
	PRIMARY KEY(`lane`, `first_seq`, `at`)
) STRICT;
--> statement-breakpoint
CREATE INDEX `audit_segments_at` ON `audit_segments` (`at`);--> statement-breakpoint
CREATE TABLE `data_keys` (
	`project_id` text NOT NULL,
	`generation` integer NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `generation`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "data_keys_generation_rule" CHECK(generation >= 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `file_contents` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`size` integer NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE INDEX `file_contents_project` ON `file_contents` (`project_id`);--> statement-breakpoint
CREATE TABLE `key_uses` (
	`key_id` text PRIMARY KEY NOT NULL,
	`last_used_at` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `organizations` (
	`id` text PRIMARY KEY NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`plan` text NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "organizations_slug_rule" CHECK(length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*'),
	CONSTRAINT "organizations_plan_rule" CHECK(plan in ('free', 'pro'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `organizations_slug` ON `organizations` (`slug`);--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`variable_counts` text NOT NULL,
	`account_counts` text NOT NULL,
	`file_counts` text NOT NULL,
	`changed_at` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "projects_slug_rule" CHECK(length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*')
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_slug` ON `projects` (`organization_id`,`slug`);--> statement-breakpoint
CREATE TABLE `set_versions` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`version` integer NOT NULL,
	`at` integer NOT NULL,
	`actor` text NOT NULL,
	`names` text NOT NULL,
	`mac` blob NOT NULL,
	`generation` integer,
	`listing_mac` blob,
	`listing` text,
	`sealed` blob,
	PRIMARY KEY(`project_id`, `kind`, `environment`, `version`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT;
--> statement-breakpoint
CREATE TABLE `sets` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`version` integer NOT NULL,
	`generation` integer NOT NULL,
	`listing_mac` blob NOT NULL,
	`listing` text NOT NULL,
	`sealed` blob,
	PRIMARY KEY(`project_id`, `kind`, `environment`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "sets_kind_rule" CHECK(kind in ('variables', 'accounts', 'files')),
	CONSTRAINT "sets_environment_rule" CHECK(environment in ('development', 'staging', 'production'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `sets_marked` ON `sets` (`project_id`) WHERE instr(listing, '"rotateBy":"') > 0;--> statement-breakpoint
CREATE TABLE `system_keys` (
	`purpose` text PRIMARY KEY NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "system_keys_rule" CHECK(purpose in ('pepper', 'grant', 'audit', 'listing'))
) STRICT, WITHOUT ROWID;--> statement-breakpoint
CREATE TABLE `variable_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`project_id` text NOT NULL,
	`environment` text NOT NULL,
	`name` text NOT NULL,
	`reason` text NOT NULL,
	`key_id` text NOT NULL,
	`number` integer NOT NULL,
	`status` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`decided_at` integer,
	`decided_by` text,
	`decision_reason` text,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "variable_requests_status_rule" CHECK(status in ('pending', 'approved', 'rejected'))
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `variable_requests_number` ON `variable_requests` (`organization_id`,`number`);--> statement-breakpoint
CREATE INDEX `variable_requests_expiry` ON `variable_requests` (`organization_id`,`expires_at`);--> statement-breakpoint
CREATE INDEX `variable_requests_project` ON `variable_requests` (`project_id`);--> statement-breakpoint
CREATE VIEW `audit_entries` AS
SELECT lane, first_seq + entry.key AS seq, at,
	json_extract(texts, '$[' || (entry.value ->> 0) || ']') AS actor_type,
	json_extract(texts, '$[' || (entry.value ->> 1) || ']') AS actor,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'key' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS key_id,
	json_extract(texts, '$[' || (entry.value ->> 2) || ']') AS organization_id,
	json_extract(texts, '$[' || (entry.value ->> 3) || ']') AS organization,
	json_extract(texts, '$[' || (entry.value ->> 4) || ']') AS project_id,
	json_extract(texts, '$[' || (entry.value ->> 5) || ']') AS project,
	json_extract(texts, '$[' || (entry.value ->> 6) || ']') AS environment,
	json_extract(texts, '$[' || (entry.value ->> 7) || ']') AS action,
	json_extract(entries, '$.names[' || (entry.value ->> 10) || ']') AS names,
	json_array_length(entries, '$.names[' || (entry.value ->> 10) || ']') AS count,
	json_extract(entries, '$.names[' || (entry.value ->> 12) || ']') AS added,
	json_extract(entries, '$.names[' || (entry.value ->> 13) || ']') AS changed,
	json_extract(entries, '$.names[' || (entry.value ->> 14) || ']') AS deleted,
	entry.value ->> 11 AS request_id,
	json_extract(texts, '$[' || (entry.value ->> 8) || ']') AS client_address,
	json_extract(texts, '$[' || (entry.value ->> 9) || ']') AS user_agent,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'trust' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS trust_id,
	json_extract(texts, '$[' || (entry.value ->> 15) || ']') AS token
FROM audit_segments, json_each(entries, '$.entries') AS entry;
