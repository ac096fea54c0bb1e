CREATE TABLE `audit_cosignatures` (
	`size` integer NOT NULL,
	`witness` text NOT NULL,
	`at` integer NOT NULL,
	`line` text NOT NULL,
	PRIMARY KEY(`witness`, `size`)
) STRICT, WITHOUT ROWID;
