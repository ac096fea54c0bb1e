-- keyLookups

select ask.n as n,
  "api_keys"."id" as "keyId",
  "api_keys"."organization_id" as "organizationId",
  "api_keys"."surfaces" as surfaces,
  "api_keys"."resources" as resources,
  "api_keys"."environments" as environments,
  case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end as projects,
  "api_keys"."expires_at" as "expiresAt",
  case when "api_keys"."trust" is not null then coalesce(case when octet_length("api_keys"."trust") <= 16384 then "api_keys"."trust" end, '') end as trust,
  "api_keys"."rate" as rate,
  case when "api_keys"."ranges" is not null then coalesce(case when octet_length("api_keys"."ranges") <= 4096 then "api_keys"."ranges" end, '') end as "from",
  "api_keys"."digest" as digest,
  case when octet_length("api_keys"."grant_seal") <= 32 then "api_keys"."grant_seal" end as "grantSeal",
  case when "api_keys"."revoked_at" is null
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
  case when octet_length("organizations"."slug") <= 64 then "organizations"."slug" end as "organizationSlug",
  case when octet_length("organizations"."name") <= 1024 then "organizations"."name" end as "organizationName",
  case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
  "projects"."id" as "projectId",
  case ask.kind when 'files' then case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end end as counts,
  case when exists (select 1
    from "audit_exceptions") then 1 else 0 end as excepted,
  (select "audit_heads"."seq"
    from "audit_heads"
    where "audit_heads"."lane" = 'commands') as people,
  extract(epoch from pg_catalog.pg_postmaster_start_time())::text as server,
  (select string_agg(concat_ws(' ', "sets"."environment", concat_ws(' ', "sets"."version", encode(case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end, 'hex'), "sets".xmin, "sets".ctid, "data_keys".xmin, "data_keys".ctid)), ';')
    from "sets"
    left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
    and "data_keys"."generation" = "sets"."generation"
    where "sets"."project_id" = "projects"."id"
    and "sets"."kind" = ask.kind
    and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask.environments & "api_keys"."environments") <> 0) as sets
  from (select 0 as n,
    cast($1 as text) as digest,
    cast($2 as text) as slug,
    cast($3 as text) as kind,
    cast($4 as integer) as environments) as ask
  join lateral (select "api_keys"."id",
    "api_keys"."digest",
    "api_keys"."organization_id",
    "api_keys"."surfaces",
    "api_keys"."resources",
    "api_keys"."environments",
    "api_keys"."expires_at",
    "api_keys"."revoked_at",
    "api_keys"."trust",
    "api_keys"."rate",
    "api_keys"."ranges",
    case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end || '' as projects,
    "api_keys"."grant_seal"
    from "api_keys"
    where "api_keys"."digest" = decode(ask.digest, 'hex') offset 0) as "api_keys" on true
  join "organizations" on "organizations"."id" = "api_keys"."organization_id"
  left join lateral (select "projects"."id",
    "projects"."file_counts"
    from "projects"
    where "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    limit 1) as "projects" on true;

select found.*,
  case when excepted = 0
  and coalesce(octet_length(projects), 0) + coalesce(octet_length(trust), 0) <= 4096 then encode(sha256(convert_to(found::text, 'UTF8')), 'hex') end as state
  from (select ask.n as n,
    "api_keys"."id" as "keyId",
    "api_keys"."organization_id" as "organizationId",
    "api_keys"."surfaces" as surfaces,
    "api_keys"."resources" as resources,
    "api_keys"."environments" as environments,
    case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end as projects,
    "api_keys"."expires_at" as "expiresAt",
    case when "api_keys"."trust" is not null then coalesce(case when octet_length("api_keys"."trust") <= 16384 then "api_keys"."trust" end, '') end as trust,
    "api_keys"."rate" as rate,
    case when "api_keys"."ranges" is not null then coalesce(case when octet_length("api_keys"."ranges") <= 4096 then "api_keys"."ranges" end, '') end as "from",
    "api_keys"."digest" as digest,
    case when octet_length("api_keys"."grant_seal") <= 32 then "api_keys"."grant_seal" end as "grantSeal",
    case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."slug") <= 64 then "organizations"."slug" end as "organizationSlug",
    case when octet_length("organizations"."name") <= 1024 then "organizations"."name" end as "organizationName",
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as "projectId",
    case ask.kind when 'files' then case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end end as counts,
    case when exists (select 1
      from "audit_exceptions") then 1 else 0 end as excepted,
    (select "audit_heads"."seq"
      from "audit_heads"
      where "audit_heads"."lane" = 'commands') as people,
    extract(epoch from pg_catalog.pg_postmaster_start_time())::text as server,
    (select string_agg(concat_ws(' ', "sets"."environment", concat_ws(' ', "sets"."version", encode(case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end, 'hex'), "sets".xmin, "sets".ctid, "data_keys".xmin, "data_keys".ctid)), ';')
      from "sets"
      left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
      and "data_keys"."generation" = "sets"."generation"
      where "sets"."project_id" = "projects"."id"
      and "sets"."kind" = ask.kind
      and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask.environments & "api_keys"."environments") <> 0) as sets
    from (select 0 as n,
      cast($1 as text) as digest,
      cast($2 as text) as slug,
      cast($3 as text) as kind,
      cast($4 as integer) as environments) as ask
    join lateral (select "api_keys"."id",
      "api_keys"."digest",
      "api_keys"."organization_id",
      "api_keys"."surfaces",
      "api_keys"."resources",
      "api_keys"."environments",
      "api_keys"."expires_at",
      "api_keys"."revoked_at",
      "api_keys"."trust",
      "api_keys"."rate",
      "api_keys"."ranges",
      case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end || '' as projects,
      "api_keys"."grant_seal"
      from "api_keys"
      where "api_keys"."digest" = decode(ask.digest, 'hex') offset 0) as "api_keys" on true
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join lateral (select "projects"."id",
      "projects"."file_counts"
      from "projects"
      where "projects"."organization_id" = "api_keys"."organization_id"
      and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
      and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
      limit 1) as "projects" on true offset 0) as found;

