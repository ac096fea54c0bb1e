import { type Environment, environments } from "../../src/core/names.ts";

/*
 * What the contract says about every request: the gates as a list of ifs over plain values. Nothing is taken from `src`
 * except the names of the environments.
 */

export type Surface = "rest_api" | "mcp_server" | "ci_action";

export type ModelProject = {
  readonly id: string;
  readonly slug: string;
  readonly name: string;
  /** Index of its organization. */
  readonly owner: number;
  readonly variables: Readonly<Record<Environment, Readonly<Record<string, string>>>>;
  readonly accounts: readonly ModelAccount[];
  readonly files: readonly ModelFile[];
  /** Environments in which the values of variables do not open. */
  readonly broken: readonly Environment[];
  /** Environments in which no listing verifies. */
  readonly forged: readonly Environment[];
  /** Names that no dotenv text can carry, by environment. */
  readonly unrepresentable: Partial<Readonly<Record<Environment, readonly string[]>>>;
  /** How many files the project is said to hold. */
  readonly fileTotal: number;
  readonly gone: boolean;
};
export type ModelAccount = {
  readonly name: string;
  readonly environments: readonly Environment[];
  readonly values: Readonly<Record<string, string>>;
  readonly broken: boolean;
};
export type ModelFile = {
  readonly path: string;
  readonly environments: readonly Environment[];
  readonly content: string;
  /** As recorded. */
  readonly size: number;
  readonly broken: boolean;
};

export type ModelKey = {
  readonly owner: number;
  readonly surfaces: readonly Surface[];
  readonly resources: readonly string[];
  readonly environments: readonly Environment[];
  /** Ids; null: all of the organization's. */
  readonly projects: readonly string[] | null;
  readonly state: "live" | "expired" | "revoked";
};

export type Parameter = readonly [name: string, value: string];

/** What is asked, as the gates see it. */
export type ModelRequest = {
  readonly method: string;
  readonly endpoint: "organization" | "projects" | "project" | "variables" | "accounts" | "files" | "secrets" | "none";
  /** The slug in the path. */
  readonly slug: string;
  readonly query: readonly Parameter[];
  /** The key in the header, or null if no such key was ever made. */
  readonly key: ModelKey | null;
};

/** The limiter's state: which of the key's buckets are empty, and whether the key is remembered. */
export type ModelBuckets = {
  readonly empty: readonly string[];
  readonly remembered: boolean;
  /** Attempts with this text that have been refused so far. */
  readonly refused: number;
};

export type Verdict = {
  readonly code: string;
  /** Of a 200: what it must say, ids and times aside. */
  readonly body?: unknown;
  /** Of a 200 with values: action, names of each entry. */
  readonly audit?: readonly { readonly action: string; readonly names: readonly string[] }[];
};

const itemsMax = 1000;
const contentBytesMax = 8 * 1024 * 1024;
const attemptsMax = 10;

