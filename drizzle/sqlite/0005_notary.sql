CREATE TABLE `audit_checkpoints_signed` (
	`size` integer PRIMARY KEY NOT NULL,
	`root` blob NOT NULL,
	`at` integer NOT NULL,
	`note` text NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `audit_leaves` (
	`leaf` integer PRIMARY KEY NOT NULL,
	`lane` text NOT NULL,
	`last_seq` integer NOT NULL,
	`hashes` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `audit_leaves_segment` ON `audit_leaves` (`lane`,`last_seq`);--> statement-breakpoint
CREATE TABLE `audit_signers` (
	`generation` integer PRIMARY KEY NOT NULL,
	`public_key` blob NOT NULL,
	`created_at` integer NOT NULL,
	`root_id` text NOT NULL,
	`wrapped` blob NOT NULL
) STRICT;
