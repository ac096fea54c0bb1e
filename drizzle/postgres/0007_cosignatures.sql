CREATE TABLE "audit_cosignatures" (
	"size" bigint NOT NULL,
	"witness" text COLLATE "C" NOT NULL,
	"at" bigint NOT NULL,
	"line" text COLLATE "C" NOT NULL,
	CONSTRAINT "audit_cosignatures_witness_size_pk" PRIMARY KEY("witness","size")
);
