CREATE TABLE "audit_exceptions" (
	"subject" text COLLATE "C" PRIMARY KEY NOT NULL,
	"recorded" text COLLATE "C" NOT NULL,
	"found" text COLLATE "C" NOT NULL,
	"at" bigint NOT NULL,
	"seal" "bytea" NOT NULL
);
