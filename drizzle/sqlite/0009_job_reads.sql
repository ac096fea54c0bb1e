CREATE TABLE `job_reads` (
	`trust_id` text NOT NULL,
	`job` blob NOT NULL,
	`reads` integer NOT NULL,
	`ends_at` integer NOT NULL,
	PRIMARY KEY(`trust_id`, `job`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `job_reads_end` ON `job_reads` (`ends_at`);