/** The first gate that refuses, or the answer. */
export function judge(
  request: ModelRequest,
  organizations: readonly { readonly plan: "free" | "pro"; readonly slug: string; readonly name: string }[],
  projects: readonly ModelProject[],
  buckets: ModelBuckets,
): Verdict {
  const { endpoint, key } = request;
  // 1. route
  if (endpoint === "none") return { code: "not_found" };
  if (request.method !== "GET") return { code: "method_not_allowed" };
  // 2. key, with the limiter of unrecognized keys; 3. the key's bucket
  const bucket = bucketOf(request);
  const over = buckets.empty.includes(bucket);
  const unrecognized = { code: buckets.refused >= attemptsMax ? "rate_limited" : "unauthorized" };
  if (!key) return unrecognized;
  if (over && buckets.remembered) return { code: "rate_limited" };
  if (key.state !== "live") return unrecognized;
  if (over) return { code: "rate_limited" };
  // 4. plan, surface, resource
  const organization = organizations[key.owner] as (typeof organizations)[number];
  if (organization.plan !== "pro") return { code: "plan_required" };
  const surface = endpoint === "organization" ? undefined : endpoint === "secrets" ? "ci_action" : "rest_api";
  if (surface && !key.surfaces.includes(surface)) return { code: "surface_required" };
  const resource = resourceOf(endpoint);
  if (resource && !key.resources.includes(resource)) return { code: "resource_required" };
  // 5. query
  const query = parsed(request);
  if (query === "invalid") return { code: "invalid_request" };
  // 6. environment
  const { environment } = query;
  if (environment && !key.environments.includes(environment)) return { code: "environment_not_in_scope" };
  // 7. project
  const isListed = ({ id }: ModelProject) => key.projects === null || key.projects.includes(id);
  const inScope = projects.filter((one) => !one.gone && one.owner === key.owner && isListed(one));
  inScope.sort((a, b) => Buffer.compare(Buffer.from(a.slug), Buffer.from(b.slug)));
  if (endpoint === "organization") return { code: "200", body: { ...organization } };
  if (endpoint === "projects") return { code: "200", body: { projects: inScope.map((one) => summary(one, key)) } };
  const wanted = endpoint === "files" || endpoint === "secrets" ? query.project : request.slug;
  const project = inScope.find(({ slug }) => slug === wanted);
  if (!project) return { code: "project_not_found" };
  // 8. bounds, 9. decryption, 11. answer
  // Names, accounts and files are read with every listing that the key reaches, values of variables with one.
  const needed = environment && ["variables", "secrets"].includes(endpoint) ? [environment] : key.environments;
  if (endpoint !== "project" && project.forged.some((one) => needed.includes(one))) {
    return { code: "decryption_failed" };
  }
  switch (endpoint) {
    case "project": {
      const files = project.files.filter((file) => reached(file, key.environments));
      const fileCount = project.fileTotal > itemsMax ? project.fileTotal : files.length;
      return { code: "200", body: { ...summary(project, key), environments: ordered(key.environments), fileCount } };
    }
    case "variables":
      return variablesVerdict(project, key, query);
    case "secrets": {
      const found = valuesVerdict(project, query, Object.keys(project.variables[environment as Environment]).sort());
      if (found.code !== "200") return found;
      const secrets = Object.fromEntries(found.list.map(({ key: name, value }) => [name, value]));
      const audit = [{ action: "secrets.read", names: found.list.map(({ key: name }) => name) }];
      if (query.format === "env") return { code: "200", audit };
      return { code: "200", audit, body: { project: { slug: project.slug }, environment, secrets } };
    }
    case "accounts":
      return accountsVerdict(project, key, query);
    case "files":
      return filesVerdict(project, key, query);
  }
}

function resourceOf(endpoint: ModelRequest["endpoint"]): string | undefined {
  if (endpoint === "organization" || endpoint === "secrets") return undefined;
  return endpoint === "project" ? "projects" : endpoint;
}

/** The bucket is chosen before the query is judged: only a flag that is exactly true counts. */
export function bucketOf({ endpoint, query }: ModelRequest): "metadata" | "value" | "content" {
  const flags = query.filter(([name]) => name === (endpoint === "files" ? "metadataOnly" : "metadata_only"));
  const flag = flags.length === 1 ? flags[0]?.[1] : undefined;
  if (endpoint === "files") return flag === "true" || flag === "1" ? "metadata" : "content";
  if (endpoint === "variables" || endpoint === "accounts") return flag === "true" ? "metadata" : "value";
  return endpoint === "secrets" ? "value" : "metadata";
}

type Query = {
  readonly environment: Environment | undefined;
  readonly project: string | undefined;
  readonly metadata: boolean;
  readonly format: string;
  readonly keys: readonly string[] | undefined;
  readonly prefix: string | undefined;
  readonly paths: readonly string[] | undefined;
};

const takes: Readonly<Record<string, readonly string[]>> = {
  variables: ["environment", "keys", "prefix", "metadata_only", "format"],
  accounts: ["environment", "metadata_only"],
  files: ["project", "environment", "metadataOnly", "path"],
  secrets: ["project", "environment", "format"],
};
const allowed: Readonly<Record<string, readonly string[]>> = {
  environment: environments,
  metadata_only: ["true", "false"],
  metadataOnly: ["true", "1", "false", "0"],
  format: ["json", "env"],
};

function parsed({ endpoint, query }: ModelRequest): Query | "invalid" {
  const known = takes[endpoint] ?? [];
  const values = new Map<string, string[]>();
  for (const [name, value] of query) {
    if (!known.includes(name) || value === "") return "invalid";
    if (allowed[name] && !allowed[name].includes(value)) return "invalid";
    values.set(name, [...(values.get(name) ?? []), value]);
    if (name !== "path" && (values.get(name) ?? []).length > 1) return "invalid";
  }
  const one = (name: string) => values.get(name)?.[0];
  const flag = one("metadata_only") ?? one("metadataOnly");
  const metadata = flag === "true" || flag === "1";
  const environment = one("environment") as Environment | undefined;
  if (endpoint === "variables" && environment === undefined && !metadata) return "invalid";
  if (endpoint === "variables" && metadata && one("format") === "env") return "invalid";
  if ((endpoint === "files" || endpoint === "secrets") && (!environment || one("project") === undefined))
    return "invalid";
  const keys = one("keys")?.split(",");
  if (keys && (keys.length > itemsMax || keys.includes(""))) return "invalid";
  const paths = values.get("path");
  if (paths && paths.length > itemsMax) return "invalid";
  const [project, prefix, format = "json"] = ["project", "prefix", "format"].map(one);
  return { environment, project, metadata, format, keys, prefix, paths };
}

