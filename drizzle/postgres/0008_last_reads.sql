CREATE TABLE "last_reads" (
	"project_id" text COLLATE "C" NOT NULL,
	"kind" text COLLATE "C" NOT NULL,
	"environment" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"at" bigint NOT NULL,
	CONSTRAINT "last_reads_project_id_kind_environment_name_pk" PRIMARY KEY("project_id","kind","environment","name")
);
--> statement-breakpoint
CREATE TABLE "last_reads_known" (
	"id" integer PRIMARY KEY NOT NULL,
	"size" bigint NOT NULL,
	"since_at" bigint NOT NULL,
	"by_name_since_at" bigint NOT NULL,
	CONSTRAINT "last_reads_known_rule" CHECK (id = 1)
);
--> statement-breakpoint
ALTER TABLE "last_reads" ADD CONSTRAINT "last_reads_project_id_projects_id_fk" FOREIGN KEY ("project_id") REFERENCES "public"."projects"("id") ON DELETE cascade ON UPDATE no action;