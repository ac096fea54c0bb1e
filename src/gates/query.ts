import { type TProperties, Type } from "typebox";
import { Compile } from "typebox/compile";
import type { Lookup } from "../access/authenticate.ts";
import { Fault } from "../core/fault.ts";
import {
  environmentMask,
  environments,
  everyEnvironment,
  isEnvironment,
  isVariableName,
  itemsMax,
  type Selection,
  slugPattern,
} from "../core/names.ts";

/*
 * Gate 5. Elysia keeps the last of a repeated parameter, drops unknown ones and splits arrays at commas. So the raw query
 * is parsed here, and anything but one valid value for each known parameter is refused.
 */

const environment = oneOf(environments, "The environment to read.");
const project = text("The slug of a project.");
const format = Type.Optional(oneOf(["json", "env"], "The form of the answer; `env` is dotenv text. Default: `json`."));
const namesOnly = "With `true`, the answer has no values, and the request is charged to the metadata bucket.";
const narrowing = "Needs `environment`, unless `metadata_only=true`.";
const flag = Type.Optional(oneOf(["true", "false"], namesOnly));

/** The parameters of each endpoint. The description of the API is made of the same schemas. */
export const querySchemas = {
  none: strict({}),
  variables: strict({
    environment: Type.Optional(environment),
    keys: Type.Optional(text(`Exact names with commas between them, at most ${itemsMax}. ${narrowing}`)),
    prefix: Type.Optional(text(`What names must begin with. ${narrowing}`)),
    metadata_only: flag,
    format,
  }),
  accounts: strict({ environment: Type.Optional(environment), metadata_only: flag }),
  files: strict({
    project,
    environment,
    metadataOnly: Type.Optional(oneOf(["true", "1", "false", "0"], namesOnly.replace("`true`", "`true` or `1`"))),
    path: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), {
        maxItems: itemsMax,
        description: `The exact path of a file. May be repeated, up to ${itemsMax} times, as long as the address and the headers together stay below 16 KiB: about 250 paths of 50 characters. Without it, all files are read.`,
      }),
    ),
  }),
  secrets: strict({ project, environment, format }),
};

/**
 * Checks the query of an endpoint without parameters.
 * @throws Fault `invalid_request` that names the first invalid parameter, as all parsers below do
 */
export function parseNoQuery(raw: string): void {
  parse(querySchemas.none, raw);
}

/** As all parsers below, it gives two spellings of one question as the same: the tag of the answer is made of it. */
export function parseVariablesQuery(raw: string) {
  const { environment, keys, prefix, metadata_only, format = "json" } = parse(querySchemas.variables, raw);
  const metadataOnly = metadata_only === "true";
  if (environment === undefined && !metadataOnly) throw invalid("environment", "is required");
  if (format === "env" && metadataOnly) throw invalid("format", "must not be env with metadata_only=true");
  return { environment: environment ?? null, selection: selectionOf(keys, prefix), metadataOnly, format };
}

export function parseAccountsQuery(raw: string) {
  const { environment, metadata_only } = parse(querySchemas.accounts, raw);
  return { environment: environment ?? null, metadataOnly: metadata_only === "true" };
}

export function parseFilesQuery(raw: string) {
  const { project, environment, metadataOnly, path } = parse(querySchemas.files, raw);
  const paths = path && [...new Set(path)].sort();
  return { project, environment, metadataOnly: metadataOnly === "true" || metadataOnly === "1", paths };
}

export function parseSecretsQuery(raw: string) {
  const { project, environment, format = "json" } = parse(querySchemas.secrets, raw);
  return { project, environment, format };
}

/**
 * Whether a request is charged as a metadata read. Decided before gate 5, so only if the flag occurs once, is true and is
 * not percent-encoded. Never throws.
 */
export function isMetadataRead(raw: string, flagName: "metadata_only" | "metadataOnly"): boolean {
  if (!raw.includes(flagName)) return false;
  const [flag, second] = raw.split("&").filter((pair) => pair.startsWith(`${flagName}=`));
  if (flag === undefined || second !== undefined) return false;
  const value = flag.slice(flagName.length + 1);
  return value === "true" || (value === "1" && flagName === "metadataOnly");
}

