import type { Question } from "../wire.ts";
import type {
  Account,
  Accounts,
  Environment,
  Files,
  Organization,
  Project,
  ProjectSummary,
  Projects,
  SecretFile,
  Selection,
  Variable,
  VariableName,
  VariableNames,
  Variables,
} from "./answers.ts";

/*
 * What both clients ask of the API, and whether an answer is about what was asked. Members that an answer has beyond
 * these are allowed: a later API may add some.
 */

/** A file of an answer with metadata only. */
export type FileMetadata = Omit<SecretFile, "content">;
type FileList = Omit<Files, "files"> & { readonly files: readonly FileMetadata[] };

/** The questions of a client. @param root - the API's, such as `https://keyhole.example.com/api/v1` */
export function questionsOf(root: string) {
  const question = <T>(path: string, query: Query, is: Is<T>, whyNot: Question<T>["whyNot"] = () => undefined) => {
    return { url: `${root}${path}${queryOf(query)}`, is, whyNot };
  };
  return {
    organization: question("/organization", {}, isOrganization),
    projects: question("/projects", {}, isProjects),
    project: (slug: string) =>
      question(`/projects/${slug}`, {}, isProject, (answer) => (answer.slug === slug ? undefined : elsewhere)),
    variables: (project: string, environment: Environment, selection: Selection) =>
      question(`/projects/${project}/variables`, selecting(environment, selection), isVariables, (answer) =>
        whyNotSelected(answer, environment, selection),
      ),
    variableNames: (project: string, environment: Where, selection: Selection) => {
      const query = { ...selecting(environment, selection), metadata_only: "true" };
      const whyNot = (answer: VariableNames) => whyNotSelected(answer, environment, selection);
      return question(`/projects/${project}/variables`, query, isVariableNames, whyNot);
    },
    accounts: (project: string, environment: Where) =>
      question(`/projects/${project}/accounts`, { environment }, isAccounts, (answer) =>
        answer.environment === environment ? twice(answer.accounts.map(({ name }) => name)) : elsewhere,
      ),
    /** Without paths, of all files. */
    files: (project: string, environment: Environment, paths?: readonly string[]) =>
      question("/files", { project, environment, path: paths }, isFiles, (answer) =>
        whyNotFiles(answer, project, environment, paths),
      ),
    fileMetadata: (project: string, environment: Environment) =>
      question("/files", { project, environment, metadataOnly: "true" }, isFileList, (answer) =>
        whyNotFiles(answer, project, environment, undefined),
      ),
  };
}

function selecting(environment: Where, { keys, prefix }: Selection): Query {
  return { environment, keys: keys?.join(","), prefix };
}

type Where = Environment | null;
/** In sending order. Undefined and null are left out; a list is sent as one parameter for each item. */
type Query = Readonly<Record<string, string | readonly string[] | null | undefined>>;

function queryOf(query: Query): string {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `${name}=${encodeURIComponent(one)}`),
  );
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

const elsewhere = "it is about another project or environment than the one asked for";

function whyNotSelected(answer: VariableNames, environment: Where, { keys, prefix = "" }: Selection) {
  if (answer.environment !== environment) return elsewhere;
  const names = answer.variables.map(({ key }) => key);
  return twice(names) ?? notAsked(names, (name) => (keys?.includes(name) ?? true) && name.startsWith(prefix));
}

function whyNotFiles(
  { files, ...answer }: FileList,
  project: string,
  environment: Environment,
  paths: readonly string[] | undefined,
) {
  if (answer.environment !== environment || answer.project.slug !== project) return elsewhere;
  const found = files.map(({ path }) => path);
  return twice(found) ?? notAsked(found, (path) => paths?.includes(path) ?? true);
}

function twice(names: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const name of names) if (seen.size === seen.add(name).size) return `${shown(name)} is there twice`;
  return undefined;
}

function notAsked(names: readonly string[], isAsked: (name: string) => boolean): string | undefined {
  const other = names.find((name) => !isAsked(name));
  return other === undefined ? undefined : `${shown(other)} was not asked for`;
}

/** A name of an answer, in a message. */
function shown(name: string): string {
  return JSON.stringify(name.slice(0, 100));
}

/** Whether a value of JSON has this type. */
type Is<T> = (value: unknown) => value is T;

const isText = (value: unknown): value is string => typeof value === "string";
const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isNull = (value: unknown): value is null => value === null;
const isTexts = (value: unknown): value is Record<string, string> =>
  isObject(value) && Object.values(value).every(isText);
const isEnvironment = isOneOf("development", "staging", "production");

const isOrganization = isRecord<Organization>({
  id: isText,
  name: isText,
  slug: isText,
  plan: isOneOf("free", "pro"),
});
const summary = { id: isText, name: isText, slug: isText, variableCount: isCount, accountCount: isCount };
const isProjects = isRecord<Projects>({ projects: isListOf(isRecord<ProjectSummary>(summary)) });
const isProject = isRecord<Project>({
  ...summary,
  environments: isListOf(isEnvironment),
  fileCount: isCount,
  createdAt: isCount,
  updatedAt: isCount,
});
const asked = (value: unknown): value is Environment | null => isNull(value) || isEnvironment(value);
const isVariableNames = isRecord<VariableNames>({
  environment: asked,
  variables: isListOf(isRecord<VariableName>({ key: isText, updatedAt: isCount })),
});
const isVariables = isRecord<Variables>({
  environment: asked,
  variables: isListOf(isRecord<Variable>({ key: isText, value: isText, updatedAt: isCount })),
});
const isAccounts = isRecord<Accounts>({
  environment: asked,
  accounts: isListOf(
    isRecord<Account>({ name: isText, environments: isListOf(isEnvironment), updatedAt: isCount, values: isTexts }),
  ),
});
const record = {
  name: isText,
  path: isText,
  mode: isOneOf("0600", "0400"),
  size: isCount,
  sha256: isText,
  contentType: isText,
  environments: isListOf(isEnvironment),
  updatedAt: isCount,
};
const ofProject = { project: isRecord({ slug: isText }), environment: isEnvironment };
const isFileList = isRecord<FileList>({ ...ofProject, files: isListOf(isRecord<FileMetadata>(record)) });
const isFiles = isRecord<Files>({
  ...ofProject,
  files: isListOf(isRecord<SecretFile>({ ...record, content: isText })),
});

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isOneOf<T extends string>(...words: readonly T[]): Is<T> {
  return (value): value is T => (words as readonly unknown[]).includes(value);
}

function isListOf<T>(is: Is<T>): Is<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every(is);
}

/** Has these members, none of them inherited. */
function isRecord<T>(members: { readonly [Name in keyof T]-?: Is<T[Name]> }): Is<T> {
  const checks = Object.entries<Is<unknown>>(members);
  return (value): value is T =>
    isObject(value) &&
    checks.every(([name, is]) => Object.hasOwn(value, name) && is((value as Readonly<Record<string, unknown>>)[name]));
}
