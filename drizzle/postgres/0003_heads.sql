ALTER TABLE "audit_heads" ADD COLUMN "roster" text COLLATE "C";--> statement-breakpoint
ALTER TABLE "audit_heads" ADD COLUMN "seal" "bytea";