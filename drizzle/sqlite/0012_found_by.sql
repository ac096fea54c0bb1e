DROP INDEX `api_keys_trusts`;--> statement-breakpoint
ALTER TABLE `api_keys` ADD `found_by` text;--> statement-breakpoint
CREATE INDEX `api_keys_found_by` ON `api_keys` (`found_by`) WHERE found_by is not null;