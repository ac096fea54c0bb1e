-- A leaf is what a lane wrote in a round, no longer a segment. No release had the tree of before: the notary makes it again.
DELETE FROM "audit_cosignatures";--> statement-breakpoint
DELETE FROM "audit_checkpoints_signed";--> statement-breakpoint
DELETE FROM "audit_leaves";--> statement-breakpoint
ALTER TABLE "audit_leaves" ADD COLUMN "first_seq" bigint NOT NULL;