select ask.n as n,
  "api_keys"."id" as "keyId",
  "api_keys"."organization_id" as "organizationId",
  "api_keys"."surfaces" as surfaces,
  "api_keys"."resources" as resources,
  "api_keys"."environments" as environments,
  case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end as projects,
  "api_keys"."expires_at" as "expiresAt",
  case when "api_keys"."trust" is not null then coalesce(case when octet_length("api_keys"."trust") <= 16384 then "api_keys"."trust" end, '') end as trust,
  "api_keys"."rate" as rate,
  case when "api_keys"."ranges" is not null then coalesce(case when octet_length("api_keys"."ranges") <= 4096 then "api_keys"."ranges" end, '') end as "from",
  "api_keys"."digest" as digest,
  case when octet_length("api_keys"."grant_seal") <= 32 then "api_keys"."grant_seal" end as "grantSeal",
  case when "api_keys"."revoked_at" is null
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
  case when octet_length("organizations"."slug") <= 64 then "organizations"."slug" end as "organizationSlug",
  case when octet_length("organizations"."name") <= 1024 then "organizations"."name" end as "organizationName",
  case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
  "projects"."id" as "projectId",
  case ask.kind when 'files' then case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end end as counts,
  case when exists (select 1
    from "audit_exceptions") then 1 else 0 end as excepted,
  (select "audit_heads"."seq"
    from "audit_heads"
    where "audit_heads"."lane" = 'commands') as people,
  extract(epoch from pg_catalog.pg_postmaster_start_time())::text as server,
  (select string_agg(concat_ws(' ', "sets"."environment", concat_ws(' ', "sets"."version", encode(case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end, 'hex'), "sets".xmin, "sets".ctid, "data_keys".xmin, "data_keys".ctid)), ';')
    from "sets"
    left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
    and "data_keys"."generation" = "sets"."generation"
    where "sets"."project_id" = "projects"."id"
    and "sets"."kind" = ask.kind
    and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask.environments & "api_keys"."environments") <> 0) as sets
  from jsonb_to_recordset($1::text::jsonb) as ask(n integer, digest text, slug text, kind text, environments integer)
  join lateral (select "api_keys"."id",
    "api_keys"."digest",
    "api_keys"."organization_id",
    "api_keys"."surfaces",
    "api_keys"."resources",
    "api_keys"."environments",
    "api_keys"."expires_at",
    "api_keys"."revoked_at",
    "api_keys"."trust",
    "api_keys"."rate",
    "api_keys"."ranges",
    case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end || '' as projects,
    "api_keys"."grant_seal"
    from "api_keys"
    where "api_keys"."digest" = decode(ask.digest, 'hex') offset 0) as "api_keys" on true
  join "organizations" on "organizations"."id" = "api_keys"."organization_id"
  left join lateral (select "projects"."id",
    "projects"."file_counts"
    from "projects"
    where "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    limit 1) as "projects" on true;

select "audit_exceptions"."subject" as subject
  from "audit_exceptions"
  where "audit_exceptions"."subject" = any(array(select jsonb_array_elements_text($1::text::jsonb)));

-- setQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast($1 as text) as key_id,
      cast($2 as text) as slug,
      cast($3 as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "sets"."environment" as environment,
  concat_ws(' ', "sets"."version", encode(case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end, 'hex'), "sets".xmin, "sets".ctid, "data_keys".xmin, "data_keys".ctid) as "rowVersion",
  "sets"."version" as version,
  "sets"."generation" as generation,
  case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end as "listingMac",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast($4 as integer)) <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= cast($5 as integer) then "sets"."listing" end as listing,
  octet_length("sets"."listing") as "listingBytes",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast($6 as integer)) <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= cast($7 as integer)
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast($8 as integer)) <> 0 then "sets"."sealed" end as sealed,
  octet_length("sets"."sealed") as "sealedBytes",
  case when octet_length("data_keys"."root_id") <= 64 then "data_keys"."root_id" end as "rootId",
  case when octet_length("data_keys"."wrapped") <= 128 then "data_keys"."wrapped" end as wrapped
  from standing
  left join "sets" on "sets"."project_id" = standing.reached
  and "sets"."kind" = cast($9 as text)
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast($10 as integer) & standing.environments) <> 0
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('set:' || "sets"."project_id" || '/' || "sets"."kind" || '/' || "sets"."environment", 'project:' || "sets"."project_id"))
  left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
  and "data_keys"."generation" = "sets"."generation";

-- projectQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast($1 as text) as key_id,
      cast($2 as text) as slug,
      cast($3 as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "projects"."id" as id,
  case when octet_length("projects"."slug") <= 64 then "projects"."slug" end as slug,
  case when octet_length("projects"."name") <= 1024 then "projects"."name" end as name,
  case when octet_length("projects"."variable_counts") <= 128 then "projects"."variable_counts" end as "variableCounts",
  case when octet_length("projects"."account_counts") <= 128 then "projects"."account_counts" end as "accountCounts",
  case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end as "fileCounts",
  case when octet_length("projects"."changed_at") <= 128 then "projects"."changed_at" end as "changedAt",
  "projects"."created_at" as "createdAt"
  from standing
  left join "projects" on "projects"."id" = standing.reached
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('project:' || "projects"."id"));

select case when "api_keys"."revoked_at" is null
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
  case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
  'any' as "projectId",
  "projects"."id" as id,
  case when octet_length("projects"."slug") <= 64 then "projects"."slug" end as slug,
  case when octet_length("projects"."name") <= 1024 then "projects"."name" end as name,
  case when octet_length("projects"."variable_counts") <= 128 then "projects"."variable_counts" end as "variableCounts",
  case when octet_length("projects"."account_counts") <= 128 then "projects"."account_counts" end as "accountCounts",
  case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end as "fileCounts",
  case when octet_length("projects"."changed_at") <= 128 then "projects"."changed_at" end as "changedAt",
  "projects"."created_at" as "createdAt"
  from "api_keys"
  join "organizations" on "organizations"."id" = "api_keys"."organization_id"
  left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('project:' || "projects"."id"))
  where "api_keys"."id" = $1
  order by "projects"."slug"
  limit 1001;