/**
 * What the lookup looks for besides the key. Gate 5 judges the query afterwards, with the same decoder, so for a query that
 * it accepts this is what was asked for. Never throws.
 *
 * @param slug - from the path; undefined: the parameter `project`
 * @param values - whether values are needed, not only names
 */
export function lookupOf(kind: string, slug: string | undefined, raw: string, values: boolean): Lookup {
  let asked = everyEnvironment;
  let project = slug ?? "";
  for (const pair of raw.split("&", pairsMax)) {
    const [name, encoded] = splitPair(pair);
    if (name === "environment") {
      const environment = decodeText(encoded) ?? "";
      asked = isEnvironment(environment) ? environmentMask(environment) : 0;
    } else if (name === "project" && slug === undefined) project = decodeText(encoded) ?? "";
  }
  return {
    slug: slugPattern.test(project) ? project : "",
    kind,
    // The accounts and files of one environment depend on the sets of the others.
    environments: kind === "variables" ? asked : everyEnvironment,
    values: values ? asked : 0,
  };
}

/** No query with more pairs passes gate 5: only `path` may be repeated. Bounds what a stranger's query costs. */
const pairsMax = itemsMax + Object.keys(querySchemas.variables.properties).length;

function oneOf<const T extends string>(values: readonly T[], description: string) {
  return Type.Enum([...values], { type: "string", description });
}

function text(description: string) {
  return Type.String({ minLength: 1, description });
}

function strict<P extends TProperties>(properties: P) {
  return { properties, check: Compile(Type.Object(properties, { additionalProperties: false })) };
}

function parse<P extends TProperties>(schema: ReturnType<typeof strict<P>>, raw: string) {
  const found: unknown = decode(schema.properties, raw);
  if (schema.check.Check(found)) return found;
  const [error] = schema.check.Errors(found);
  if (error?.keyword === "required") throw invalid(error.params.requiredProperties[0] ?? "", "is required");
  const name = error?.instancePath.split("/")[1] ?? "";
  if (error?.keyword === "enum") throw invalid(name, `must be one of ${error.params.allowedValues.join(", ")}`);
  if (error?.keyword === "maxItems") throw invalid(name, `may be given at most ${itemsMax} times`);
  throw invalid(name, "is empty");
}

/** The decoded parameters. `path` may be repeated and becomes a list; any other parameter may occur once. */
function decode(known: TProperties, raw: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = Object.create(null);
  if (raw === "") return found;
  for (const pair of raw.split("&")) {
    const [name, encoded] = splitPair(pair);
    if (name === undefined || !Object.hasOwn(known, name)) throw invalid(name ?? "", "is not known here");
    const value = decodeText(encoded);
    if (value === undefined) throw invalid(name, "is not percent-encoded UTF-8");
    const earlier = found[name];
    if (Array.isArray(earlier)) earlier.push(value);
    else if (earlier !== undefined) throw invalid(name, "may be given only once");
    else found[name] = name === "path" ? [value] : value;
  }
  return found;
}

/** The decoded name and the encoded value of one `name=value`. */
function splitPair(pair: string): [name: string | undefined, encoded: string] {
  const at = pair.indexOf("=");
  return at < 0 ? [decodeText(pair), ""] : [decodeText(pair.slice(0, at)), pair.slice(at + 1)];
}

/** @returns undefined if the text is not percent-encoded UTF-8 */
function decodeText(encoded: string): string | undefined {
  if (!encoded.includes("%") && !encoded.includes("+")) return encoded;
  try {
    return decodeURIComponent(encoded.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function selectionOf(keys: string | undefined, prefix: string | undefined): Selection {
  if (keys !== undefined) {
    const names = keys.split(",");
    if (names.length > itemsMax) throw invalid("keys", `may hold at most ${itemsMax} names`);
    if (names.includes("")) throw invalid("keys", "has an empty name");
    // No variable can have another name, and PostgreSQL would refuse some texts, such as one with a NUL.
    const possible = names.filter((name) => isVariableName(name) && name.startsWith(prefix ?? ""));
    return { by: "names", names: [...new Set(possible)].sort() };
  }
  if (prefix === undefined) return { by: "all" };
  return /^[A-Za-z0-9_]+$/.test(prefix) ? { by: "prefix", prefix } : { by: "names", names: [] };
}

function invalid(name: string, problem: string): Fault {
  return new Fault("invalid_request", `query parameter ${problem}`, { parameter: { name, problem } });
}
