-- keyLookups

select "api_keys"."id" as "keyId",
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
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
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
  '' as server,
  "sets"."environment" as environment,
  '' as "rowVersion",
  "sets"."version" as version,
  "sets"."generation" as generation,
  case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end as "listingMac",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask."values") <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= 262144 then "sets"."listing" end as listing,
  octet_length("sets"."listing") as "listingBytes",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask."values") <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= 262144
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask."values") <> 0 then "sets"."sealed" end as sealed,
  octet_length("sets"."sealed") as "sealedBytes",
  case when octet_length("data_keys"."root_id") <= 64 then "data_keys"."root_id" end as "rootId",
  case when octet_length("data_keys"."wrapped") <= 128 then "data_keys"."wrapped" end as wrapped
  from (select ? as "digest",
    ? as "slug",
    ? as "kind",
    ? as "environments",
    ? as "values") as ask
  join "api_keys" on "api_keys"."digest" = ask.digest
  join "organizations" on "organizations"."id" = "api_keys"."organization_id"
  left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
  and "projects"."slug" = case when ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
  and ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
  left join "sets" on "sets"."project_id" = "projects"."id"
  and "sets"."kind" = ask.kind
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & ask.environments & "api_keys"."environments") <> 0
  left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
  and "data_keys"."generation" = "sets"."generation";

select "audit_exceptions"."subject" as subject
  from "audit_exceptions"
  where "audit_exceptions"."subject" in (select value
    from json_each(?));

-- setQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast(? as text) as key_id,
      cast(? as text) as slug,
      cast(? as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "sets"."environment" as environment,
  '' as "rowVersion",
  "sets"."version" as version,
  "sets"."generation" as generation,
  case when octet_length("sets"."listing_mac") <= 32 then "sets"."listing_mac" end as "listingMac",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast(? as integer)) <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= cast(? as integer) then "sets"."listing" end as listing,
  octet_length("sets"."listing") as "listingBytes",
  case when octet_length("sets"."listing") + case when (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast(? as integer)) <> 0 then coalesce(octet_length("sets"."sealed"), 0) else 0 end <= cast(? as integer)
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast(? as integer)) <> 0 then "sets"."sealed" end as sealed,
  octet_length("sets"."sealed") as "sealedBytes",
  case when octet_length("data_keys"."root_id") <= 64 then "data_keys"."root_id" end as "rootId",
  case when octet_length("data_keys"."wrapped") <= 128 then "data_keys"."wrapped" end as wrapped
  from standing
  left join "sets" on "sets"."project_id" = standing.reached
  and "sets"."kind" = cast(? as text)
  and (case "sets"."environment" when 'development' then 1 when 'staging' then 2 when 'production' then 4 else 0 end & cast(? as integer) & standing.environments) <> 0
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('set:' || "sets"."project_id" || '/' || "sets"."kind" || '/' || "sets"."environment", 'project:' || "sets"."project_id"))
  left join "data_keys" on "data_keys"."project_id" = "sets"."project_id"
  and "data_keys"."generation" = "sets"."generation";

-- projectQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast(? as text) as key_id,
      cast(? as text) as slug,
      cast(? as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
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
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
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
  where "api_keys"."id" = ?
  order by "projects"."slug"
  limit 1001;

select case when "api_keys"."revoked_at" is null
  and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
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
  left join (json_each(?) as listed join "projects" on "projects"."id" = listed.value and "projects"."slug" = listed."key") on "projects"."organization_id" || '' = "api_keys"."organization_id"
  and not exists (select 1
    from "audit_exceptions"
    where "audit_exceptions"."subject" in ('project:' || "projects"."id"))
  where "api_keys"."id" = ?
  limit 1001;

-- contentQueries

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast(? as text) as key_id,
      cast(? as text) as slug,
      cast(? as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "file_contents"."id" as id,
  "file_contents"."size" as size,
  '' as "rowVersion"
  from standing
  left join "file_contents" on "file_contents"."project_id" || '' = standing.reached
  and "file_contents"."id" in (select value
    from json_each(?))
  left join "data_keys" on "data_keys"."project_id" = "file_contents"."project_id"
  and "data_keys"."generation" = "file_contents"."generation";

with standing as (select case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end as live,
    case when octet_length("organizations"."plan") <= 16 then "organizations"."plan" end as plan,
    "projects"."id" as project_id,
    case when case when "api_keys"."revoked_at" is null
    and ("api_keys"."expires_at" is null or "api_keys"."expires_at" > cast(unixepoch('subsec') * 1000 as integer)) then 1 else 0 end = 1
    and "organizations"."plan" = 'pro' then "projects"."id" end as reached,
    "api_keys"."environments" as environments
    from (select cast(? as text) as key_id,
      cast(? as text) as slug,
      cast(? as text) as project_id) as ask
    join "api_keys" on "api_keys"."id" = ask.key_id
    join "organizations" on "organizations"."id" = "api_keys"."organization_id"
    left join "projects" on "projects"."organization_id" = "api_keys"."organization_id"
    and "projects"."slug" = case when ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || '') > 0) then ask.slug else '' end
    and ("api_keys"."projects" is null or instr(case when "api_keys"."projects" is not null then coalesce(case when octet_length("api_keys"."projects") <= 262144 then "api_keys"."projects" end, '') end, '"' || ask.slug || '":"' || "projects"."id" || '"') > 0)
    and "projects"."id" = ask.project_id)
  select standing.live as live,
  standing.plan as plan,
  standing.project_id as "projectId",
  "file_contents"."id" as id,
  "file_contents"."size" as size,
  '' as "rowVersion",
  "file_contents"."generation" as generation,
  octet_length("file_contents"."sealed") as "sealedBytes",
  case when octet_length("file_contents"."sealed") <= 8389632 then "file_contents"."sealed" end as bytes,
  case when octet_length("data_keys"."root_id") <= 64 then "data_keys"."root_id" end as "rootId",
  case when octet_length("data_keys"."wrapped") <= 128 then "data_keys"."wrapped" end as wrapped
  from standing
  left join "file_contents" on "file_contents"."project_id" || '' = standing.reached
  and "file_contents"."id" in (select value
    from json_each(?))
  left join "data_keys" on "data_keys"."project_id" = "file_contents"."project_id"
  and "data_keys"."generation" = "file_contents"."generation";