function reached(item: { readonly environments: readonly Environment[] }, reach: readonly Environment[]): boolean {
  return item.environments.some((environment) => reach.includes(environment));
}

function ordered(some: readonly Environment[]): Environment[] {
  return environments.filter((environment) => some.includes(environment));
}

function summary(project: ModelProject, key: ModelKey) {
  const names = new Set(key.environments.flatMap((environment) => Object.keys(project.variables[environment])));
  const { name, slug } = project;
  const accountCount = project.accounts.filter((account) => reached(account, key.environments)).length;
  return { name, slug, variableCount: names.size, accountCount };
}

function variablesVerdict(project: ModelProject, key: ModelKey, query: Query): Verdict {
  const { environment, keys, prefix } = query;
  const reach = environment ? [environment] : key.environments;
  const names = [...new Set(reach.flatMap((one) => Object.keys(project.variables[one])))]
    .filter((name) => (!keys || keys.includes(name)) && (prefix === undefined || name.startsWith(prefix)))
    .sort();
  if (query.metadata) {
    if (names.length > itemsMax) return { code: "too_many_items" };
    return { code: "200", body: { environment: environment ?? null, variables: names.map((name) => ({ key: name })) } };
  }
  const found = valuesVerdict(project, query, names);
  if (found.code !== "200") return found;
  const audit = [{ action: "variables.read", names }];
  return query.format === "env"
    ? { code: "200", audit }
    : { code: "200", audit, body: { environment, variables: found.list } };
}

function valuesVerdict(project: ModelProject, query: Query, names: readonly string[]) {
  const environment = query.environment as Environment;
  if (names.length > itemsMax) return { code: "too_many_items", list: [] };
  if (project.broken.includes(environment)) return { code: "decryption_failed", list: [] };
  const odd = project.unrepresentable[environment] ?? [];
  if (query.format === "env" && names.some((name) => odd.includes(name)))
    return { code: "env_unrepresentable", list: [] };
  const values = project.variables[environment];
  return { code: "200", list: names.map((name) => ({ key: name, value: values[name] as string })) };
}

function accountsVerdict(project: ModelProject, key: ModelKey, query: Query): Verdict {
  const reach = query.environment ? [query.environment] : key.environments;
  const found = project.accounts.filter((account) => reached(account, reach));
  found.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  if (found.length > itemsMax) return { code: "too_many_items" };
  if (!query.metadata && found.some(({ broken }) => broken)) return { code: "decryption_failed" };
  const accounts = found.map(({ name, environments, values }) => ({
    name,
    environments: ordered(environments.filter((one) => key.environments.includes(one))),
    ...(!query.metadata && { values }),
  }));
  const audit = query.metadata ? [] : [{ action: "accounts.read", names: found.map(({ name }) => name) }];
  return { code: "200", audit, body: { environment: query.environment ?? null, accounts } };
}

function filesVerdict(project: ModelProject, key: ModelKey, query: Query): Verdict {
  const environment = query.environment as Environment;
  const found = project.files.filter(
    (file) => file.environments.includes(environment) && (!query.paths || query.paths.includes(file.path)),
  );
  found.sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  if (project.fileTotal > itemsMax) return { code: "too_many_items" };
  if (!query.metadata) {
    if (found.reduce((sum, { size }) => sum + size, 0) > contentBytesMax) return { code: "content_too_large" };
    if (found.some(({ broken }) => broken)) return { code: "decryption_failed" };
  }
  const files = found.map(({ path, size, environments, content }) => ({
    path,
    size,
    environments: ordered(environments.filter((one) => key.environments.includes(one))),
    ...(!query.metadata && { content: Buffer.from(content).toString("base64") }),
  }));
  const audit = query.metadata ? [] : found.map(({ path }) => ({ action: "file.read", names: [path] }));
  return { code: "200", audit, body: { project: { slug: project.slug }, environment, files } };
}
