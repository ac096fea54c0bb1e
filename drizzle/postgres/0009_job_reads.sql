CREATE TABLE "job_reads" (
	"trust_id" text COLLATE "C" NOT NULL,
	"job" "bytea" NOT NULL,
	"reads" bigint NOT NULL,
	"ends_at" bigint NOT NULL,
	CONSTRAINT "job_reads_trust_id_job_pk" PRIMARY KEY("trust_id","job")
);
--> statement-breakpoint
CREATE INDEX "job_reads_end" ON "job_reads" USING btree ("ends_at");