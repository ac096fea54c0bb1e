CREATE TABLE `accounts` (
	`id` text NOT NULL,
	`project_id` text NOT NULL,
	`name` text NOT NULL,
	`environments` integer NOT NULL,
	`version` integer NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `name`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "accounts_environments_rule" CHECK(environments between 1 and 7),
	CONSTRAINT "accounts_version_rule" CHECK(version >= 1)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `accounts_reach_1` ON `accounts` (`project_id`,`name`) WHERE (environments & 1) <> 0;--> statement-breakpoint
CREATE INDEX `accounts_reach_2` ON `accounts` (`project_id`,`name`) WHERE (environments & 2) <> 0;--> statement-breakpoint
CREATE INDEX `accounts_reach_3` ON `accounts` (`project_id`,`name`) WHERE (environments & 3) <> 0;--> statement-breakpoint
CREATE INDEX `accounts_reach_4` ON `accounts` (`project_id`,`name`) WHERE (environments & 4) <> 0;--> statement-breakpoint
CREATE INDEX `accounts_reach_5` ON `accounts` (`project_id`,`name`) WHERE (environments & 5) <> 0;--> statement-breakpoint
CREATE INDEX `accounts_reach_6` ON `accounts` (`project_id`,`name`) WHERE (environments & 6) <> 0;--> statement-breakpoint
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`name` text NOT NULL,
	`digest` blob NOT NULL,
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
CREATE TABLE `audit_checkpoints` (
	`lane` text PRIMARY KEY NOT NULL,
	`seq` integer NOT NULL,
	`mac` blob NOT NULL,
	`seal` blob NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `audit_entries` (
	`lane` text NOT NULL,
	`seq` integer NOT NULL,
	`at` integer NOT NULL,
	`key_id` text NOT NULL,
	`organization_id` text NOT NULL,
	`organization` text NOT NULL,
	`project_id` text NOT NULL,
	`project` text NOT NULL,
	`environment` text,
	`action` text NOT NULL,
	`names` text NOT NULL,
	`count` integer NOT NULL,
	`request_id` text NOT NULL,
	`client_address` text NOT NULL,
	`user_agent` text NOT NULL,
	`mac` blob NOT NULL,
	PRIMARY KEY(`lane`, `seq`, `at`),
	CONSTRAINT "audit_entries_action_rule" CHECK(action in ('variables.read', 'accounts.read', 'file.read', 'secrets.read'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `audit_entries_key` ON `audit_entries` (`key_id`,`at`);--> statement-breakpoint
CREATE INDEX `audit_entries_organization` ON `audit_entries` (`organization_id`,`at`);--> statement-breakpoint
CREATE INDEX `audit_entries_at` ON `audit_entries` (`at`);--> statement-breakpoint
CREATE TABLE `data_keys` (
	`project_id` text NOT NULL,
	`generation` integer NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `generation`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "data_keys_generation_rule" CHECK(generation >= 1)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `files` (
	`id` text PRIMARY KEY NOT NULL,
	`project_id` text NOT NULL,
	`path` text NOT NULL,
	`environments` integer NOT NULL,
	`name` text NOT NULL,
	`mode` text NOT NULL,
	`size` integer NOT NULL,
	`sha256` text NOT NULL,
	`content_type` text NOT NULL,
	`version` integer NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	`updated_at` integer NOT NULL,
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "files_environments_rule" CHECK(environments between 1 and 7),
	CONSTRAINT "files_mode_rule" CHECK(mode in ('0600', '0400')),
	CONSTRAINT "files_size_rule" CHECK(size between 0 and 8388608),
	CONSTRAINT "files_sha256_rule" CHECK(length(sha256) = 64 and sha256 not glob '*[^0-9a-f]*'),
	CONSTRAINT "files_version_rule" CHECK(version >= 1)
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `files_development` ON `files` (`project_id`,`path`) WHERE (environments & 1) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX `files_staging` ON `files` (`project_id`,`path`) WHERE (environments & 2) <> 0;--> statement-breakpoint
CREATE UNIQUE INDEX `files_production` ON `files` (`project_id`,`path`) WHERE (environments & 4) <> 0;--> statement-breakpoint
CREATE TABLE `item_sets` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	`listing` text NOT NULL,
	PRIMARY KEY(`project_id`, `kind`, `environment`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`environment`) REFERENCES `project_environments`(`project_id`,`environment`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "item_sets_kind_rule" CHECK(kind in ('accounts', 'files'))
) STRICT;
--> statement-breakpoint
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
CREATE TABLE `project_environments` (
	`project_id` text NOT NULL,
	`environment` text NOT NULL,
	`revision` integer NOT NULL,
	`state` text DEFAULT (lower(hex(randomblob(16)))) NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `environment`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	CONSTRAINT "project_environments_rule" CHECK(environment in ('development', 'staging', 'production'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `projects` (
	`id` text PRIMARY KEY NOT NULL,
	`organization_id` text NOT NULL,
	`slug` text NOT NULL,
	`name` text NOT NULL,
	`variable_counts` text NOT NULL,
	`account_counts` text NOT NULL,
	`file_counts` text NOT NULL,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`organization_id`) REFERENCES `organizations`(`id`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "projects_slug_rule" CHECK(length(slug) between 1 and 64 and slug not glob '*[^a-z0-9-]*' and slug not glob '-*')
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `projects_place` ON `projects` (`organization_id`,`slug`);--> statement-breakpoint
CREATE TABLE `system_keys` (
	`purpose` text PRIMARY KEY NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "system_keys_rule" CHECK(purpose in ('pepper', 'grant', 'audit'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `variable_sets` (
	`project_id` text NOT NULL,
	`environment` text NOT NULL,
	`revision` integer NOT NULL,
	`generation` integer NOT NULL,
	`listing` text NOT NULL,
	`sealed` blob NOT NULL,
	PRIMARY KEY(`project_id`, `environment`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`environment`) REFERENCES `project_environments`(`project_id`,`environment`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action
) STRICT;
--> statement-breakpoint
CREATE TABLE `variables` (
	`id` text NOT NULL,
	`project_id` text NOT NULL,
	`environment` text NOT NULL,
	`name` text NOT NULL,
	`version` integer NOT NULL,
	`generation` integer NOT NULL,
	`sealed` blob NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `environment`, `name`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade,
	FOREIGN KEY (`project_id`,`generation`) REFERENCES `data_keys`(`project_id`,`generation`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "variables_environment_rule" CHECK(environment in ('development', 'staging', 'production')),
	CONSTRAINT "variables_name_rule" CHECK(length(name) between 1 and 255 and name not glob '*[^A-Za-z0-9_]*' and name not glob '[0-9]*' and name not in ('_', '__proto__')),
	CONSTRAINT "variables_version_rule" CHECK(version >= 1)
) STRICT, WITHOUT ROWID;--> statement-breakpoint
CREATE TRIGGER `project_environments_insert_state` AFTER INSERT ON `project_environments` BEGIN
	UPDATE `project_environments` SET `state` = lower(hex(randomblob(16))) WHERE `project_id` = NEW.`project_id` AND `environment` = NEW.`environment`;
END;--> statement-breakpoint
CREATE TRIGGER `project_environments_update_state` AFTER UPDATE OF `revision`, `state` ON `project_environments` BEGIN
	UPDATE `project_environments` SET `state` = lower(hex(randomblob(16))) WHERE `project_id` = NEW.`project_id` AND `environment` = NEW.`environment`;
END;--> statement-breakpoint
CREATE TRIGGER `variables_insert_revision` AFTER INSERT ON `variables` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = NEW.`project_id` AND `environment` = NEW.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `variables_update_revision` AFTER UPDATE ON `variables` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = OLD.`project_id` AND `environment` = OLD.`environment`) OR (`project_id` = NEW.`project_id` AND `environment` = NEW.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `variables_delete_revision` AFTER DELETE ON `variables` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = OLD.`project_id` AND `environment` = OLD.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `variable_sets_insert_revision` AFTER INSERT ON `variable_sets` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = NEW.`project_id` AND `environment` = NEW.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `variable_sets_update_revision` AFTER UPDATE ON `variable_sets` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = OLD.`project_id` AND `environment` = OLD.`environment`) OR (`project_id` = NEW.`project_id` AND `environment` = NEW.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `variable_sets_delete_revision` AFTER DELETE ON `variable_sets` BEGIN
	UPDATE `project_environments` SET `revision` = `revision` + 1 WHERE (`project_id` = OLD.`project_id` AND `environment` = OLD.`environment`);
END;--> statement-breakpoint
CREATE TRIGGER `data_keys_insert_state` AFTER INSERT ON `data_keys` BEGIN
	UPDATE `project_environments` SET `state` = lower(hex(randomblob(16))) WHERE `project_id` = NEW.`project_id`;
END;--> statement-breakpoint
CREATE TRIGGER `data_keys_update_state` AFTER UPDATE ON `data_keys` BEGIN
	UPDATE `project_environments` SET `state` = lower(hex(randomblob(16))) WHERE `project_id` IN (OLD.`project_id`, NEW.`project_id`);
END;--> statement-breakpoint
CREATE TRIGGER `data_keys_delete_state` AFTER DELETE ON `data_keys` BEGIN
	UPDATE `project_environments` SET `state` = lower(hex(randomblob(16))) WHERE `project_id` = OLD.`project_id`;
END;
