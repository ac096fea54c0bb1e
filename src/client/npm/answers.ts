/* The answers of the API. A test compares these types with the schemas of its description. */

export type Environment = "development" | "staging" | "production";

/** The organization of a key. */
export type Organization = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly plan: "free" | "pro";
};

/** A project in a list. Counts are those of the environments that the key reaches. */
export type ProjectSummary = {
  readonly id: string;
  readonly name: string;
  readonly slug: string;
  readonly variableCount: number;
  readonly accountCount: number;
};

/** The projects that the key reaches, in byte order of slug. */
export type Projects = { readonly projects: readonly ProjectSummary[] };

/** A project. Times are milliseconds since 1970. */
export type Project = ProjectSummary & {
  /** Those that the key reaches. */
  readonly environments: readonly Environment[];
  readonly fileCount: number;
  readonly createdAt: number;
  readonly updatedAt: number;
};

/** A variable without its value. */
export type VariableName = { readonly key: string; readonly updatedAt: number };
export type Variable = VariableName & { readonly value: string };

/** Variables in byte order of name. */
export type VariableNames = { readonly environment: Environment | null; readonly variables: readonly VariableName[] };
export type Variables = { readonly environment: Environment | null; readonly variables: readonly Variable[] };

export type Account = {
  readonly name: string;
  /** Those that have it and that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
  /** Fields such as `password`. */
  readonly values: Readonly<Record<string, string>>;
};

/** Shared accounts in byte order of name. */
export type Accounts = { readonly environment: Environment | null; readonly accounts: readonly Account[] };

export type SecretFile = {
  readonly name: string;
  /** Where it belongs: relative, with `/` between its parts. */
  readonly path: string;
  readonly mode: "0600" | "0400";
  /** Bytes of the content. */
  readonly size: number;
  /** SHA-256 of the content, in hex. */
  readonly sha256: string;
  readonly contentType: string;
  /** Those that have it and that the key reaches. */
  readonly environments: readonly Environment[];
  readonly updatedAt: number;
  /** In base64: `Buffer.from(content, "base64")` or `atob` decode it. */
  readonly content: string;
};

/** Secret files in byte order of path. */
export type Files = {
  readonly project: { readonly slug: string };
  readonly environment: Environment;
  readonly files: readonly SecretFile[];
};

/** Which variables: all if neither is given, those that match both if both are. */
export type Selection = { readonly keys?: readonly string[] | undefined; readonly prefix?: string | undefined };
/** Which files: all if no paths are given. */
export type FileSelection = { readonly paths?: readonly string[] | undefined };
