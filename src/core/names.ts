/** The three environments, in the order in which lists show them. */
export const environments = ["development", "staging", "production"] as const;
export type Environment = (typeof environments)[number];

/** A set of environments as bits: development 1, staging 2, production 4. The empty set, 0, is never stored. */
export type EnvironmentMask = number;
export const everyEnvironment: EnvironmentMask = 7;

const environmentBits: Readonly<Record<Environment, EnvironmentMask>> = { development: 1, staging: 2, production: 4 };

/** The mask that holds exactly these environments. */
export function environmentMask(...members: readonly Environment[]): EnvironmentMask {
  return members.reduce((mask, environment) => mask | environmentBits[environment], 0);
}

/** The environments of a mask, in the order of {@link environments}. */
export function environmentsOf(mask: EnvironmentMask): Environment[] {
  return environments.filter((environment) => mask & environmentBits[environment]);
}

export function isEnvironment(text: string): text is Environment {
  return (environments as readonly string[]).includes(text);
}

/** What people say of an item, each in one line. The API does not show it, and its change is none to machines. */
export const remarkNames = ["note"] as const;
export type Remarks = { readonly [name in (typeof remarkNames)[number]]?: string | undefined };

/** Organization and project slugs, as a regular expression. */
export const slugRule = "^[a-z0-9][a-z0-9-]{0,63}$";
export const slugPattern: RegExp = new RegExp(slugRule);

const variableNamePattern = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;

/** Whether a variable may have this name. Shells overwrite `_`; JavaScript readers of dotenv text lose `__proto__`. */
export function isVariableName(text: string): boolean {
  return variableNamePattern.test(text) && text !== "_" && text !== "__proto__";
}

/** Which variables of an environment: all, those with these names, or those with this prefix. */
export type Selection =
  | { readonly by: "all" }
  | { readonly by: "names"; readonly names: readonly string[] }
  | { readonly by: "prefix"; readonly prefix: string };

/** A token's id, its subject and the id of the run, in its issuer's words; empty if it does not say. */
export type TokenWords = { readonly jti: string; readonly sub: string; readonly run: string };

/** A read by a job whose trust bounds how often it may read. */
export type JobRead = {
  readonly trustId: string;
  /** SHA-256 of the claims that name the job, in hex. */
  readonly job: string;
  readonly readsMax: number;
  /** For how long the count is needed after this read, in milliseconds of the database's clock. */
  readonly keptMs: number;
};

/** Orders text by its UTF-8 bytes, the order of every list in the API; UTF-16 order differs above U+FFFF. */
export function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

export const dayMs = 86_400_000;
export const variableValueBytesMax = 64 * 1024;
/** The largest number of items in an answer, and of files in a project. */
export const itemsMax = 1000;
/** The most plaintext bytes of files in an answer. */
export const contentBytesMax = 8 * 1024 * 1024;
/** The longest reason, in characters, of a variable request and of its rejection. */
export const reasonCharactersMax = 500;
