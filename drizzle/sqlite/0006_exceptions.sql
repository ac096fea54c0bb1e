CREATE TABLE `audit_exceptions` (
	`subject` text PRIMARY KEY NOT NULL,
	`recorded` text NOT NULL,
	`found` text NOT NULL,
	`at` integer NOT NULL,
	`seal` blob NOT NULL
) STRICT;