select case when "api_keys"."revoked_at" is null
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
  case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
  'any' as "projectId",
  "projects"."id" as id,
  case when octet_length("projects"."slug") <= 64 then "projects"."slug" end as slug,
  case when octet_length("projects"."name") <= 1024 then "projects"."name" end as name,
  case when octet_length("projects"."variable_counts") <= 128 then "projects"."variable_counts" end as "variableCounts",
  case when octet_length("projects"."account_counts") <= 128 then "projects"."account_counts" end as "accountCounts",
  case when octet_length("projects"."file_counts") <= 128 then "projects"."file_counts" end as "fileCounts",
  case when octet_length("projects"."changed_at") <= 128 then "projects"."changed_at" end as "changedAt",
  "projects"."created_at" as "createdAt"
  from "api_keys"
  join "organizations" on "organizations"."id" = "api_keys"."organization_id"
  left join (jsonb_each_text($1::text::jsonb) as listed join "projects" on "projects"."id" = listed.value and "projects"."slug" = listed."key") on "projects"."organization_id" || '' = "api_keys"."organization_id"
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('project:' || "projects"."id"))
  where "api_keys"."id" = $2
  limit 1001;

-- contentQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast($1 as text) as key_id,
      cast($2 as text) as slug,
      cast($3 as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "file_contents"."id" as id,
  "file_contents"."size" as size,
  concat_ws(' ', "file_contents".xmin, "file_contents".ctid, "data_keys".xmin, "data_keys".ctid) as "rowVersion"
  from standing
  left join "file_contents" on "file_contents"."project_id" || '' = standing.reached
  and "file_contents"."id" = any(array(select jsonb_array_elements_text($4::text::jsonb)))
  left join "data_keys" on "data_keys"."project_id" = "file_contents"."project_id"
  and "data_keys"."generation" = "file_contents"."generation";

with standing as (select ask.n as n,
    ask.ids as ids,
    case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from jsonb_to_recordset($1::text::jsonb) as ask(n integer, key_id text, slug text, project_id text, ids text)
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.n as n,
  standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  (select string_agg(concat_ws(' ', "file_contents"."id", "file_contents"."size", concat_ws(' ', "file_contents".xmin, "file_contents".ctid, "data_keys".xmin, "data_keys".ctid)), ';')
    from "file_contents"
    left join "data_keys" on "data_keys"."project_id" = "file_contents"."project_id"
    and "data_keys"."generation" = "file_contents"."generation"
    where "file_contents"."project_id" || '' = standing.reached
    and "file_contents"."id" = any(array(select jsonb_array_elements_text(standing.ids::text::jsonb)))) as contents
  from standing;

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > floor(extract(epoch from clock_timestamp()) * 1000)::bigint) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast($1 as text) as key_id,
      cast($2 as text) as slug,
      cast($3 as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or strpos(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "file_contents"."id" as id,
  "file_contents"."size" as size,
  concat_ws(' ', "file_contents".xmin, "file_contents".ctid, "data_keys".xmin, "data_keys".ctid) as "rowVersion",
  "file_contents"."generation" as generation,
  octet_length("file_contents"."sealed") as "sealedBytes",
  case when octet_length("file_contents"."sealed") <= 8389632 then substr("file_contents"."sealed", cast($4 as integer), cast($5 as integer)) end as bytes,
  case when octet_length("data_keys"."root_id") <= 64 then "data_keys"."root_id" end as "rootId",
  case when octet_length("data_keys"."wrapped") <= 128 then "data_keys"."wrapped" end as wrapped
  from standing
  left join "file_contents" on "file_contents"."project_id" || '' = standing.reached
  and "file_contents"."id" = any(array(select jsonb_array_elements_text($6::text::jsonb)))
  left join "data_keys" on "data_keys"."project_id" = "file_contents"."project_id"
  and "data_keys"."generation" = "file_contents"."generation";
