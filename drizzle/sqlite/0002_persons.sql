CREATE TABLE `rosters` (
	`id` text PRIMARY KEY NOT NULL,
	`version` integer NOT NULL,
	`listing` text NOT NULL,
	`mac` blob NOT NULL
) STRICT;
--> statement-breakpoint
CREATE UNIQUE INDEX `rosters_version` ON `rosters` (`version`);--> statement-breakpoint
DROP VIEW `audit_entries`;--> statement-breakpoint
CREATE VIEW `audit_entries` AS
SELECT lane, first_seq + entry.key AS seq, at,
	json_extract(texts, '$[' || (entry.value ->> 0) || ']') AS actor_type,
	json_extract(texts, '$[' || (entry.value ->> 1) || ']') AS actor,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'key' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS key_id,
	json_extract(texts, '$[' || (entry.value ->> 2) || ']') AS organization_id,
	json_extract(texts, '$[' || (entry.value ->> 3) || ']') AS organization,
	json_extract(texts, '$[' || (entry.value ->> 4) || ']') AS project_id,
	json_extract(texts, '$[' || (entry.value ->> 5) || ']') AS project,
	json_extract(texts, '$[' || (entry.value ->> 6) || ']') AS environment,
	json_extract(texts, '$[' || (entry.value ->> 7) || ']') AS action,
	json_extract(entries, '$.names[' || (entry.value ->> 10) || ']') AS names,
	json_array_length(entries, '$.names[' || (entry.value ->> 10) || ']') AS count,
	json_extract(entries, '$.names[' || (entry.value ->> 12) || ']') AS added,
	json_extract(entries, '$.names[' || (entry.value ->> 13) || ']') AS changed,
	json_extract(entries, '$.names[' || (entry.value ->> 14) || ']') AS deleted,
	entry.value ->> 11 AS request_id,
	json_extract(texts, '$[' || (entry.value ->> 8) || ']') AS client_address,
	json_extract(texts, '$[' || (entry.value ->> 9) || ']') AS user_agent,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'trust' THEN json_extract(texts, '$[' || (entry.value ->> 1) || ']') END AS trust_id,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'trust' THEN json_extract(texts, '$[' || (entry.value ->> 15) || ']') END AS token,
	CASE json_extract(texts, '$[' || (entry.value ->> 0) || ']') WHEN 'person' THEN coalesce(json_extract(texts, '$[' || (entry.value ->> 15) || ']'), '"os"') END AS actor_from
FROM audit_segments, json_each(entries, '$.entries') AS entry;
