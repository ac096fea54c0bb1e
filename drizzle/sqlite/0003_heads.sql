ALTER TABLE `audit_heads` ADD `roster` text;--> statement-breakpoint
ALTER TABLE `audit_heads` ADD `seal` blob;