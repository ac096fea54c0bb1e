CREATE TABLE "audit_checkpoints_signed" (
	"size" bigint PRIMARY KEY NOT NULL,
	"root" "bytea" NOT NULL,
	"at" bigint NOT NULL,
	"note" text COLLATE "C" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_leaves" (
	"leaf" bigint PRIMARY KEY NOT NULL,
	"lane" text COLLATE "C" NOT NULL,
	"last_seq" bigint NOT NULL,
	"hashes" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE TABLE "audit_signers" (
	"generation" integer PRIMARY KEY NOT NULL,
	"public_key" "bytea" NOT NULL,
	"created_at" bigint NOT NULL,
	"root_id" text COLLATE "C" NOT NULL,
	"wrapped" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "audit_leaves_segment" ON "audit_leaves" USING btree ("lane","last_seq");