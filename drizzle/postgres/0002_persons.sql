CREATE TABLE "rosters" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"version" bigint NOT NULL,
	"listing" text COLLATE "C" NOT NULL,
	"mac" "bytea" NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX "rosters_version" ON "rosters" USING btree ("version");--> statement-breakpoint
CREATE OR REPLACE VIEW "audit_entries" AS
SELECT lane, first_seq + n - 1 AS seq, at,
	parsed.texts ->> (entry ->> 0)::integer AS actor_type,
	parsed.texts ->> (entry ->> 1)::integer AS actor,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'key' THEN parsed.texts ->> (entry ->> 1)::integer END AS key_id,
	parsed.texts ->> (entry ->> 2)::integer AS organization_id,
	parsed.texts ->> (entry ->> 3)::integer AS organization,
	parsed.texts ->> (entry ->> 4)::integer AS project_id,
	parsed.texts ->> (entry ->> 5)::integer AS project,
	parsed.texts ->> (entry ->> 6)::integer AS environment,
	parsed.texts ->> (entry ->> 7)::integer AS action,
	(names -> (entry ->> 10)::integer)::text AS names,
	json_array_length(names -> (entry ->> 10)::integer) AS count,
	(names -> (entry ->> 12)::integer)::text AS added,
	(names -> (entry ->> 13)::integer)::text AS changed,
	(names -> (entry ->> 14)::integer)::text AS deleted,
	entry ->> 11 AS request_id,
	parsed.texts ->> (entry ->> 8)::integer AS client_address,
	parsed.texts ->> (entry ->> 9)::integer AS user_agent,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'trust' THEN parsed.texts ->> (entry ->> 1)::integer END AS trust_id,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'trust' THEN parsed.texts ->> (entry ->> 15)::integer END AS token,
	CASE parsed.texts ->> (entry ->> 0)::integer WHEN 'person' THEN coalesce(parsed.texts ->> (entry ->> 15)::integer, '"os"') END AS actor_from
FROM audit_segments,
	LATERAL (SELECT audit_segments.texts::jsonb AS texts OFFSET 0) AS parsed,
	json_to_record(audit_segments.entries::json) AS segment (names json, entries jsonb),
	jsonb_array_elements(segment.entries) WITH ORDINALITY AS numbered (entry, n);
