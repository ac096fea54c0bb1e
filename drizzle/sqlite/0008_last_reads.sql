CREATE TABLE `last_reads` (
	`project_id` text NOT NULL,
	`kind` text NOT NULL,
	`environment` text NOT NULL,
	`name` text NOT NULL,
	`at` integer NOT NULL,
	PRIMARY KEY(`project_id`, `kind`, `environment`, `name`),
	FOREIGN KEY (`project_id`) REFERENCES `projects`(`id`) ON UPDATE no action ON DELETE cascade
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `last_reads_known` (
	`id` integer PRIMARY KEY NOT NULL,
	`size` integer NOT NULL,
	`since_at` integer NOT NULL,
	`by_name_since_at` integer NOT NULL,
	CONSTRAINT "last_reads_known_rule" CHECK(id = 1)
) STRICT;
