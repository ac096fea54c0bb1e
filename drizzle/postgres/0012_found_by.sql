DROP INDEX "api_keys_trusts";--> statement-breakpoint
ALTER TABLE "api_keys" ADD COLUMN "found_by" text COLLATE "C";--> statement-breakpoint
CREATE INDEX "api_keys_found_by" ON "api_keys" USING btree ("found_by") WHERE found_by is not null;